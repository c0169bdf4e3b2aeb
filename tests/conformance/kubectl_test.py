#!/usr/bin/env python3
"""Drives stock kubectl, every version found, and compares what a person sees.

kubectl_test.py BERTH BUILD_DIR [VERSION...]
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from server import Server, environment, fresh_home

POD = """apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}}
spec:
  containers: [{name: main, image: nginx:1.25, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: %s}\n"
NODE = """apiVersion: v1
kind: Node
metadata: {name: %s}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {architecture: amd64, bootID: "", containerRuntimeVersion: "", kernelVersion: "", kubeProxyVersion: "",
    kubeletVersion: v1.32.0, machineID: "", operatingSystem: linux, osImage: "", systemUUID: ""}
"""
RESERVATION = """apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: %s}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: "1"}}}]}}
"""
BUDGET = """apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {minAvailable: 1, selector: {matchLabels: {app: drained}}}
"""


def debian_kubectl(build):
    """Debian's 1.20, unpacked into the build directory so that it does not replace an installed kubectl."""
    directory = os.path.join(build, "kubernetes-client")
    binary = os.path.join(directory, "usr/bin/kubectl")
    if not os.path.exists(binary) and shutil.which("apt-get"):
        os.makedirs(directory, exist_ok=True)
        subprocess.run("apt-get download kubernetes-client && dpkg -x kubernetes-client_*.deb .", shell=True,
                       cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return binary if os.path.exists(binary) else None


def client_version(binary):
    try:
        text = subprocess.run([binary, "version", "--client", "-o", "json"], capture_output=True, text=True,
                              env=environment(fresh_home(), "/dev/null"), timeout=20).stdout
        return tuple(int(part) for part in json.loads(text)["clientVersion"]["gitVersion"].lstrip("v").split("-")[0].split(".")[:2])
    except (ValueError, KeyError, OSError, subprocess.SubprocessError):
        return None


def find_kubectls(build):
    candidates = glob.glob("/usr/lib/google-cloud-sdk/bin/kubectl.1.*") + [debian_kubectl(build), shutil.which("kubectl")]
    found = {}
    for binary in filter(None, candidates):
        version = client_version(binary)
        if version:
            found.setdefault(version, binary)
    return sorted(found.items())


class Failure(Exception):
    pass


class Kubectl:
    def __init__(self, server, version, binary):
        self.server, self.version, self.binary = server, version, binary
        self.ns = "k%d-%d" % version
        self.env = environment(fresh_home(), server.kubeconfig)

    def command(self, words):
        return [self.binary, "-n", self.ns, *words]

    def __call__(self, *words, stdin=None, code=0, timeout=60, env=None):
        """Runs kubectl; the whole output. code None: any."""
        done = subprocess.run(self.command(words), input=stdin, capture_output=True, text=True, timeout=timeout,
                              env=dict(self.env, **(env or {})))
        if code is not None and done.returncode != code:
            raise Failure("kubectl %s: exit %d\n%s%s" % (" ".join(words), done.returncode, done.stdout, done.stderr))
        return done.stdout + done.stderr

    def watch(self, words, lines, act):
        """Starts a watch, acts, and gives the lines seen."""
        process = subprocess.Popen(self.command(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env)
        timer = threading.Timer(30, process.kill)
        timer.start()
        seen = [process.stdout.readline() for _ in range(lines[0])]
        act()
        seen += [process.stdout.readline() for _ in range(lines[1])]
        timer.cancel()
        process.kill()
        process.wait()
        return "".join(seen)


def see(text, *patterns):
    for pattern in patterns:
        if not re.search(pattern, text, re.M | re.S):
            raise Failure("expected /%s/ in:\n%s" % (pattern, text))


def hide(text, *patterns):
    for pattern in patterns:
        if re.search(pattern, text, re.M):
            raise Failure("did not expect /%s/ in:\n%s" % (pattern, text))


def discovery(k):
    see(k("version", code=None), r"1\.32")
    see(k("api-resources"), r"^pods +po +", r"^reservations +scheduling\.koordinator\.sh/v1alpha1 +false +Reservation")
    see(k("api-versions"), r"^apps/v1$", r"^v1$")
    see(k("cluster-info", code=None), "is running at")
    see(k("get", "--raw", "/readyz?verbose"), r"\[\+\]ping ok")


def creates(k):
    see(k("create", "-f", "-", stdin=POD % ("web", "web")), "pod/web created")
    see(k("create", "-f", "-", stdin=POD % ("web", "web"), code=1), r'AlreadyExists|pods "web" already exists')
    see(k("run", "runner", "--image=nginx"), "pod/runner created")
    see(k("create", "configmap", "cm", "--from-literal=a=b"), "configmap/cm created")
    see(k("create", "secret", "generic", "se", "--from-literal=a=b"), "secret/se created")
    see(k("create", "quota", "qu", "--hard=cpu=1"), "resourcequota/qu created")
    see(k("create", "deployment", "de", "--image=nginx"), "deployment.apps/de created")
    see(k("create", "serviceaccount", "sa"), "serviceaccount/sa created")
    see(k("create", "-f", "-", stdin=RESERVATION % k.ns), "created")
    see(k("create", "-f", "-", stdin=RESERVATION % "bad" + "  ttl: abc\n", code=1),
        r'^The Reservation "bad" is invalid: spec\.ttl: Invalid value: ')
    see(k("create", "-f", "-", stdin=(POD % ("bad", "bad")).replace("containers:", "restartPolicy: Now\n  containers:"),
          code=1), r'^The Pod "bad" is invalid: spec\.restartPolicy: ')
    see(k("create", "-f", "-", stdin=MAP % ("bad", "{}"), code=1), "(?i)invalid|cannot|BadRequest|error")


def gets(k):
    see(k("get", "pods"), r"^NAME +READY +STATUS +RESTARTS +AGE$", r"^web +0/1 +Pending +0 +(\d+m)?(\d+s)?$")
    see(k("get", "pods", "-o", "wide"), r"NODE +NOMINATED NODE +READINESS GATES", r"^web .*<none> +<none> +<none> +<none>")
    see(k("get", "pod", "web", "-o", "yaml"), r"^kind: Pod$", r"^  name: web$", "phase: Pending")
    if json.loads(k("get", "pod", "web", "-o", "json"))["metadata"]["name"] != "web":
        raise Failure("get -o json")
    see(k("get", "pods", "-o", "name"), r"^pod/web$")
    see(k("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}"), r"^nginx:1\.25$")
    see(k("get", "pods", "-o", "custom-columns=N:.metadata.name"), r"^N$", r"^web$")
    see(k("get", "pods", "--show-labels"), r"app=web")
    see(k("get", "pods", "--sort-by=.metadata.name"), r"runner.*web")
    see(k("get", "pods", "-l", "app=web", "--no-headers"), r"\Aweb .*\n\Z")
    see(k("get", "pods", "--field-selector", "metadata.name=web", "-o", "name"), r"\Apod/web\n\Z")
    see(k("get", "pods", "--chunk-size=1", "-o", "name"), r"pod/runner\npod/web")
    see(k("get", "pods", "-A"), r"^NAMESPACE +NAME", r"^%s +web" % k.ns)
    see(k("get", "pod", "none", code=1), r'Error from server \(NotFound\): pods "none" not found')
    see(k("get", "cm,secret"), r"configmap/cm", r"secret/se")
    see(k("get", "all"), "deployment.apps/de")
    see(k("get", "reservation", k.ns), r"^NAME +PHASE +AGE +NODE +TTL +EXPIRES$")
    see(k("get", "pods", "--field-selector", "spec.foo=1", code=1), "field label not supported")


def describes(k):
    see(k("describe", "pod", "web"), r"^Name: +web$", r"^Status: +Pending$", r"QoS Class: +Burstable")
    see(k("describe", "reservation", k.ns), r"^Name: +%s$" % k.ns)
    see(k("describe", "cm", "cm"), r"^Name: +cm$")


def applies(k):
    see(k("apply", "-f", "-", stdin=MAP % ("ap", "one")), "configmap/ap created")
    see(k("apply", "-f", "-", stdin=MAP % ("ap", "one")), "configmap/ap unchanged")
    see(k("diff", "-f", "-", stdin=MAP % ("ap", "two"), code=1), r"^-  key: one$", r"^\+  key: two$")
    see(k("apply", "-f", "-", stdin=MAP % ("ap", "two"), ), "configmap/ap configured")
    see(k("apply", "--dry-run=server", "-f", "-", stdin=MAP % ("ap", "three")), r"configured \(server dry run\)")
    see(k("create", "--dry-run=server", "-f", "-", stdin=MAP % ("dry", "x")), r"created \(server dry run\)")
    see(k("get", "cm", "dry", code=1), "NotFound")
    see(k("get", "cm", "ap", "-o", "jsonpath={.data.key}"), r"^two$")
    see(k("apply", "-f", "-", stdin=RESERVATION % k.ns), "configured")
    see(k("apply", "--server-side", "-f", "-", stdin=MAP % ("ap", "x"), code=1), "server-side apply is not served")
    if k.version >= (1, 25):
        see(k("apply", "-f", "-", stdin=MAP.replace("\ndata", "\ndada") % ("typo", "x"), code=1), 'unknown field "dada"')


def changes(k):
    see(k("patch", "cm", "cm", "-p", '{"data":{"s":"1"}}'), "configmap/cm patched")
    see(k("patch", "cm", "cm", "--type=merge", "-p", '{"data":{"m":"1"}}'), "patched")
    see(k("patch", "cm", "cm", "--type=json", "-p", '[{"op":"remove","path":"/data/m"}]'), "patched")
    see(k("get", "cm", "cm", "-o", "jsonpath={.data}"), r'"s":\s*"1"|s:1')
    see(k("label", "pod", "web", "tier=front"), "pod/web labeled")
    see(k("annotate", "pod", "web", "note=hello"), "pod/web annotate")
    see(k("label", "pod", "web", "bad=-x-", code=1), "(?i)invalid")
    see(k("edit", "cm", "cm", env={"EDITOR": "sed -i s/\\ b$/\\ edited/"}), "configmap/cm edited")
    see(k("get", "cm", "cm", "-o", "jsonpath={.data.a}"), "edited")
    see(k("replace", "-f", "-", stdin=MAP % ("cm", "replaced")), "configmap/cm replaced")
    see(k("scale", "deployment", "de", "--replicas=3"), "deployment.apps/de scaled")
    see(k("get", "deployment", "de"), r"^de +0/3 ")
    see(k("set", "image", "deployment/de", "nginx=nginx:2"), "image updated")
    see(k("expose", "deployment", "de", "--port=80"), "service/de exposed")
    see(k("get", "svc", "de"), r"^de +ClusterIP +10\.96\.\d+\.\d+ +<none> +80/TCP")


def explains(k):
    see(k("explain", "pod.spec.containers"), r"(?i)image")
    see(k("explain", "reservation.spec"), r"owners")


def asks(k):
    see(k("auth", "can-i", "create", "pods"), "yes")
    see(k("auth", "can-i", "--list"), r"\*\.\*")
    if k.version >= (1, 28):
        see(k("auth", "whoami"), "berth-admin")


def watches(k):
    out = k.watch(["get", "pods", "-w"], (3, 1), lambda: k("label", "pod", "web", "seen=yes"))
    see(out, r"^NAME +READY", r"(^web .*){2}")
    out = k.watch(["get", "cm", "-w", "-o", "name"], (0, 1), lambda: None)
    see(out, "configmap/")


def waits(k):
    def later():
        time.sleep(0.5)
        k.server.merge("/api/v1/namespaces/%s/pods/web/status" % k.ns,
                       {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    thread = threading.Thread(target=later)
    thread.start()
    see(k("wait", "--for=condition=Ready", "pod/web", "--timeout=20s"), "pod/web condition met")
    thread.join()
    if k.version >= (1, 23):
        see(k("wait", "--for=jsonpath={.status.phase}=Pending", "pod/web", "--timeout=20s"), "condition met")
    k("create", "configmap", "leaving")
    thread = threading.Timer(0.5, lambda: k("delete", "cm", "leaving"))
    thread.start()
    see(k("wait", "--for=delete", "cm/leaving", "--timeout=20s"), "condition met|deleted")
    thread.join()


def deletes(k):
    held = MAP.replace("{name: %s}", '{name: %s, finalizers: ["example.com/hold"]}')
    k("create", "-f", "-", stdin=held % ("held", "x"))
    see(k("delete", "cm", "held", "--wait=false"), '"held" deleted')
    see(k("get", "cm", "held", "-o", "yaml"), "deletionTimestamp")
    k("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    see(k("get", "cm", "held", code=1), "NotFound")
    see(k("delete", "pod", "runner"), '"runner" deleted')
    see(k("delete", "secret", "--all"), '"se" deleted')
    see(k("delete", "reservation", k.ns), "deleted")
    see(k("delete", "cm", "none", code=1), "NotFound")
    see(k("delete", "cm", "none", "--ignore-not-found"), r"\A\Z")


def kubelet(k, stop):
    """What a node does with pods that shall go."""
    while not stop.wait(0.2):
        _, pods = k.server.ask("GET", "/api/v1/namespaces/%s/pods" % k.ns)
        for pod in pods["items"]:
            if "deletionTimestamp" in pod["metadata"]:
                k.server.ask("DELETE", "/api/v1/namespaces/%s/pods/%s" % (k.ns, pod["metadata"]["name"]), {"gracePeriodSeconds": 0})


def run_pod(k, name, node):
    path = "/api/v1/namespaces/%s/pods/%s" % (k.ns, name)
    k("create", "-f", "-", stdin=POD % (name, "drained"))
    code, answer = k.server.ask("POST", path + "/binding", {"target": {"kind": "Node", "name": node}})
    if code != 201:
        raise Failure("binding: %s" % answer)
    k.server.merge(path + "/status", {"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "image": "nginx", "imageID": "",
                               "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}})


def nodes(k):
    node = "node-" + k.ns
    see(k("create", "-f", "-", stdin=NODE % node), "created")
    see(k("get", "node", node), r"^%s +Ready +<none> +(\d+m)?(\d+s)? +v1\.32\.0" % node)
    run_pod(k, "drained", node)
    see(k("get", "pod", "drained"), r"^drained +1/1 +Running +0 ")
    see(k("logs", "drained"), "container main started")
    see(k("describe", "node", node), r"^Name: +%s$" % node, "drained +100m")
    see(k("top", "node", node), r"^%s +100m +2%% +64Mi" % node)
    see(k("top", "pod", "drained"), r"^drained +100m +64Mi")
    see(k("taint", "node", node, "key=value:NoSchedule"), "tainted")
    see(k("taint", "node", node, "key-"), "untainted")
    see(k("cordon", node), "cordoned")
    see(k("get", "node", node), "SchedulingDisabled")
    see(k("uncordon", node), "uncordoned")
    k("create", "-f", "-", stdin=BUDGET)
    budget = "/apis/policy/v1/namespaces/%s/poddisruptionbudgets/budget/status" % k.ns
    status = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0}
    k.server.merge(budget, {"status": status})
    see(k("get", "pdb", "budget"), r"^budget +1 +N/A +0 ")
    see(k("drain", node, "--force", "--timeout=2s", code=1), "would violate the pod's disruption budget")
    k.server.merge(budget, {"status": {"disruptionsAllowed": 1}})
    stop = threading.Event()
    thread = threading.Thread(target=kubelet, args=(k, stop))
    thread.start()
    try:
        see(k("drain", node, "--force", "--timeout=30s"), "evicted", "drained")
    finally:
        stop.set()
        thread.join()
    see(k("delete", "node", node), "deleted")


def events(k):
    uid = k("get", "pod", "web", "-o", "jsonpath={.metadata.uid}")
    k.server.ask("POST", "/api/v1/namespaces/%s/events" % k.ns, {
        "metadata": {"name": "e1"}, "reason": "Hello", "message": "from the test", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": k.ns, "uid": uid}, "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
    see(k("get", "events"), r"Normal +Hello +pod/web +from the test")
    see(k("describe", "pod", "web"), "from the test")
    if k.version >= (1, 26):
        see(k("events"), "from the test")


def namespaces(k):
    see(k("delete", "namespace", k.ns, "--wait=false"), "deleted")
    see(k("get", "namespace", k.ns), "Terminating")
    see(k("create", "configmap", "late", code=1), "because it is being terminated")


STEPS = [discovery, creates, gets, describes, applies, changes, explains, asks, watches, waits, events, deletes, nodes, namespaces]


def run(server, version, binary):
    k = Kubectl(server, version, binary)
    see(k("create", "namespace", k.ns), "namespace/%s created" % k.ns)
    failures = 0
    for step in STEPS:
        try:
            step(k)
        except (Failure, subprocess.TimeoutExpired) as failure:
            failures += 1
            print("FAILED kubectl %d.%d %s: %s" % (*version, step.__name__, failure), flush=True)
    print("kubectl %d.%d (%s): %d of %d parts passed" % (*version, binary, len(STEPS) - failures, len(STEPS)), flush=True)
    return failures


def main():
    signal.alarm(1400)  # whatever hangs, the test does not
    berth, build = sys.argv[1], sys.argv[2]
    found = find_kubectls(build)
    wanted = sys.argv[3:]
    if wanted:
        found = [(version, binary) for version, binary in found if "%d.%d" % version in wanted]
    if not found:
        print("no kubectl found: install Debian's kubernetes-client, or any kubectl, and run this again")
        return 1
    print("kubectl versions:", ", ".join("%d.%d" % version for version, _ in found), flush=True)
    server = Server(berth)
    failures = 1
    try:
        failures = sum(run(server, version, binary) for version, binary in found)
    finally:
        code = server.stop()
    if code != 0:
        print("FAILED: the server ended with %d after SIGTERM" % code)
        failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
