"""What the tests of the node's side share."""
import pathlib
import time

RESERVATION = "node.koordinator.sh/reservation"
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
CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory")
FILES = {"cpuset.cpus": "0-7", "cpu.cfs_quota_us": "-1", "cpuacct.usage": "0", "memory.usage_in_bytes": "0", "memory.stat": "cache 0"}


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: not within {seconds} s: {what}")
        time.sleep(0.1)


def cpus_of(text):
    """The ids in a list such as "0-3,8"."""
    out = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out


class Tree:
    """A folder of plain files that looks like cgroup v1."""

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

    def check(self, when, groups):
        """No group has a core that its parent lacks; none has no core at all."""
        for group in groups:
            its, above = cpus_of(self.cpus(group)), cpus_of(self.cpus(str(pathlib.Path(group).parent)))
            if not its or not its <= above:
                raise SystemExit(f"FAILED: {when}: {group} has {its}, its parent {above}")

    def cpus(self, name):
        return (self.root / "cpuset" / name / "cpuset.cpus").read_text().split("\n")[0]
