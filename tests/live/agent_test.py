#!/usr/bin/env python3
"""The chain from the annotation on a Node to the machine and back: berth agent on a tree of plain files, batch resources, a pod that
leaves reserved cores, kill -9."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from cluster import Cluster, expect

RESERVATION = "node.koordinator.sh/reservation"
CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory")
FILES = {"cpuset.cpus": "0-7", "cpu.cfs_quota_us": "-1", "cpuacct.usage": "0", "memory.usage_in_bytes": "0", "memory.stat": "cache 0"}

BOUND = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bound}
spec:
  replicas: 1
  selector: {matchLabels: {app: bound}}
  template:
    metadata: {labels: {koordinator.sh/qosClass: LSR, app: bound}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {kubernetes.io/hostname: node-0}
      containers: [{name: c, image: app, resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "2", memory: 1Gi}}}]
"""
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: ls, labels: {koordinator.sh/qosClass: LS}}
spec: {nodeName: node-0, containers: [{name: c, image: app, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: be, labels: {koordinator.sh/qosClass: BE}}
spec: {nodeName: node-0, containers: [{name: c, image: app}]}
"""


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        for group in ("kubepods", "kubepods/besteffort", "kubepods/burstable"):
            self.group(group)

    def group(self, name):
        for controller in CONTROLLERS:
            (self.root / controller / name).mkdir(parents=True)
            for file, value in FILES.items():
                if file.split(".")[0] == controller:
                    (self.root / controller / name / file).write_text(value + "\n")

    def cpus(self, name):
        return (self.root / "cpuset" / name / "cpuset.cpus").read_text().split("\n")[0]


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: not within {seconds} s: {what}")
        time.sleep(0.1)


def start(*more):
    return subprocess.Popen([sys.argv[1], "agent", "--node", "node-0", "--any-files", "--cgroup-root", str(tree.root), "--topology",
                             "synthetic:socket:2 numa:1 core:4 pu:1", "--metrics-bind-address", "0", *more], env=cluster.env,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def annotate(value):
    cluster.run("annotate", "--overwrite", "node", "node-0", f"{RESERVATION}={value}" if value else f"{RESERVATION}-")


def topology(key):
    return cluster.get("noderesourcetopologies", "node-0")["metadata"]["annotations"].get(key)


def bound():
    return cluster.get("pods", "-l", "app=bound")["items"]


def cores_of(item):
    status = item["metadata"].get("annotations", {}).get("scheduling.koordinator.sh/resource-status", "{}")
    return json.loads(status).get("cpuset", "")


def batch():
    return int(cluster.get("node", "node-0")["status"]["allocatable"].get("kubernetes.io/batch-cpu", -1))


with tempfile.TemporaryDirectory() as place, Cluster(sys.argv[1], sys.argv[2], "--nodes", "2", "--node-cpu", "8") as cluster:
    tree = Tree(place)
    cluster.apply(PODS)
    for name in ("ls", "be"):
        cluster.wait("pod/" + name, "condition=Ready")
    uids = {name: cluster.get("pod", name)["metadata"]["uid"] for name in ("ls", "be")}
    ls, be = f"kubepods/burstable/pod{uids['ls']}", f"kubepods/besteffort/pod{uids['be']}"
    for group in (ls, be):
        tree.group(group)

    # Once: a topology and a metric, and it ends.
    once = start("--once")
    said, _ = once.communicate(timeout=60)
    expect("exit code of --once", (once.returncode, said if once.returncode else ""), (0, ""))
    expect("reserved", topology(RESERVATION), None)
    pools = json.loads(topology("node.koordinator.sh/cpu-shared-pools"))
    expect("pools", [pool["cpuset"] for pool in pools], ["0-3", "4-7"])

    agent = start("--restore")
    until("batch-cpu", lambda: batch() > 0)
    before = batch()

    # Four cores for processes outside Kubernetes.
    annotate('{"reservedCPUs":"0-3"}')
    until("reserved cores in the topology", lambda: topology(RESERVATION) == '{"reservedCPUs":"0-3"}')
    until("LS pods keep off", lambda: tree.cpus(ls) == "4-7")
    until("BE pods keep off", lambda: set(tree.cpus(be).replace("-", ",").split(",")) <= set("4567"))
    until("batch-cpu falls", lambda: 0 <= batch() < before)

    # Killed at any point: what it wants follows from what is.
    for _ in range(5):
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        (tree.root / "cpuset" / ls / "cpuset.cpus").write_text("0-7\n")
        agent = start("--restore")
        until("it comes back", lambda: tree.cpus(ls) == "4-7")

    annotate("")
    until("all comes back", lambda: tree.cpus(ls) == "0-7" and topology(RESERVATION) is None)
    until("batch-cpu comes back", lambda: batch() > 0)

    # A pod that was given cores has to leave them when they are reserved, and gets others. No other node may have it: it is evicted.
    cluster.apply(BOUND)
    until("it is given cores", lambda: any(cores_of(item) for item in bound()))
    first = bound()[0]
    annotate(json.dumps({"reservedCPUs": cores_of(first)}))
    until("it leaves reserved cores", lambda: first["metadata"]["uid"] not in [item["metadata"]["uid"] for item in bound()])
    until("it is given others", lambda: any(cores_of(item) not in ("", cores_of(first)) for item in bound()))
    modes = sorted(job["spec"]["mode"] for job in cluster.get("podmigrationjobs")["items"])
    expect("how it was tried", modes, ["EvictDirectly", "ReservationFirst"])
    cluster.run("delete", "replicaset", "bound")

    annotate('{"reservedCPUs":"0-3"}')
    until("again", lambda: tree.cpus(ls) == "4-7")
    agent.send_signal(signal.SIGTERM)
    said, _ = agent.communicate(timeout=60)
    expect("exit code", agent.returncode, 0)
    expect("given back", (tree.cpus(ls), tree.cpus("kubepods/besteffort"), tree.cpus(be)), ("0-7", "0-7", "0-7"))
