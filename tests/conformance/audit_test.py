"""Nothing is stored without a line in the audit log that says who wanted it; what is refused is told; files stay bounded;
a log that cannot be written holds nobody up.

audit_test.py BERTH BUILD_DIR
"""
import glob
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from cluster import Cluster  # noqa: E402
from server import Server  # noqa: E402

berth, build = sys.argv[1:3]
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: i, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: kept}
spec:
  owners: [{labelSelector: {matchLabels: {app: owner}}}]
  template: {spec: {containers: [{name: main, image: i, resources: {requests: {cpu: "1"}}}]}}
"""


def lines_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def revisions_in(line):
    for part in filter(None, line.get("annotations", {}).get("berth.dev/revisions", "").split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def check(name, found, wanted):
    if found != wanted:
        sys.exit(f"{name}: {found}, not {wanted}")


def every_revision_has_its_line(place):
    with Cluster(berth, build, "--nodes", "2", directory=place) as cluster:
        cluster.apply(WEB)
        cluster.wait("deployment/web", "condition=Available")
        cluster.run("scale", "deployment/web", "--replicas=1")
        cluster.run("create", "namespace", "gone")
        cluster.run("create", "configmap", "m", "-n", "gone")
        cluster.run("delete", "namespace", "gone")
        cluster.run("delete", "configmap", "--all", "-n", "default")
        cluster.run("drain", "node-0", "--ignore-daemonsets", "--force")
        cluster.run("create", "configmap", "seen", "--as", "bob", "--as-group", "system:masters")
    checked = subprocess.run([berth, "store", "check", "--data-dir", place], capture_output=True, text=True).stdout
    newest = int(re.search(r"revision (\d+)", checked).group(1))
    lines = lines_of(place + "/audit.log")
    told = {revision for line in lines for revision in revisions_in(line)}
    missing = sorted(set(range(1, newest + 1)) - told)
    if missing or newest < 50:
        sys.exit(f"of {newest} revisions {len(missing)} have no line, such as {missing[:5]}")
    for line in lines:
        if (line["apiVersion"], line["kind"], line["level"]) != ("audit.k8s.io/v1", "Event", "Metadata") or \
                not line["user"]["username"] or (line["responseStatus"]["code"] < 400 and
                                                 line["annotations"]["authorization.k8s.io/decision"] != "allow"):
            sys.exit(f"not an audit event: {line}")
    users = {line["user"]["username"].rsplit(":", 1)[0] for line in lines}
    check("who wrote", users >= {"berth-admin", "system", "system:controller"}, True)
    seen = [line for line in lines if line.get("objectRef", {}).get("name") == "seen"]
    check("who acts as whom", [(line["user"]["username"], line["impersonatedUser"]["username"]) for line in seen],
          [("berth-admin", "bob")])
    check("the mode", os.stat(place + "/audit.log").st_mode & 0o777, 0o600)
    return newest


def refusals_are_told(server):
    token = subprocess.run([berth, "token", "create", "--data-dir", server.dir, "--user", "eve"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.strip()
    tls = ssl.create_default_context(cafile=server.dir + "/pki/ca.crt")
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=tls, timeout=20)

    def ask(token, path, agent="audit-test"):
        headers = {"User-Agent": agent, **({"Authorization": "Bearer " + token} if token else {})}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    check("anonymous", ask("", "/api/v1/secrets?limit=1"), 401)
    check("a wrong token", ask("wrong", "/api/v1/secrets"), 401)
    check("who may not", ask(token, "/api/v1/namespaces/default/secrets/s"), 403)
    for _ in range(3000):
        check("again and again", ask("wrong", "/api", "x" * 1000), 401)
    return connection


with tempfile.TemporaryDirectory(prefix="berth-audit-") as place:
    newest = every_revision_has_its_line(place)

with tempfile.TemporaryDirectory(prefix="berth-audit-") as place:
    log = place + "/audit.log"
    server = Server(berth, "--in-memory", "--audit-log", log, "--audit-log-maxsize", "1", "--audit-log-maxbackup", "2")
    refusals_are_told(server).close()
    server.stop()
    check("files", sorted(os.path.basename(name) for name in glob.glob(log + "*")),
          ["audit.log", "audit.log.1", "audit.log.2"])
    for name in glob.glob(log + "*"):
        check("size and mode of " + name, os.path.getsize(name) <= 1 << 20 and os.stat(name).st_mode & 0o777 == 0o600, True)
        lines_of(name)
    server = Server(berth, "--in-memory", "--audit-log", place + "/few.log")
    refusals_are_told(server).close()
    server.stop()
    refused = [line for line in lines_of(place + "/few.log") if line["userAgent"] == "audit-test"]
    check("refusals", [(line["responseStatus"]["code"], line["user"]["username"], line["requestURI"], line["sourceIPs"])
                       for line in refused],
          [(401, "system:anonymous", "/api/v1/secrets?limit=1", ["127.0.0.1"]),
           (401, "system:anonymous", "/api/v1/secrets", ["127.0.0.1"]),
           (403, "eve", "/api/v1/namespaces/default/secrets/s", ["127.0.0.1"])])
    ref = refused[2]["objectRef"]
    check("what", (refused[2]["verb"], ref["resource"], ref["namespace"], ref["name"]), ("get", "secrets", "default", "s"))

server = Server(berth, "--in-memory", "--audit-log", "/dev/full")
for i in range(20):
    check("a write", server.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"m{i}"}})[0], 201)
for _ in range(200):
    counted = dict(re.findall(r"^apiserver_audit_(\w+)_total (\d+)", server.ask("GET", "/metrics")[1], re.M))
    if counted["error"] == counted["event"] and int(counted["event"]) >= 20:
        break
else:
    sys.exit(f"a full disk is not counted: {counted}")
check("the end", server.stop(), 0)
with tempfile.TemporaryDirectory(prefix="berth-audit-") as place:
    missing = subprocess.run([berth, "serve", "--in-memory", "--listen", "127.0.0.1:0", "--data-dir", place, "--audit-log",
                              "/nowhere/audit.log"], capture_output=True, text=True, timeout=20)
check("a folder that is not there", (missing.returncode, "there is no directory /nowhere" in missing.stderr), (1, True))
print("audit: passed,", newest, "revisions")
