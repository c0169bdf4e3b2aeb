"""The seed's end-to-end list of reservations, through kubectl against `berth up`. The cases are those of
tests/kubernetes/reservation_tests.py, which plays them on a real API server."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "kubernetes"), str(HERE.parent / "conformance")]

from reservation_tests import ONE_NODE, THREE_NODES, Case  # noqa: E402
from processes import wait_for  # noqa: E402
from server import Server, environment, fresh_home  # noqa: E402

CLEARED = ["/api/v1/namespaces/default/pods", "/apis/scheduling.koordinator.sh/v1alpha1/reservations",
           "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"]


class Embedded:
    """What a Case asks of its cluster."""

    def __init__(self, berth, kubectl, nodes):
        self.server = Server(berth, "--in-memory", "--nodes", str(nodes), "--node-cpu", "16", "--node-memory", "32Gi",
                             command="up")
        self.binary, self.home = kubectl, fresh_home()

    def get(self, path):
        code, document = self.server.ask("GET", path)
        assert code == 200, f"{path}: {code} {document}"
        return document

    def kubectl(self, *words, stdin=None):
        done = subprocess.run([self.binary, *words], input=stdin, text=True, capture_output=True, timeout=60,
                              env=environment(self.home, self.server.kubeconfig))
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def clear(self):
        for path in CLEARED:
            for item in self.get(path)["items"]:
                self.server.ask("DELETE", f"{path}/{item['metadata']['name']}", {"gracePeriodSeconds": 0})
            wait_for(f"{path} is empty", lambda path=path: not self.get(path)["items"])

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)
        return self.server.stop()


def play(berth, kubectl, cases, nodes):
    """How many failed."""
    failed = 0
    cluster = Embedded(berth, kubectl, nodes)
    try:
        for case in cases:
            try:
                case(Case(cluster))
            except AssertionError as trouble:
                failed += 1
                print(f"FAILED {case.__name__}: {trouble}", flush=True)
            cluster.clear()
    finally:
        code = cluster.close()
    print(f"{len(cases) - failed} of {len(cases)} cases on {nodes} node(s)", flush=True)
    return failed + (code != 0)


def main():
    signal.alarm(900)
    berth, build = sys.argv[1], sys.argv[2]
    kubectl = shutil.which("kubectl") or os.path.join(build, "kubernetes-client/usr/bin/kubectl")
    return 1 if play(berth, kubectl, ONE_NODE, 1) + play(berth, kubectl, THREE_NODES, 3) else 0


sys.exit(main())
