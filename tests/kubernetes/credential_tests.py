"""Who Berth is on a real cluster: a kubeconfig with an exec plugin whose credential expires meanwhile."""
import json
import pathlib
import sys
import time

from berths import start
from cluster import PODS
from deploy_tests import install
from objects import pod
from processes import wait_for
from scheduler_tests import all_bound

V1 = "client.authentication.k8s.io/v1"
USER = "system:serviceaccount:berth-system:berth-scheduler"
# Makes a certificate for each run, which counts for a few seconds; the API server looks at its end with every request.
PLUGIN = """#!{python}
import json, sys, time
sys.path.insert(0, {here!r})
from certificates import Authority
with open({runs!r}, "a") as runs:
    print("run", file=runs)
end = int(time.time()) + {seconds}
cert, key = Authority.of({folder!r}).client_until("short", {user!r}, end)
status = {{"clientCertificateData": cert.read_text(), "clientKeyData": key.read_text()}}
if {tells}:
    status["expirationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
print(json.dumps({{"apiVersion": {version!r}, "kind": "ExecCredential", "status": status}}))
"""


class ShortLived:
    """A kubeconfig whose certificates count for so many seconds, and how many were made."""

    def __init__(self, cluster, seconds, tells):
        self.runs_file = cluster.dir / "plugin.runs"
        plugin = cluster.dir / "plugin.py"
        plugin.write_text(PLUGIN.format(python=sys.executable, here=str(pathlib.Path(__file__).parent), runs=str(self.runs_file),
                                        seconds=seconds, folder=str(cluster.authority.folder), user=USER, tells=tells, version=V1))
        plugin.chmod(0o700)
        self.path = cluster.dir / "berth-scheduler.kubeconfig"  # where start() looks
        document = json.loads(cluster.kubeconfig("berth-scheduler", USER).read_text())
        document["users"][0]["user"] = {"exec": {"apiVersion": V1, "command": "./plugin.py", "interactiveMode": "Never"}}
        self.path.write_text(json.dumps(document))

    def runs(self):
        return self.runs_file.read_text().count("run") if self.runs_file.exists() else 0


def credential_expires(stage):
    """A certificate of twelve seconds from an exec plugin is renewed before it ends: no request is refused"""
    with stage.cluster() as cluster:
        install(cluster)
        cluster.nodes(3)
        short = ShortLived(cluster, 12, tells=True)
        scheduler = start(cluster)
        for life in range(1, 4):
            cluster.make_many(PODS, [pod(f"p{life}-{i}", "10m", None) for i in range(10)])
            all_bound(cluster, 10 * life)
            wait_for("the plugin is run again", lambda: short.runs() > life)
        assert not scheduler.printed("401|nauthorized"), scheduler.tail()
        assert scheduler.stop() == 0
        stage.say(f"{short.runs()} certificates, 30 pods")


def credential_is_refused(stage):
    """The same without a word about its end: the server's 401 has the plugin run again, and the request is sent again"""
    with stage.cluster() as cluster:
        install(cluster)
        cluster.nodes(3)
        short = ShortLived(cluster, 12, tells=False)
        scheduler = start(cluster)
        for life in range(1, 4):
            cluster.make_many(PODS, [pod(f"p{life}-{i}", "10m", None) for i in range(10)])
            all_bound(cluster, 10 * life)
            over = time.monotonic() + 13
            wait_for("the certificate is over", lambda: time.monotonic() > over)
        assert short.runs() >= 3, f"the plugin was run {short.runs()} times"
        assert scheduler.alive() and scheduler.stop() == 0
        stage.say(f"{short.runs()} certificates, 30 pods")


TESTS = [credential_expires, credential_is_refused]
