#!/usr/bin/env python3
"""Ways past the judge of bindings, each tried on a running `berth up`: a node of 4 cpu with a reservation of 3, and
somebody who would take more than the one that is left. Afterwards no node holds more than it has, by a sum of our own,
and the reservation's owner still gets its room."""
import http.server
import json
import ssl
import sys
import tempfile
import threading
import urllib.request

from cluster import Cluster, expect, pod
from server import Server

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
LINK = "scheduling.koordinator.sh/reservation-allocated"
FINAL = ("Succeeded", "Failed")
REFUSED = (403, 405, 409, 422)
STRATEGIC = "application/strategic-merge-patch+json"


def cores(text):
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def cpu_of(pod):
    """What its containers ask for, or what their statuses say they were given, if that is more."""
    said = pod.get("status", {})
    given = {status["name"]: status for status in said.get("containerStatuses", []) + said.get("initContainerStatuses", [])}
    beside = [c for c in pod["spec"].get("initContainers", []) if c.get("restartPolicy") == "Always"]
    total = 0
    for container in pod["spec"]["containers"] + beside:
        asked = cores(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
        total += max(asked, cores(given.get(container["name"], {}).get("allocatedResources", {}).get("cpu", "0")))
    return total


class Stage:
    """One node of 4 cpu for each way, and a reservation of 3 there."""

    def __init__(self, server):
        self.server = server
        self.scheduler = ssl.create_default_context(cafile=server.dir + "/pki/ca.crt")
        self.scheduler.load_cert_chain(server.dir + "/pki/scheduler.crt", server.dir + "/pki/scheduler.key")
        self.count = 0

    def ask(self, *words, **more):
        return self.server.ask(*words, **more)

    def as_scheduler(self, *words, **more):
        admin, self.server.tls = self.server.tls, self.scheduler
        try:
            return self.server.ask(*words, **more)
        finally:
            self.server.tls = admin

    def must(self, *words, **more):
        code, answer = self.ask(*words, **more)
        if code >= 300:
            raise SystemExit(f"{words[0]} {words[1]}: {code} {answer}")
        return answer

    def until(self, path, name, holds):
        """The object when it is so; it is watched."""
        url = f"{self.server.url}{path}?watch=1&timeoutSeconds=30&fieldSelector=metadata.name%3D{name}"
        last = None
        with urllib.request.urlopen(url, context=self.server.tls, timeout=40) as stream:
            for line in stream:
                last = json.loads(line)["object"]
                if holds(last):
                    return last
        raise SystemExit(f"{path}/{name} did not come to be as expected: {last}")

    def next(self, **spec):
        self.count += 1
        self.node, self.name = f"n-{self.count}", f"r-{self.count}"
        self.add_node(self.node)
        self.reserve(self.name, "3", **spec)
        return self

    def add_node(self, name, cpu="4"):
        sizes = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
        self.must("POST", NODES, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name},
                                               "annotations": {"berth.dev/simulated": "true"}},
                                  "status": {"capacity": sizes, "allocatable": sizes}})

    def reserve(self, name, cpu, phase="Available", **spec):
        self.must("POST", RESERVATIONS, {
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": name},
            "spec": {"owners": [{"labelSelector": {"matchLabels": {"app": name}}}],
                     "template": {"spec": {"nodeName": self.node, "containers": [self.container(cpu)]}}, **spec}})
        self.until(RESERVATIONS, name, lambda r: r["status"].get("phase") == phase)

    @staticmethod
    def container(cpu, name="main", **more):
        return {"name": name, "image": "app", "resources": {"requests": {"cpu": cpu}}, **more}

    def sidecar(self, cpu):
        return self.container(cpu, "beside", restartPolicy="Always")

    def create(self, name, cpu, node=None, labels=None, **spec):
        """The answer's code. Nobody else places it."""
        body = {"metadata": {"name": name, "labels": labels or {}},
                "spec": {"containers": [self.container(cpu)], "schedulerName": "nobody",
                         "terminationGracePeriodSeconds": 0, **spec}}
        if node:
            body["spec"]["nodeName"] = node
        return self.ask("POST", PODS, body)

    def bind(self, name, node=None):
        return self.ask("POST", f"{PODS}/{name}/binding",
                        {"metadata": {"name": name}, "target": {"kind": "Node", "name": node or self.node}})[0]

    def place(self, name, cpu, **more):
        self.create(name, cpu, **more)
        if self.bind(name) >= 300:
            raise SystemExit(f"{name} was not bound to {self.node}")

    def set_status(self, name, status, ask=None):
        return (ask or self.ask)("PATCH", f"{PODS}/{name}/status", {"status": status}, kind=STRATEGIC)[0]

    def reservation_status(self, status, name=None):
        return self.as_scheduler("PATCH", f"{RESERVATIONS}/{name or self.name}/status", {"status": status},
                                 kind="application/merge-patch+json")[0]

    def resize(self, name, cpu):
        return self.ask("PATCH", f"{PODS}/{name}/resize", {"spec": {"containers": [self.container(cpu)]}}, kind=STRATEGIC)[0]

    def owner(self, name=None, **more):
        """A pod that the scheduler places into the reservation."""
        name = name or self.name
        self.create("owner-" + name, "3", labels={"app": name}, **{"schedulerName": "berth", **more})
        return self.until(PODS, "owner-" + name, lambda p: p["spec"].get("nodeName") == self.node and LINK in
                          p["metadata"].get("annotations", {}))

    def held(self, node):
        """The node equation: pods outside of live reservations, and of each of these the larger of what it reserves
        and what is charged to it."""
        pods = [p for p in self.ask("GET", PODS)[1]["items"]
                if p["spec"].get("nodeName") == node and p["status"].get("phase") not in FINAL]
        total = 0
        for r in self.ask("GET", RESERVATIONS)[1]["items"]:
            status = r.get("status", {})
            if status.get("phase") != "Available" or status.get("nodeName") != node:
                continue
            wanted = [o["labelSelector"]["matchLabels"] for o in r["spec"]["owners"]]
            charged = [p for p in pods if json.loads(p["metadata"].get("annotations", {}).get(LINK, "{}")).get("uid") ==
                       r["metadata"]["uid"] and any(w.items() <= p["metadata"].get("labels", {}).items() for w in wanted)]
            reserved = status.get("allocatable", {}).get("cpu", r["spec"]["template"]["spec"]["containers"][0]["resources"]
                                                         ["requests"]["cpu"])
            total += max(cores(reserved), sum(map(cpu_of, charged)))
            pods = [p for p in pods if p not in charged]
        return total + sum(map(cpu_of, pods))


WAYS = []


def way(what, **spec):
    def add(f):
        WAYS.append((what, f, spec))
        return f
    return add


# Each returns the code of the request that must not pass, or None where the sum and the owner say all.

@way("a pod created on the node")
def _(s):
    s.create("made", "4", s.node)


@way("a pod made anew on the node")
def _(s):
    s.place("force", "1")
    s.must("DELETE", f"{PODS}/force?gracePeriodSeconds=0")
    s.create("force", "4", s.node)


@way("a pod created on the node while the node is away")
def _(s):
    s.must("DELETE", f"{NODES}/{s.node}")
    s.create("early", "4", s.node)
    s.add_node(s.node)
    s.until(RESERVATIONS, s.name, lambda r: r["status"]["phase"] == "Failed")
    s.name = f"{s.name}-again"
    s.reserve(s.name, "3")


@way("pods/resize")
def _(s):
    s.place("grown", "1")
    return s.resize("grown", "4")


@way("pods/resize while the node is away")
def _(s):
    s.place("grown-away", "1")
    s.must("DELETE", f"{NODES}/{s.node}")
    s.until(RESERVATIONS, s.name, lambda r: r["status"]["phase"] == "Failed")
    code = s.resize("grown-away", "4")
    s.add_node(s.node)
    s.name = f"{s.name}-again"
    s.reserve(s.name, "3")
    return code


@way("an owner in its reservation grows", allocateOnce=False)
def _(s):
    s.owner(terminationGracePeriodSeconds=0)
    s.place("beside", "1")
    code = s.resize("owner-" + s.name, "4")
    s.must("DELETE", f"{PODS}/owner-{s.name}?gracePeriodSeconds=0")
    return code


@way("a sidecar grows")
def _(s):
    s.place("sidecar", "500m", initContainers=[s.sidecar("500m")])
    beside = {"name": "beside", "resources": {"requests": {"cpu": "3"}}}
    return s.ask("PATCH", f"{PODS}/sidecar/resize", {"spec": {"initContainers": [beside]}}, kind=STRATEGIC)[0]


@way("a sidecar's status says that more was given")
def _(s):
    s.place("told", "500m", initContainers=[s.sidecar("500m")])
    return s.set_status("told", {"initContainerStatuses": [{"name": "beside", "image": "app", "imageID": "", "ready": True,
                                                            "restartCount": 0, "allocatedResources": {"cpu": "4"}}]})


@way("what runs first needs more")
def _(s):
    s.create("first", "500m", initContainers=[s.container("4", "first")])
    return s.bind("first")


@way("the whole pod grows")
def _(s):
    s.place("whole", "500m", resources={"requests": {"cpu": "1"}})
    return s.ask("PATCH", f"{PODS}/whole/resize", {"spec": {"resources": {"requests": {"cpu": "4"}}}}, kind=STRATEGIC)[0]


@way("a container grows beyond its whole pod")
def _(s):
    s.place("narrow", "500m", resources={"requests": {"cpu": "1"}})
    return s.resize("narrow", "4")


@way("a pod asks for less than its containers")
def _(s):
    return s.create("less", "4", s.node, resources={"requests": {"cpu": "1"}})[0]


@way("an ended pod runs again")
def _(s):
    s.place("ended", "1")
    s.set_status("ended", {"phase": "Succeeded"})
    s.place("next", "1")
    return s.set_status("ended", {"phase": "Running"})


@way("a failed pod is pending again")
def _(s):
    s.place("fails", "1")
    s.set_status("fails", {"phase": "Failed"})
    return s.set_status("fails", {"phase": "Pending"})


@way("pods/ephemeralcontainers with other requests")
def _(s):
    s.place("debugged", "1")
    return s.ask("PATCH", f"{PODS}/debugged/ephemeralcontainers", {"spec": {"containers": [s.container("4")]}},
                 kind=STRATEGIC)[0]


@way("pods/ephemeralcontainers with another node")
def _(s):
    other = s.node
    s.next()
    s.place("moved", "1")
    code, _ = s.ask("PATCH", f"{PODS}/moved/ephemeralcontainers", {"spec": {"nodeName": other}}, kind=STRATEGIC)
    return code


@way("a status that says more was given")
def _(s):
    s.place("given", "1")
    return s.set_status("given", {"containerStatuses": [{"name": "main", "image": "app", "imageID": "", "ready": True,
                                                         "restartCount": 0, "allocatedResources": {"cpu": "4"}}]})


@way("a status that cannot be read, and then a node")
def _(s):
    s.create("garbled", "4")
    s.set_status("garbled", {"containerStatuses": [{"name": "main", "image": "app", "imageID": "", "ready": True,
                                                    "restartCount": 0, "allocatedResources": {"memory": "-1"}}]})
    return s.bind("garbled")


@way("an owner that no longer is one", allocateOnce=False)
def _(s):
    s.owner(terminationGracePeriodSeconds=0)
    code, _ = s.ask("PATCH", f"{PODS}/owner-{s.name}", {"metadata": {"labels": {"app": "other"}}}, kind=STRATEGIC)
    s.must("DELETE", f"{PODS}/owner-{s.name}?gracePeriodSeconds=0")
    return code


@way("a reservation that disowns its owner", allocateOnce=False)
def _(s):
    s.owner(terminationGracePeriodSeconds=0)
    code, _ = s.ask("PATCH", f"{RESERVATIONS}/{s.name}",
                    {"spec": {"owners": [{"labelSelector": {"matchLabels": {"app": "other"}}}]}},
                    kind="application/merge-patch+json")
    s.must("DELETE", f"{PODS}/owner-{s.name}?gracePeriodSeconds=0")
    return code


@way("a reservation that says it has more")
def _(s):
    s.place("there", "1")
    return s.reservation_status({"allocatable": {"cpu": "4"}})


@way("a reservation of less than nothing")
def _(s):
    return s.reservation_status({"allocatable": {"cpu": "-4"}})


@way("a reservation that moves to a full node")
def _(s):
    other = s.node
    s.next()
    return s.reservation_status({"nodeName": other})


@way("a reservation that moves to no node")
def _(s):
    return s.reservation_status({"nodeName": "nowhere"})


@way("a reservation that is waiting again")
def _(s):
    return s.reservation_status({"phase": "Pending"})


@way("an ended reservation that holds again")
def _(s):
    s.reserve("short-" + s.name, "1")
    s.reservation_status({"phase": "Failed"}, "short-" + s.name)
    s.place("after-" + s.name, "1")
    return s.reservation_status({"phase": "Available"}, "short-" + s.name)


@way("a waiting reservation that does not wait")
def _(s):
    s.place("here-" + s.name, "1")
    s.reserve("wait-" + s.name, "1", "Waiting", preAllocation=True)
    return s.reservation_status({"phase": "Available"}, "wait-" + s.name)


for size in ("-1", "1e30"):
    @way(f"a node with {size} cpu")
    def _(s, size=size):
        return s.ask("PATCH", f"{NODES}/{s.node}/status", {"status": {"allocatable": {"cpu": size}}}, kind=STRATEGIC)[0]

    @way(f"a new node with {size} cpu")
    def _(s, size=size):
        return s.ask("POST", NODES, {"metadata": {"name": "odd" + size.strip("-")}, "status": {"allocatable": {"cpu": size}}})[0]


def attempt(stage, what, act, spec):
    """Why it got past, or nothing."""
    stage.next(**spec)
    code = act(stage)
    if code is not None and code not in REFUSED:
        return f"{what}: answered {code}"
    holds = stage.held(stage.node)
    if holds > 4:
        return f"{what}: {stage.node} holds {holds} of 4"
    stage.owner()
    return None


def test_ways(berth):
    server = Server(berth, "--nodes", "0", "--in-memory", command="up")
    stage = Stage(server)
    past = []
    for what, act, spec in WAYS:
        try:
            why = attempt(stage, what, act, spec)
        except SystemExit as trouble:
            why = f"{what}: {trouble}"
        if why:
            past.append(why)
    server.stop()
    if past:
        raise SystemExit(f"{len(past)} of {len(WAYS)} ways lead past the judge:\n  " + "\n  ".join(past))


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: pinned}
spec:
  replicas: 2
  selector: {matchLabels: {app: pinned}}
  template:
    metadata: {labels: {app: pinned}}
    spec: {nodeName: node-0, containers: [{name: main, image: app, resources: {requests: {cpu: "3"}}}]}
"""


def test_refused(berth, build):
    """What the node does not take is said as its kubelet would, and a set does not fill the store with such pods."""
    with Cluster(berth, build, "--nodes", "1") as cluster:
        cluster.apply(pod("large", "5", "nodeName: node-0"))
        status = cluster.get("pod", "large")["status"]
        why = "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000"
        expect("status", (status["phase"], status["reason"], status["message"]), ("Failed", "OutOfcpu", "Pod was rejected: " + why))
        expect("as kubectl shows it", cluster.run("get", "pods").split("\n")[1].split()[2], "OutOfcpu")
        (said,) = cluster.events("OutOfcpu")
        expect("event", (said["type"], said["message"], said["involvedObject"]["name"], said["source"]),
               ("Warning", why, "large", {"component": "kubelet", "host": "node-0"}))

        cluster.apply(DEPLOYMENT)
        cluster.wait("deployment/pinned", "jsonpath={.status.readyReplicas}=1")
        cluster.apply(pod("watched", "1"))
        cluster.wait("pod/watched", "condition=Ready")
        failed = [p for p in cluster.get("pods", "-l", "app=pinned")["items"] if p["status"]["phase"] == "Failed"]
        expect("few failed", len(failed) < 5, True)


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}]
extenders:
- {urlPrefix: "http://127.0.0.1:PORT", filterVerb: filter, nodeCacheCapable: true, managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}
"""


class Extender(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"NodeNames": asked["NodeNames"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_ignored(berth, build):
    """A resource that is an extender's business is not the judge's."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Extender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(CONFIG.replace("PORT", str(server.server_port)))
        config.flush()
        with Cluster(berth, build, "--nodes", "1", "--scheduler-config", config.name) as cluster:
            for name in ("gpu-1", "gpu-2"):
                cluster.apply(pod(name, "1").replace('requests: {cpu: "1"}', 'limits: {cpu: "1", example.com/gpu: "1"}'))
                cluster.wait("pod/" + name, "condition=Ready")
    server.shutdown()


test_ways(sys.argv[1])
test_refused(*sys.argv[1:3])
test_ignored(*sys.argv[1:3])
print("guard: passed")
