#!/usr/bin/env python3
"""hostile_objects_test.py BERTH: random objects and patches of the kinds that fleets, shares and nodes bring, through the real door, by every
identity. HOSTILE_SECONDS says how long (15), SEED with what. The server lives, nothing is a 5xx, nobody writes what he may not, a refusal is one
sentence, memory stays bounded; and when the objects are gone again, pods, machines and shares come about as before: whoever read
the objects lives on."""
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from agent_test_parts import Tree  # noqa: E402
from hostile_objects import KINDS, MACHINES, SHARES, Generator, mangled  # noqa: E402
from server import Server  # noqa: E402

NODES_OWN = {"noderesourcetopologies", "devices", "nodemetrics"}
STAYS = {("machinepools", "a"), ("allocations", "default")}
MOST_GROWN = 256 << 10  # KiB
MOST_ANSWER = 64 << 10
http.client._MAXHEADERS = 1000  # there are a hundred warnings
MOST_BODY = 3 << 20  # more is not read
POD_OF = {"restartPolicy": "Always", "nodeSelector": {"kubernetes.io/hostname": "node-2"},
          "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}]}
class Attack:
    def __init__(self, berth, seed):
        self.dice = random.Random(seed)
        self.server = Server(berth, "--nodes", "3", "--shares", "--fleet", "a: {cpu: 40, memory: 64Gi}, z: {b: {cpu: 8, memory: 8Gi}}", command="up")
        self.tokens = {who: "Bearer " + self.token(*words) for who, words in {
            "admin": ("root", "system:masters"), "node": ("system:node:node-0", "system:nodes"),
            "scheduler": ("berth-scheduler", "berth:schedulers"), "user": ("ann", "people")}.items()}
        self.tokens["anonymous"] = ""
        self.counts, self.slowest, self.number = {}, 0.0, 0
        self.connection = None
        schemas = {}
        for version in sorted({kind[0] for kind in KINDS}):
            schemas.update(json.loads(self.ask("admin", "GET", "/openapi/v3/apis/" + version)[1])["components"]["schemas"])
        self.generator = Generator(self.dice, schemas)

    def token(self, user, groups):
        return subprocess.run([self.server.berth, "token", "create", "--data-dir", self.server.dir, "--user", user, "--groups", groups],
                              stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def ask(self, who, method, path, body=b"", kind="application/json"):
        """On one connection, until it is closed."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        for again in range(2):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=60, context=self.plain())
            begun = time.monotonic()
            try:
                headers = {"Content-Type": kind, **({"Authorization": self.tokens[who]} if self.tokens[who] else {})}
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
                if self.server.process.poll() is not None:
                    raise SystemExit("FAILED: %s %s: the server ended with %d" % (method, path, self.server.process.returncode))
                if len(body) > MOST_BODY:
                    return 413, b"cut off"
                if again:
                    raise
                continue
            self.slowest = max(self.slowest, time.monotonic() - begun)
            if answer.will_close:
                self.connection.close()
                self.connection = None
            return answer.status, text

    def plain(self):
        import ssl
        return ssl.create_default_context(cafile=self.server.dir + "/pki/ca.crt")

    def move(self):
        """One request; what is wrong with what came of it."""
        dice, kind = self.dice, self.dice.choice(KINDS)
        who = dice.choice(["admin"] * 5 + ["node", "node", "scheduler", "user", "anonymous"])
        version, resource, word, in_namespace, names = kind[:5]
        name = dice.choice(names)
        folder = "/apis/" + version + ("/namespaces/default/" if in_namespace else "/") + resource
        body = self.generator.bent(kind) if dice.random() < 0.75 else self.generator.object(kind, name)
        body["metadata"]["name"] = name
        body.update({"apiVersion": version, "kind": word} if dice.random() < 0.9 else {})
        verb = dice.choice(["POST"] * 4 + ["PUT"] * 5 + ["merge"] * 6 + ["json"] * 4 + ["apply", "strategic", "DELETE", "list"])
        path, method, kind_of = folder + "/" + name + dice.choice(["", "", "/status"] if "status" in kind[5] else [""]), verb, "application/json"
        if verb == "POST":
            path = folder
        elif verb == "list":
            path, method, body = folder + dice.choice(["?fieldSelector=spec.x%3Dy", "?labelSelector=a+in+(b", "?limit=-1", "?continue=x", ""]), "GET", b""
        elif verb == "PUT":
            known = json.loads(self.ask("admin", "GET", folder + "/" + name)[1]).get("metadata", {})
            body["metadata"].update({"resourceVersion": known["resourceVersion"]} if "resourceVersion" in known and dice.random() < 0.8 else {})
        elif verb != "DELETE":
            method = "PATCH"
            kind_of = {"merge": "application/merge-patch+json", "json": "application/json-patch+json", "apply": "application/apply-patch+yaml",
                       "strategic": "application/strategic-merge-patch+json"}[verb]
            path += "?fieldManager=m&force=true" if verb == "apply" else ""
            body = self.generator.steps(body) if verb == "json" else body
        elif verb == "DELETE":
            body = b""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if data and dice.random() < 0.05:
            data = mangled(dice, data)
        code, text = self.ask(who, method, path, data, kind_of)
        self.counts[(who, code // 100)] = self.counts.get((who, code // 100), 0) + 1
        fault = self.fault(who, method, resource, name, code, text)
        return fault and "%s: %s %s as %s (%s) -> %d %s\n%s" % (fault, method, path, who, kind_of, code, text[:700], data[:1000])

    def begin(self):
        """Something to change, of every kind and name."""
        for kind in KINDS:
            folder = "/apis/" + kind[0] + ("/namespaces/default/" if kind[3] else "/") + kind[1]
            for name in kind[4]:
                body = self.generator.bent(kind)
                body["metadata"]["name"] = name
                self.ask("admin", "POST", folder, body)

    def fault(self, who, method, resource, name, code, text):
        if code >= 500:
            return "an internal error"
        may = who == "admin" or (who == "node" and resource in NODES_OWN and name == "node-0") or (who == "scheduler" and method == "GET")
        if code < 300 and not may and not (who == "node" and method == "GET"):
            return "somebody does what he may not"
        if code == 401 and who != "anonymous":
            return "a good token is not known"
        if code >= 400:
            message = text.decode().rstrip("\n")  # as the door says it, before a body is read
            if message.startswith("{"):
                message = json.loads(text).get("message", "")
            if not message or "\n" in message or len(text) > MOST_ANSWER:
                return "a refusal that is not one sentence"
        return None

    def clean(self):
        """Everything goes, also what has somebody's finalizer."""
        for version, resource, _, in_namespace, *_ in KINDS:
            folder = "/apis/" + version + ("/namespaces/default/" if in_namespace else "/") + resource
            for item in json.loads(self.ask("admin", "GET", folder)[1])["items"]:
                name = item["metadata"]["name"]
                if (resource, name) in STAYS:
                    continue
                self.ask("admin", "DELETE", folder + "/" + name)
                self.ask("admin", "PATCH", folder + "/" + name, {"metadata": {"finalizers": None}}, "application/merge-patch+json")

    def until(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if self.server.process.poll() is not None or time.monotonic() > end:
                raise SystemExit("FAILED: %s: %s" % (what, "the server ended with %s" % self.server.process.poll() if
                                                     self.server.process.poll() is not None else "not within %d s" % seconds))
            time.sleep(0.01)

    def all_is_well(self):
        """How long it takes that a pod is bound, a machine runs and a share is told, of nobody whom the objects concerned."""
        self.number += 1
        begun, name, machines = time.monotonic(), "probe-%d" % self.number, "/apis/" + MACHINES + "/namespaces/default/machines"
        pods = "/api/v1/namespaces/quiet/pods"

        def document(path):
            code, text = self.ask("admin", "GET", path)
            return json.loads(text) if code == 200 else {}

        for path, body in (("/api/v1/namespaces", {"metadata": {"name": "quiet"}}),
                           ("/apis/" + MACHINES + "/machineclasses", {"metadata": {"name": "probe"}, "capabilities": {"cpu": "1", "memory": "1Gi"}}),
                           (pods, {"metadata": {"name": name}, "spec": POD_OF}),
                           (machines, {"metadata": {"name": name}, "spec": {"machineClassRef": {"name": "probe"}}})):
            code, text = self.ask("admin", "POST", path, body)
            if code not in (201, 409):
                raise SystemExit("FAILED: %s: %d %s" % (path, code, text[:500]))
        self.until("a pod is bound", lambda: document(pods + "/" + name).get("spec", {}).get("nodeName"))
        took_pod = time.monotonic() - begun
        self.until("a machine runs", lambda: document(machines + "/" + name).get("status", {}).get("state") == "Running")
        self.until("a share is told", lambda: document("/apis/" + SHARES + "/allocations/quiet").get("spec") is not None)
        took = time.monotonic() - begun
        for path in (pods + "/" + name + "?gracePeriodSeconds=0", machines + "/" + name):
            self.ask("admin", "DELETE", path)
        self.until("a machine goes", lambda: not document(machines + "/" + name))
        return took_pod, took


def agent(attack, place):
    """A real one, of node-0, on plain files."""
    tree = Tree(place + "/cgroup")
    return subprocess.Popen([attack.server.berth, "agent", "--kubeconfig", attack.server.kubeconfig, "--node", "node-0", "--any-files", "--cgroup-root",
                             str(tree.root), "--topology", "synthetic:socket:2 numa:1 core:4 pu:1", "--metrics-bind-address", "0"],
                            stderr=open(place + "/agent.log", "w"))


def main():
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    seconds = float(os.environ.get("HOSTILE_SECONDS", "15"))
    print("SEED=%d" % seed, flush=True)
    attack, place = Attack(sys.argv[1], seed), tempfile.mkdtemp(prefix="berth-hostile-")
    its_agent = agent(attack, place)
    try:
        first = [attack.all_is_well() for _ in range(3)]
        before, most, end, rounds, after = attack.server.memory_kb(), 0, time.monotonic() + seconds, 0, []
        while time.monotonic() < end:
            attack.begin()
            for _ in range(200):
                fault = attack.move()
                if fault:
                    raise SystemExit("FAILED: " + fault)
                most = max(most, attack.server.memory_kb())
            attack.clean()
            after.append(attack.all_is_well())
            rounds += 1
            if its_agent.poll() is not None:
                raise SystemExit("FAILED: the agent ended with %d" % its_agent.returncode)
        for who in attack.tokens:
            print("%-10s %d done, %d refused" % (who, attack.counts.get((who, 2), 0), attack.counts.get((who, 4), 0)))
        print("%d rounds; slowest answer %.2f s; memory %d MiB, at most %d; a pod and all: %.2f, %.2f s at first, at most %.2f, %.2f between" % (
            rounds, attack.slowest, before >> 10, most >> 10, *first[-1], max(a for a, _ in after), max(b for _, b in after)))
        if most - before > MOST_GROWN:
            raise SystemExit("FAILED: memory grew by %d MiB" % ((most - before) >> 10))
        usual, later = max(sum(pair) for pair in first), sorted(sum(pair) for pair in after)[len(after) // 2]
        if later > 10 * usual + 1:
            raise SystemExit("FAILED: pods and machines take %.1f s, %.1f s before" % (later, usual))
        its_agent.terminate()
        if its_agent.wait(20) != 0:
            raise SystemExit("FAILED: SIGTERM ends the agent with %d" % its_agent.returncode)
    finally:
        its_agent.kill()
        its_agent.wait()
        shutil.rmtree(place)
        code = attack.server.stop()
    print("hostile objects: %s" % ("passed" if code == 0 else "exit code %d" % code))
    return code


sys.exit(main())
