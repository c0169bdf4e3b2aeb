#!/usr/bin/env python3
"""What `berth agent` costs a node: bench/agent_cost.py BERTH [PODS [SECONDS [real]]]. A `berth up` with one node and so many pods (200), half
of them best-effort; a tree of plain files with a group for each pod and container, or, as root, groups of the kernel's own (cgroup v1);
the agent looks once a second for so long (60 s). Prints the processor time of both its processes, in percent of a core, and what they
hold in memory (Pss: what is shared counts in part)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FILES = {"cpuset.cpus": "0-63", "cpu.cfs_quota_us": "-1", "cpuacct.usage": "0", "memory.usage_in_bytes": "1048576",
         "memory.stat": "cache 0\ntotal_inactive_file 0"}
TICKS = os.sysconf("SC_CLK_TCK")


def group(root, name):
    for file, value in FILES.items():
        place = root / file.split(".")[0] / name
        place.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(value + "\n")


class Real:
    """Below a group of its own in each of the kernel's hierarchies; what is made goes at the end."""
    root = pathlib.Path("/sys/fs/cgroup")

    def __init__(self):
        self.name = f"berth-bench-{os.getpid()}"
        self.made = []
        self.group("")

    def group(self, name):
        for controller in ("cpuset", "cpu", "cpuacct", "memory"):
            place = self.root / controller / self.name / name
            place.mkdir()
            self.made.append(place)
            for file in ("cpuset.cpus", "cpuset.mems") if controller == "cpuset" else ():
                (place / file).write_text((place.parent / file).read_text())

    def flags(self, place):
        config = place / "kubelet.yaml"
        config.write_text(f"kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\ncgroupRoot: /{self.name}\n")
        return ["--kubelet-config", config]

    def remove(self):
        for place in reversed(self.made):
            place.rmdir()


class Plain:
    def __init__(self, root):
        self.root = root

    def group(self, name):
        group(self.root, name)

    def flags(self, _):
        return ["--any-files", "--cgroup-root", self.root, "--topology", "synthetic:socket:2 numa:2 core:16 pu:1"]

    def remove(self):
        pass


def objects(count):
    for i in range(count):
        best_effort = i % 2 == 0
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}", "namespace": "default", "labels": {
            "koordinator.sh/qosClass": "BE" if best_effort else "LS"}},
            "spec": {"nodeName": "node-0", "containers": [
                {"name": f"c{c}", "image": "app", "resources": {} if best_effort else {"requests": {"cpu": "100m"}}} for c in range(2)]}}


def children(pid):
    return [pid] + [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processor(pids):
    total = 0
    for pid in pids:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(words[11]) + int(words[12])
    return total / TICKS


def memory(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return {word: int(next(line for line in lines if line.startswith(word + ":")).split()[1]) / 1024 for word in ("Rss", "Pss", "Anonymous")}


def main(berth, count=200, seconds=60, kind="plain"):
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        sizes = {"cpu": "64", "memory": "512Gi", "pods": str(count)}
        (place / "node.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}, "status": {
            "capacity": sizes, "allocatable": sizes, "conditions": [{"type": "Ready", "status": "True"}]}}))
        up = subprocess.Popen([berth, "up", "--in-memory", "--data-dir", place / "data", "--listen", "127.0.0.1:0", "--nodes-file",
                               place / "node.json"], stdout=subprocess.PIPE, text=True)
        kubeconfig = up.stdout.readline().split("kubeconfig=")[1].strip()
        env = {**os.environ, "KUBECONFIG": kubeconfig}
        listed = list(objects(count))
        subprocess.run(["kubectl", "create", "-f", "-"], input=json.dumps({"apiVersion": "v1", "kind": "List", "items": listed}), text=True,
                       check=True, env=env, stdout=subprocess.DEVNULL)
        subprocess.run(["kubectl", "wait", "pods", "--all", "--for=condition=Ready", "--timeout=120s"], check=True, env=env,
                       stdout=subprocess.DEVNULL)
        pods = json.loads(subprocess.run(["kubectl", "get", "pods", "-o", "json"], check=True, env=env, capture_output=True).stdout)["items"]
        tree = Real() if kind == "real" else Plain(place / "tree")
        try:
            measure_on(tree, pods, [berth, "agent", "--node", "node-0", "--metrics-bind-address", "0", *tree.flags(place)], env, seconds)
        finally:
            up.terminate()
            up.wait()
            tree.remove()


def measure_on(tree, pods, words, env, seconds):
    for name in ("kubepods", "kubepods/besteffort", "kubepods/burstable"):
        tree.group(name)
    for pod in pods:
        folder = "besteffort" if pod["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE" else "burstable"
        name = f"kubepods/{folder}/pod{pod['metadata']['uid']}"
        tree.group(name)
        for container in range(2):
            tree.group(f"{name}/{abs(hash((pod['metadata']['uid'], container))):064x}")
    agent = subprocess.Popen(words, env=env)
    try:
        print(json.dumps(measured(agent, len(pods), seconds), indent=1))
    finally:
        agent.terminate()
        agent.wait()


def measured(agent, count, seconds):
    time.sleep(10)  # it begins with everything at once
    pids = children(agent.pid)
    before, begun = processor(pids), time.monotonic()
    time.sleep(seconds)
    took = processor(pids) - before
    out = {"pods": count, "containers": 2 * count, "percent of a core": round(100 * took / (time.monotonic() - begun), 2)}
    for name, pid in zip(("agent", "writer"), pids):
        out |= {f"{name} {word} MiB": round(value, 1) for word, value in memory(pid).items()}
    return out


main(sys.argv[1], *map(int, sys.argv[2:4]), *sys.argv[4:])
