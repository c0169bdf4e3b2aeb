"""The arbitrator of shares on a real Kubernetes: kube-scheduler asks it, its webhooks judge Consumers and hold pods."""
import http.client
import json

from beside_tests import start_kube_scheduler
from berths import start
from cluster import ROOT
from deploy_tests import rest_deployments
from objects import pod
from processes import free_port, wait_for

SHARES = "/apis/kuabe-arbitrator.incubator.k8s.io/v1"
GATE = {"name": "berth.dev/share"}


def prepare(cluster, *flags, extender=True):
    """What deploy/arbitrator has, with its webhook; kube-scheduler asks at the port that is returned."""
    text = cluster.kubectl("kustomize", ROOT / "deploy/arbitrator")
    wait_for("deploy/arbitrator applies", lambda: cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text))
    cluster.kubectl("apply", "-f", ROOT / "deploy/arbitrator/webhook.yaml")
    wait_for("Consumers are served", lambda: cluster.ask("GET", f"{SHARES}/consumers")[0] == 200)
    rest_deployments(cluster)
    webhook, port = free_port(), free_port()
    words = ["--webhook", f"127.0.0.1:{webhook}", "--leader-elect-resource-namespace=berth-system",
             "--metrics-bind-address=0", *flags]
    if extender:
        words += ["--extender", f"127.0.0.1:{port}"]
    start(cluster, "arbitrator", flags=words)
    asks = {"urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter", "preemptVerb": "preempt",
            "nodeCacheCapable": True, "ignorable": False, "httpTimeout": "5s"}
    start_kube_scheduler(cluster, **({"extenders": [asks]} if extender else {}))
    configuration = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/berth-consumers"
    wait_for("the webhook is registered", lambda: cluster.ask("GET", configuration)[0] == 200)
    return port


def ask(port, path, question):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", path, json.dumps(question), {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


def pods_of(cluster, ns):
    return cluster.items(f"/api/v1/namespaces/{ns}/pods")


def running(cluster, ns):
    return sorted(p["metadata"]["name"] for p in pods_of(cluster, ns)
                  if p["status"]["phase"] == "Running" and "deletionTimestamp" not in p["metadata"])


def namespace(cluster, name):
    cluster.kubectl("create", "namespace", name)
    wait_for(f"{name} has a Consumer", lambda: cluster.ask("GET", f"{SHARES}/consumers/{name}")[0] == 200)
    wait_for("its service account", lambda: cluster.ask("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200)


def deployment(ns, replicas):
    container = {"name": "c", "image": "pause:3.10", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "work", "namespace": ns},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": ns}},
                     "template": {"metadata": {"labels": {"app": ns}},
                                  "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}}}


def server_time(cluster):
    """The API server's clock, in whole seconds as creation times are."""
    clock = {"metadata": {"generateName": "clock-"}}
    return cluster.make("/api/v1/namespaces/default/configmaps", clock)["metadata"]["creationTimestamp"]


def told(cluster, ns, **wanted):
    """Waits until the Allocation says so."""
    def look():
        found = cluster.get(f"{SHARES}/allocations/{ns}")
        have = {"deserved": found["spec"].get("deserved", {}).get("cpu"),
                "used": found.get("status", {}).get("used", {}).get("cpu"),
                "reclaim": found.get("status", {}).get("reclaim", {}).get("amounts", {}).get("cpu")}
        assert all(have[key] == value for key, value in wanted.items()), have
        return True
    wait_for(f"the Allocation of {ns} says {wanted}", look)


def patch(cluster, name, spec):
    return cluster.ask("PATCH", f"{SHARES}/consumers/{name}", {"spec": spec}, "application/merge-patch+json")


def evicted(cluster):
    return [event["involvedObject"]["name"] for event in cluster.items("/api/v1/events") if event["reason"] == "Reclaimed"]


def shares_with_kube_scheduler(stage):
    """The seed's T1 to T3: an empty namespace takes nothing; after the grace exactly the newer pod goes, its replacement waits"""
    with stage.cluster() as cluster:
        arbitrator = prepare(cluster, "--grace", "8s")
        cluster.nodes(1, "cpu=2,memory=2Gi,pods=110")
        namespace(cluster, "c1")
        cluster.apply(deployment("c1", 1))
        wait_for("the first runs", lambda: len(running(cluster, "c1")) == 1)
        older = running(cluster, "c1")
        made = pods_of(cluster, "c1")[0]["metadata"]["creationTimestamp"]
        wait_for("a later second", lambda: server_time(cluster) != made)
        cluster.kubectl("scale", "deployment/work", "-n", "c1", "--replicas=2")
        wait_for("both run", lambda: len(running(cluster, "c1")) == 2)
        both = running(cluster, "c1")
        told(cluster, "c1", deserved="2", used="2", reclaim=None)
        namespace(cluster, "c2")
        told(cluster, "c2", deserved=None)
        cluster.apply(deployment("c2", 1))
        told(cluster, "c1", deserved="1", reclaim="1")
        assert running(cluster, "c1") == both, "within the grace nobody goes"
        wait_for("the pod of c2 runs", lambda: len(running(cluster, "c2")) == 1)
        assert running(cluster, "c1") == older, (running(cluster, "c1"), both)
        wait_for("the eviction is told", lambda: evicted(cluster))
        assert evicted(cluster) == [name for name in both if name not in older], evicted(cluster)
        replacement = wait_for("its replacement waits", lambda: [
            p["metadata"]["name"] for p in pods_of(cluster, "c1") if p["status"]["phase"] == "Pending"])[0]

        told(cluster, "c1", deserved="1", used="1")
        # kube-scheduler asks about a pod only where a node has room; asked directly, the arbitrator refuses this one.
        answer = ask(arbitrator, "/filter", {"Pod": cluster.get(f"/api/v1/namespaces/c1/pods/{replacement}"), "NodeNames": ["node-0"]})
        assert answer["NodeNames"] == [] and not answer["Error"], answer
        assert "its share of the cluster: cpu" in answer["FailedAndUnresolvableNodes"]["node-0"], answer
        # Who may be written: the webhook names key, asked and available.
        code, answer = patch(cluster, "c1", {"reserved": {"cpu": "3"}})
        assert code == 422, (code, answer)
        for word in ("spec.reserved[cpu]", '"3"', "2 available"):
            assert word in answer["message"], answer["message"]
        code, answer = patch(cluster, "c1", {"parent": "nobody"})
        assert code == 422 and "spec.parent" in answer["message"], (code, answer)
        assert "DESERVED" in cluster.kubectl("get", "allocations") and "WEIGHT" in cluster.kubectl("get", "consumers")
        cluster.kubectl("delete", "namespace", "c2")
        told(cluster, "c1", deserved="2")
        # kube-scheduler tries again whom an extender refused when something changes in the cluster.
        cluster.kubectl("label", "node", "node-0", "changed=yes")
        wait_for("both of c1 run", lambda: len(running(cluster, "c1")) == 2)
        wait_for("the Consumer of c2 is gone", lambda: cluster.ask("GET", f"{SHARES}/consumers/c2")[0] == 404)
        wait_for("the Allocation of c2 is gone", lambda: cluster.ask("GET", f"{SHARES}/allocations/c2")[0] == 404)


def preemption_leaves_guarantees(stage):
    """kube-scheduler preempts for a pod that its share lets start, but nobody whose namespace would lose its guarantee"""
    with stage.cluster() as cluster:
        prepare(cluster)
        cluster.nodes(2, "cpu=2,memory=8Gi,pods=110")
        cluster.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
        for ns in ("low", "high"):
            namespace(cluster, ns)
        code, answer = patch(cluster, "low", {"reserved": {"cpu": "2"}})
        assert code == 200, answer
        published = lambda: cluster.get(f"{SHARES}/allocations/low")["spec"].get("reserved")  # noqa: E731
        wait_for("the guarantee counts", lambda: published() == {"cpu": "2"})

        def make(ns, name, cpu, **spec):
            made = pod(name, cpu, None, scheduler="default-scheduler", **spec)
            made["metadata"]["namespace"] = ns
            cluster.make(f"/api/v1/namespaces/{ns}/pods", made)
        for i in range(2):
            make("low", f"p{i}", "1", nodeSelector={"kubernetes.io/hostname": f"node-{i}"})
        wait_for("both run", lambda: len(running(cluster, "low")) == 2)
        make("high", "first", "2", priorityClassName="high")

        def refused(name):
            document = cluster.get(f"/api/v1/namespaces/high/pods/{name}")
            return [c["message"] for c in document["status"].get("conditions", [])
                    if c["type"] == "PodScheduled" and "preemption" in c.get("message", "")]
        stage.say(wait_for("the first is refused", lambda: refused("first"))[0])
        assert len(running(cluster, "low")) == 2, pods_of(cluster, "low")
        cluster.kubectl("delete", "pod", "first", "-n", "high", "--now")
        assert patch(cluster, "low", {"reserved": None})[0] == 200
        wait_for("the guarantee is gone", lambda: not published())
        make("high", "second", "2", priorityClassName="high")
        wait_for("the second runs", lambda: running(cluster, "high") == ["second"])
        assert len(running(cluster, "low")) == 1, pods_of(cluster, "low")


def gates_for_kube_scheduler(stage):
    """--mode gates: new pods get our gate on a real API server, and lose it when their share has room for them"""
    with stage.cluster() as cluster:
        prepare(cluster, "--mode", "gates", extender=False)
        gates = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/berth-share-gates"
        wait_for("the gates' webhook is registered", lambda: cluster.ask("GET", gates)[0] == 200)
        cluster.nodes(1)
        namespace(cluster, "small")
        assert patch(cluster, "small", {"hard": {"cpu": "1"}})[0] == 200
        told(cluster, "small")
        wait_for("hard is published", lambda: cluster.get(f"{SHARES}/allocations/small")["spec"].get("hard") == {"cpu": "1"})
        cluster.apply(deployment("small", 2))
        wait_for("one runs", lambda: len(running(cluster, "small")) == 1)
        held = [p for p in pods_of(cluster, "small") if p["status"]["phase"] == "Pending"]
        assert len(held) == 1 and held[0]["spec"]["schedulingGates"] == [GATE], held
        assert patch(cluster, "small", {"hard": {"cpu": "2"}})[0] == 200
        wait_for("both run", lambda: len(running(cluster, "small")) == 2)


TESTS = [shares_with_kube_scheduler, preemption_leaves_guarantees, gates_for_kube_scheduler]
