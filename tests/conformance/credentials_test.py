"""Tokens and certificates that are taken away stop to count in a running server: at the next request, on connections and
watches that are open, and after a restart.

credentials_test.py BERTH BUILD_DIR
"""
import http.client
import json
import os
import re
import ssl
import subprocess
import sys

from kubectl_test import find_kubectls
from server import Server, environment, fresh_home

berth = sys.argv[1]
server = Server(berth, "--in-memory")


def run(*words, code=0):
    done = subprocess.run([berth, *words, "--data-dir", server.dir], capture_output=True, text=True, timeout=60)
    if done.returncode != code:
        sys.exit(f"berth {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if code else "")


def connect(pair=None):
    tls = ssl.create_default_context(cafile=server.dir + "/pki/ca.crt")
    if pair:
        tls.load_cert_chain(pair + ".crt", pair + ".key")
    return http.client.HTTPSConnection("127.0.0.1", server.port, context=tls, timeout=20)


def ask(connection, token=None, path="/api/v1/namespaces"):
    connection.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def check(name, found, wanted):
    if found != wanted:
        sys.exit(f"{name}: {found}, not {wanted}")


def check_refused(name, connection, *credential):
    """At the next request; the server looks at its files once a millisecond at most, and requests may come sooner."""
    for _ in range(100):
        if ask(connection, *credential) == 401:
            return
    sys.exit(f"{name}: still served")


def kubectl(kubeconfig):
    env = environment(fresh_home(), kubeconfig)
    return subprocess.run([find_kubectls(sys.argv[2])[-1][1], "get", "ns"], capture_output=True, env=env).returncode


def admin_token():
    with open(server.dir + "/pki/admin.token") as file:
        return file.read()


# Removing the file is enough, without a restart, and the old token does not come back with one.
one = connect()
first = admin_token()
check("the first admin.token", ask(one, first), 200)
os.remove(server.dir + "/pki/admin.token")
check_refused("the token of a removed admin.token", one, first)
server.process.terminate()
server.process.wait(20)
server.start("--listen", "127.0.0.1:0", "--in-memory")
one = connect()
check_refused("the removed token after a restart", one, first)
check("the new one", ask(one, admin_token()), 200)

# Rotation, at once and with an overlap.
second = admin_token()
run("token", "rotate")
check_refused("a rotated token", one, second)
check("the one in its place", ask(one, admin_token()), 200)
second = admin_token()
run("token", "rotate", "--overlap", "1h")
check("a rotated token within the overlap", ask(one, second), 200)
check("the one beside it", ask(one, admin_token()), 200)
run("token", "revoke", "--user", "berth-admin")
for token in second, *([admin_token()] if os.path.exists(server.dir + "/pki/admin.token") else []):
    check_refused("a revoked admin's", one, token)

# Tokens of others: made, listed, used, ended.
node = run("token", "create", "--user", "system:node:n1", "--groups", "system:nodes").strip()
check("a node's token for its own node", ask(one, node, "/api/v1/nodes/n1"), 404)
check("a node's token for another", ask(one, node, "/api/v1/nodes/n2"), 403)
listed = run("token", "list")
row = re.search(r"^(\w{12})\s+system:node:n1\s+system:nodes\s+\S+\s+\S+\s+-", listed, re.M)
if not row or node in listed:
    sys.exit("the list of tokens says " + listed)
with open(server.dir + "/pki/tokens") as file:
    if node in file.read():
        sys.exit("the token itself is stored")
run("token", "revoke", row.group(1))
check_refused("a node's revoked token", one, node, "/api/v1/nodes/n1")
run("token", "revoke", "nothing", code=1)
ended = run("token", "create", "--user", "late", "--duration", "1ms").strip()
check_refused("a token that has ended", one, ended)
check("users with spaces", "cannot be the name" in run("token", "create", "--user", "a b", code=1), True)

# A certificate: a connection and a watch that are open are over when it is revoked.
pair = server.dir + "/ann"
run("certificate", "issue", "--user", "ann", "--groups", "system:masters", "--out", pair)
check("the mode of a key", os.stat(pair + ".key").st_mode & 0o777, 0o600)
anns, watch = connect(pair), connect(pair)
check("ann", ask(anns), 200)
watch.request("GET", "/api/v1/namespaces?watch=1")
stream = watch.getresponse()
stream.readline()
serial = re.search(r"^(\w+)\s+ann\s", run("certificate", "list"), re.M).group(1)
run("certificate", "revoke", serial)
check_refused("ann's open connection", anns)
last = [json.loads(line) for line in stream.read().splitlines() if line][-1]
check("ann's open watch", (last["type"], last["object"]["code"]), ("ERROR", 401))
check("ann's new connection", ask(connect(pair)), 401)
if not re.search(serial + r"\s+ann\s+system:masters\s+\S+\s+revoked", run("certificate", "list")):
    sys.exit("the list of certificates: " + run("certificate", "list"))

# All of a user; what is issued afterwards counts. The admin's kubeconfig goes on.
run("certificate", "issue", "--user", "bob", "--groups", "system:masters", "--out", pair)
bobs = connect(pair)
check("bob", ask(bobs), 200)
run("certificate", "revoke", "--user", "bob")
check_refused("bob after it", bobs)
run("certificate", "issue", "--user", "bob", "--groups", "system:masters", "--kubeconfig", pair)
check("bob again", kubectl(pair), 0)
check("the admin", server.ask("GET", "/api/v1/namespaces")[0], 200)
run("certificate", "revoke", "--user", "berth-admin")
check("the admin's old certificate", server.ask("GET", "/api/v1/namespaces")[0], 401)
check("his kubeconfig", kubectl(server.kubeconfig), 0)

# What others may read is not used: neither by a client nor by the server, which say so.
def refused(path, *words):
    os.chmod(path, 0o644)
    done = subprocess.run([berth, *words], capture_output=True, text=True, timeout=60)
    os.chmod(path, 0o600)
    check(f"berth {words[0]} with a {path} for all", (done.returncode, f"run chmod 600 {path}" in done.stderr), (1, True))


refused(server.kubeconfig, "scheduler", "--kubeconfig", server.kubeconfig, "--metrics-bind-address", "0")
refused(server.kubeconfig, "explain", "pod", "p", "--kubeconfig", server.kubeconfig)
server.process.terminate()
server.process.wait(20)
for name in "ca.key", "server.key", "admin.key", "admin.token", "tokens":
    if os.path.exists(server.dir + "/pki/" + name):
        refused(server.dir + "/pki/" + name, "serve", "--in-memory", "--listen", "127.0.0.1:0", "--data-dir", server.dir)
server.start("--listen", "127.0.0.1:0", "--in-memory")
server.stop()
print("credentials: passed")
