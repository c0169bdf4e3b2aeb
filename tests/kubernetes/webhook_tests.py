"""The webhook that keeps kube-scheduler, and everybody else, out of reserved room."""
import re
import time

from berths import Watcher, start
from beside_tests import start_kube_scheduler
from cluster import PODS, RESERVATIONS, ROOT
from deploy_tests import install, rest_deployments
from invariants import check
from objects import pod, reservation
from processes import free_port, wait_for

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/berth-bindings"


def start_webhook(cluster, *flags, name="berth-controllers"):
    """The controllers with their webhook; returns when the API server has been told of it."""
    port = free_port()
    process = start(cluster, "controllers", name=name, flags=[
        "--metrics-bind-address", "0", "--binding-webhook", f"127.0.0.1:{port}", *flags])

    def registered():
        code, found = cluster.ask("GET", CONFIGURATION)
        return code == 200 and f":{port}/" in found["webhooks"][0]["clientConfig"]["url"]
    wait_for("the webhook is registered", registered)
    return process


def prepare(cluster, *flags):
    install(cluster)
    cluster.kubectl("apply", "--server-side", "-k", ROOT / "deploy/webhook")
    rest_deployments(cluster)
    start(cluster)
    return start_webhook(cluster, *flags)


def held(cluster, names):
    """Waits until bindings to these nodes, and to no others, fail closed."""
    def listed():
        webhook = cluster.get(CONFIGURATION)["webhooks"][0]
        return set(re.findall('"([^"]*)"', webhook["matchConditions"][0]["expression"])) == set(names)
    wait_for(f"{names} are listed as held", listed)


def bind(cluster, name, node, tls=None):
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    return cluster.ask("POST", f"{PODS}/{name}/binding", body, tls=tls)


def reserved_room_is_closed(stage):
    """kube-scheduler on the same nodes cannot bind into reserved room; owners can; a burst never oversells; dead, it fails closed"""
    with stage.cluster() as cluster:
        webhook = prepare(cluster)
        start_kube_scheduler(cluster)
        cluster.nodes(4)
        watch = Watcher(cluster)
        cluster.make_many(RESERVATIONS, [reservation(f"r{i}", f"o{i}", "3") for i in range(3)])
        nodes = {watch.phase(f"r{i}", "Available")["status"]["nodeName"] for i in range(3)}
        assert len(nodes) == 3, nodes
        held(cluster, nodes)
        # Beside each reservation is room for two of these; kube-scheduler sees room for eight.
        cluster.make_many(PODS, [pod(f"theirs-{node}-{i}", "500m", None, scheduler="default-scheduler",
                                     nodeSelector={"kubernetes.io/hostname": node}) for i in range(4) for node in nodes])
        wait_for("6 pods are bound", lambda: sum(1 for p in cluster.items(PODS) if p["spec"].get("nodeName")) == 6)
        wait_for("a refusal is told", lambda: "has no room for it" in cluster.kubectl("get", "events", "-A", "-o", "yaml"))
        counts = check(cluster)
        assert counts["bound"] == 6, counts
        cluster.make_many(PODS, [pod(f"owner-{i}", "3", None, labels={"owner": f"o{i}"}) for i in range(3)])
        for i in range(3):
            watch.bound(f"owner-{i}")
            assert watch.reservation_of(f"owner-{i}") == f"r{i}"
        assert check(cluster)["bound"] == counts["bound"] + 3
        cluster.clear()
        cluster.apply(reservation("r", "a", "1"))
        closed = watch.phase("r", "Available")["status"]["nodeName"]
        held(cluster, [closed])
        webhook.kill()
        opened = next(f"node-{i}" for i in range(4) if f"node-{i}" != closed)
        for name in ("p", "q"):
            cluster.make(PODS, pod(name, "100m", None, scheduler="nobody"))
        code, answer = bind(cluster, "p", closed)
        assert code == 500 and "failed calling webhook" in answer["message"], (code, answer)
        assert bind(cluster, "q", opened)[0] == 201
        start_webhook(cluster, name="berth-controllers-2")
        assert bind(cluster, "p", closed)[0] == 201
        check(cluster)


def renewed_certificate(stage):
    """The webhook's certificate is replaced while it is in use"""
    with stage.cluster() as cluster:
        prepare(cluster, "--binding-webhook-certificate-life", "9s")
        cluster.nodes(1, "cpu=64,memory=32Gi,pods=5000")
        cluster.apply(reservation("r", "a", "1"))
        Watcher(cluster).phase("r", "Available")
        held(cluster, ["node-0"])
        first = cluster.get(CONFIGURATION)["webhooks"][0]["clientConfig"]["caBundle"]
        done, until, refused = 0, time.monotonic() + 20, 0
        while time.monotonic() < until:
            cluster.make(PODS, pod(f"p{done}", "10m", None, scheduler="nobody"))
            # A new certificate means a new listener: one request may meet the moment in between, and is sent again.
            while bind(cluster, f"p{done}", "node-0")[0] != 201:
                refused += 1
                assert refused < 20, bind(cluster, f"p{done}", "node-0")
                time.sleep(0.1)
            done += 1
        assert first not in cluster.get(CONFIGURATION)["webhooks"][0]["clientConfig"]["caBundle"], "never renewed"
        stage.say(f"{done} bindings, {refused} sent again")


def resize(cluster, name, cpu):
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    return cluster.ask("PATCH", f"{PODS}/{name}/resize", body, kind="application/strategic-merge-patch+json")


def pods_do_not_grow_into_reserved_room(stage):
    """A pod beside a reservation is resized into what is free there, and no further"""
    with stage.cluster() as cluster:
        prepare(cluster)
        cluster.nodes(1)
        watch = Watcher(cluster)
        cluster.apply(reservation("r", "o", "3"))
        watch.phase("r", "Available")
        held(cluster, ["node-0"])
        cluster.make(PODS, pod("p", "500m", None, scheduler="nobody"))
        assert bind(cluster, "p", "node-0")[0] == 201
        code, answer = resize(cluster, "p", "1100m")
        assert code == 409 and "Insufficient cpu" in answer["message"], (code, answer)
        code, answer = resize(cluster, "p", "1")
        assert code == 200, (code, answer)
        check(cluster)
        cluster.make(PODS, pod("q", "100m", None, scheduler="nobody"))
        code, answer = bind(cluster, "q", "node-0")
        assert code == 409, (code, answer)
        assert resize(cluster, "p", "800m")[0] == 200
        wait_for("what it left is free", lambda: bind(cluster, "q", "node-0")[0] == 201)
        check(cluster)


TESTS = [reserved_room_is_closed, pods_do_not_grow_into_reserved_room, renewed_certificate]
