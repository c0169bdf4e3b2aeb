#!/usr/bin/env python3
"""units_test.py BERTH: what the systemd units start runs, and a pod goes through it, under the system calls and address families
that the unit allows. A call outside of them ends the process."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

for folder in ("conformance", "live"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
from agent_test_parts import Tree  # noqa: E402
from server import Server  # noqa: E402
from syscalls import NOBODY, ROOT, confine, settings  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"
ALLOCATIONS = "/apis/kuabe-arbitrator.incubator.k8s.io/v1/allocations"
RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
POD_SPEC = {"schedulerName": "berth", "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}]}

# In a build with AddressSanitizer the search for leaks would trace the process, which no unit allows.
QUIET = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")


def until(what, process, condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise SystemExit(f"FAILED: {what}: ended with {process.returncode} (-31 is a forbidden system call)")
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: not within {seconds} s: {what}")
        time.sleep(0.05)


def words_of(unit, berth, **values):
    """ExecStart, with its places and variables filled in."""
    text = settings(unit, "ExecStart")[0].replace("/usr/bin/berth", berth, 1)
    for name, value in values.items():
        text = re.sub(rf"\$\{{?{name}\}}?", value, text)
    return text.split()


def give_away(place):
    """To whom the confined process will be."""
    if os.geteuid() == 0:
        for path in (place, *pathlib.Path(place).rglob("*")):
            os.chown(path, NOBODY, NOBODY)


def stepped_behind(process):
    """Whether the I/O threads stand behind the others: a filter that only refused would leave them where they were."""
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        if name == "http" and int(fields.split()[16]) == 5:
            return True
    return False


class Confined(Server):
    """A whole server under its unit."""

    def __init__(self, berth, unit):
        self.unit = unit
        super().__init__(berth, command="up")

    def start(self, *_):
        give_away(self.dir)
        words = words_of(self.unit, self.berth)
        place = {"/var/lib/berth": self.dir, "127.0.0.1:6443": "127.0.0.1:0"}
        self.run([place.get(word, word) for word in words], env=QUIET, preexec_fn=confine(self.unit))


def whole(berth):
    unit = (ROOT / "deploy/systemd/berth.service").read_text()
    server = Confined(berth, unit)
    try:
        code, said = server.ask("POST", PODS, {"metadata": {"name": "web"}, "spec": POD_SPEC})
        assert code == 201, said
        until("the pod runs", server.process,
              lambda: server.ask("GET", PODS + "/web")[1]["status"].get("phase") == "Running")
        assert stepped_behind(server.process), "the I/O threads do not step behind"
    finally:
        code = server.stop()
    assert code == 0, f"SIGTERM gave {code}"


def attached(server, berth, component, work, kubeconfig="scheduler.kubeconfig", more=lambda _: ["--leader-elect"]):
    """more(folder): further flags, and what they need in the folder."""
    unit = (ROOT / f"deploy/systemd/berth-{component}.service").read_text()
    place = tempfile.mkdtemp(prefix="berth-unit-")
    shutil.copy(f"{server.dir}/{kubeconfig}", place + "/kubeconfig")
    words = words_of(unit.replace("%H", "node-0"), berth, CREDENTIALS_DIRECTORY=place, BERTH_FLAGS="--metrics-bind-address 127.0.0.1:0")
    words += more(place)
    give_away(place)
    process = subprocess.Popen(words, env=QUIET, preexec_fn=confine(unit))
    try:
        work(process)
        until(component + " has its I/O threads behind", process, lambda: stepped_behind(process))
        process.terminate()
        assert process.wait(30) == 0, f"SIGTERM gave {process.returncode}"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(place)


def rehearsal(place):
    """An agent's flags for a tree of plain files, which whoever owns them may write."""
    tree = Tree(place + "/cgroup")
    return ["--any-files", "--cgroup-root", str(tree.root), "--topology", "synthetic:socket:2 numa:1 core:4 pu:1"]


def main():
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # everybody can run it there, wherever it was built
        all_units(shutil.copy(sys.argv[1], place))


def all_units(berth):
    whole(berth)
    server = Server(berth, "--no-scheduler", "--controllers=-reservation", command="up")

    def placed(process):
        server.ask("POST", PODS, {"metadata": {"name": "web"}, "spec": POD_SPEC})
        until("the pod is bound", process, lambda: server.ask("GET", PODS + "/web")[1]["spec"].get("nodeName"))
        # The scheduler is at work now: the reservation is placed long before it ends.
        server.ask("POST", RESERVATIONS, {"metadata": {"name": "room"}, "spec": {
            "ttl": "5s", "owners": [{"labelSelector": {"matchLabels": {"a": "b"}}}], "template": {"spec": POD_SPEC}}})
        until("the reservation is placed", process, lambda: server.ask("GET", RESERVATIONS + "/room")[1]["status"].get("nodeName"))

    def expired(process):
        until("the reservation expires", process,
              lambda: server.ask("GET", RESERVATIONS + "/room")[1]["status"].get("phase") == "Failed")

    def published(process):
        until("a namespace has its Allocation", process, lambda: server.ask("GET", ALLOCATIONS + "/default")[0] == 200)

    def described(process):
        until("the node's machine is described", process, lambda: server.ask("GET", TOPOLOGIES + "/node-0")[0] == 200)

    try:
        attached(server, berth, "agent", described, kubeconfig="kubeconfig", more=rehearsal)
        attached(server, berth, "scheduler", placed)
        attached(server, berth, "controllers", expired)
        attached(server, berth, "arbitrator", published, kubeconfig="kubeconfig")
    finally:
        server.stop()
    print("5 units: passed")


main()
