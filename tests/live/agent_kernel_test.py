#!/usr/bin/env python3
"""berth agent on the kernel's own cgroups (v1): real processes in groups of pods leave reserved cores and are throttled, and all comes
back. Needs root and the controllers cpu, cpuset, cpuacct and memory; skipped with a sentence where they are not."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from agent_test_parts import CONTROLLERS, PODS, RESERVATION, until
from cluster import Cluster, expect

SKIPPED = 77
MOUNTS = pathlib.Path("/sys/fs/cgroup")
SLO = """
apiVersion: slo.koordinator.sh/v1alpha1
kind: NodeSLO
metadata: {name: node-0}
spec: {resourceUsedThresholdWithBE: {enable: true, cpuSuppressThresholdPercent: 50, cpuSuppressPolicy: cfsQuota}}
"""
STATE = '{"policyName":"%s","defaultCpuSet":"","checksum":0}'


def why_not():
    if os.geteuid() != 0:
        return "not root"
    mounted = [line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "cgroup"]
    missing = [name for name in CONTROLLERS if str(MOUNTS / name) not in mounted]
    if missing:
        return f"no cgroup v1 with {', '.join(missing)}"
    if not {0, 1} <= os.sched_getaffinity(0):
        return "fewer than two CPUs"
    try:
        (MOUNTS / "cpuset" / NAME).mkdir()
    except OSError as trouble:
        return f"no group can be made: {trouble}"
    return None


class Groups:
    """A subtree of its own, below which the agent finds the kubelet's groups."""

    def __init__(self, pods):
        self.processes = []
        self.names = ["", "/kubepods", "/kubepods/besteffort", "/kubepods/burstable", *pods]
        for name in self.names:
            for controller in CONTROLLERS:
                place = MOUNTS / controller / (NAME + name)
                place.mkdir(exist_ok=True)
                if controller == "cpuset":
                    for file in ("cpuset.cpus", "cpuset.mems"):
                        (place / file).write_text((MOUNTS / controller / file).read_text())

    def run_in(self, pod):
        process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        self.processes.append(process)
        for controller in CONTROLLERS:
            (MOUNTS / controller / (NAME + pod) / "cgroup.procs").write_text(str(process.pid))
        return process.pid

    def read(self, controller, name, file):
        return (MOUNTS / controller / (NAME + name) / file).read_text().strip()

    def throttled(self):
        words = self.read("cpu", "/kubepods/besteffort", "cpu.stat").split()
        return int(words[words.index("nr_throttled") + 1])

    def remove(self):
        for process in self.processes:
            process.kill()
            process.wait()
        for name in reversed(self.names):
            for controller in CONTROLLERS:
                place = MOUNTS / controller / (NAME + name)
                # Whoever was killed leaves its group a moment later.
                until(f"{place} is empty", lambda: not (place / "cgroup.procs").read_text())
                place.rmdir()
        left = [str(path) for controller in CONTROLLERS for path in (MOUNTS / controller).glob(NAME)]
        expect("groups that are left", left, [])


def status(pid):
    """What /proc says of a process, by word."""
    return {line.split(":")[0]: line.split(":")[1].split() for line in open(f"/proc/{pid}/status")}


def who_they_are(agent, user, writer_is):
    """The process that talks to the server is nobody in particular and may do nothing; the one that writes has one right."""
    children = open(f"/proc/{agent.pid}/task/{agent.pid}/children").read().split()
    expect("children", len(children), 1)
    for task in os.listdir(f"/proc/{agent.pid}/task"):
        main = status(f"{agent.pid}/task/{task}")
        expect("who talks", (main["Uid"], main["Gid"], main["Groups"]), ([user] * 4, [user] * 4, []))
        rights = [int(main[kind][0], 16) for kind in ("CapPrm", "CapEff", "CapAmb")]
        expect("its rights", (rights, main["NoNewPrivs"]), ([0, 0, 0], ["1"]))
    writer = status(children[0])
    expect("who writes", (writer["Name"], writer["Uid"][0], int(writer["CapPrm"][0], 16), writer["Seccomp"]),
           (["berth-writer"], writer_is, 1 << 1, ["2"]))


def story(cluster, place, groups, ls, be):
    config = pathlib.Path(place) / "kubelet.yaml"
    # Root's alone, as the kubelet leaves it.
    state = pathlib.Path(place) / "cpu_manager_state"
    state.write_text(STATE % "none")
    state.chmod(0o600)
    config.write_text(f"kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\ncgroupDriver: cgroupfs\ncgroupRoot: /{NAME}\n")
    cluster.apply(SLO)
    everything = os.sched_getaffinity(0)
    dear, cheap = groups.run_in(ls), groups.run_in(be)
    words = [sys.argv[1], "agent", "--node", "node-0", "--kubelet-config", str(config), "--cpu-manager-state", str(state),
             "--metrics-bind-address", "0", "--restore"]
    agent = subprocess.Popen(words, env=cluster.env)
    try:
        # LS is busy, so that half of two CPUs is all used: BE has next to nothing, and the kernel counts how often it waits.
        until("BE gets a quota", lambda: 2000 <= int(groups.read("cpu", "/kubepods/besteffort", "cpu.cfs_quota_us")) < 100000)
        before = groups.throttled()
        until("BE is throttled", lambda: groups.throttled() > before + 5)
        who_they_are(agent, "65532", "0")

        # What only root may read is seen when it changes, and in another file of that name.
        policy = lambda: cluster.get("noderesourcetopologies", "node-0")["metadata"]["annotations"]["kubelet.koordinator.sh/cpu-manager-policy"]
        for name in ("static", "none"):
            later = state.with_suffix(".new")
            later.write_text(STATE % name)
            later.chmod(0o600)
            later.rename(state)
            until(f"the kubelet's policy {name} is seen", lambda: f'"{name}"' in policy())

        cluster.run("annotate", "node", "node-0", RESERVATION + '={"reservedCPUs":"0"}')
        until("both leave the reserved core", lambda: os.sched_getaffinity(dear) == os.sched_getaffinity(cheap) == everything - {0})
        expect("the kernel's file", groups.read("cpuset", ls, "cpuset.cpus"), groups.read("cpuset", "/kubepods/besteffort", "cpuset.cpus"))
        cluster.run("annotate", "node", "node-0", RESERVATION + "-")
        until("all comes back", lambda: os.sched_getaffinity(dear) == os.sched_getaffinity(cheap) == everything)

        cluster.run("annotate", "node", "node-0", RESERVATION + '={"reservedCPUs":"0"}')
        until("again", lambda: os.sched_getaffinity(dear) == everything - {0})
        agent.send_signal(signal.SIGTERM)
        expect("exit code", agent.wait(60), 0)
        expect("given back", (os.sched_getaffinity(dear), os.sched_getaffinity(cheap)), (everything, everything))
        expect("no quota", groups.read("cpu", "/kubepods/besteffort", "cpu.cfs_quota_us"), "-1")
    finally:
        agent.kill()
        agent.wait()
    as_under_its_unit(cluster, place, words, dear, everything)


def as_under_its_unit(cluster, place, words, dear, everything):
    """A user of its own with one capability, as the unit gives it: no process is root, and cgroups are written all the same."""
    if not shutil.which("setpriv"):
        return print("not tried as under its unit: there is no setpriv")
    user = "61184"
    os.chmod(place, 0o711)
    kubeconfig = shutil.copy(cluster.env["KUBECONFIG"], place + "/own.kubeconfig")
    os.chown(kubeconfig, int(user), int(user))
    rights = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set", "-all,+dac_override", "--inh-caps",
              "-all,+dac_override", "--ambient-caps", "+dac_override", "--no-new-privs"]
    program = shutil.copy(words[0], place + "/berth")
    agent = subprocess.Popen([*rights, program, *words[1:], "--kubeconfig", kubeconfig], env=cluster.env)
    try:
        until("the reserved core is left", lambda: os.sched_getaffinity(dear) == everything - {0})
        who_they_are(agent, user, user)
        agent.send_signal(signal.SIGTERM)
        expect("exit code", agent.wait(60), 0)
        expect("given back", os.sched_getaffinity(dear), everything)
    finally:
        agent.kill()
        agent.wait()


NAME = f"berth-test-{os.getpid()}"
trouble = why_not()
if trouble:
    print(f"skipped: the kernel's own cgroups cannot be tried here: {trouble}")
    raise SystemExit(SKIPPED)
groups = Groups([])
try:
    with tempfile.TemporaryDirectory() as place, Cluster(sys.argv[1], sys.argv[2], "--nodes", "1", "--node-cpu", "2") as cluster:
        cluster.apply(PODS)
        uids = {name: cluster.get("pod", name)["metadata"]["uid"] for name in ("ls", "be")}
        ls, be = f"/kubepods/burstable/pod{uids['ls']}", f"/kubepods/besteffort/pod{uids['be']}"
        groups = Groups([ls, be])
        story(cluster, place, groups, ls, be)
finally:
    groups.remove()
