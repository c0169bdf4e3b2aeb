"""The webhook that keeps kube-scheduler, and everybody else, out of reserved room, cores and devices."""
import collections
import concurrent.futures
import json
import re
import time

from berths import Watcher, start
from beside_tests import start_kube_scheduler
from cluster import PODS, RESERVATIONS, ROOT
from deploy_tests import install, rest_deployments
from invariants import check
from objects import pod, reservation
from parts_tests import CORES, DEVICES, GPU, LSR, ids, lsr, machine, with_gpu
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


def bind(cluster, name, node, tls=None, annotations=None):
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": annotations or {}},
            "target": {"kind": "Node", "name": node}}
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


def cores(cpuset):
    return {CORES: json.dumps({"cpuset": cpuset})}


def gpu(minor, percent):
    amounts = {"koordinator.sh/gpu-core": str(percent), "koordinator.sh/gpu-memory-ratio": str(percent),
               "koordinator.sh/gpu-memory": str(percent * (32 << 30) // 100)}
    return {DEVICES: json.dumps({"gpu": [{"minor": minor, "resources": amounts}]})}


def unbound(made):
    """For whoever binds it by hand."""
    made["spec"]["schedulerName"] = "nobody"
    return made


def given(cluster):
    """What pods and reservations were given, from their records alone: nothing twice. (node, CPU) and (node, GPU) -> percents."""
    taken, held = collections.Counter(), collections.Counter()
    names = {r["metadata"]["uid"]: r for r in cluster.items(RESERVATIONS)}
    for entry in cluster.items(PODS):
        notes, node = entry["metadata"].get("annotations", {}), entry["spec"].get("nodeName")
        if not node:
            continue
        for cpu in ids(json.loads(notes.get(CORES) or "{}").get("cpuset", "")):
            taken[node, "cpu", cpu] += 100
        for one in json.loads(notes.get(DEVICES) or "{}").get("gpu", []):
            taken[node, "gpu", one["minor"]] += int(one["resources"]["koordinator.sh/gpu-memory-ratio"])
    for entry in names.values():
        status = entry.get("status", {})
        if status.get("phase") != "Available" or status.get("currentOwners"):
            continue
        for cpu in ids(status.get("resourceStatus", {}).get("cpuset", "")):
            held[status["nodeName"], "cpu", cpu] += 100
        for one in status.get("deviceAllocated", {}).get("gpu", []):
            held[status["nodeName"], "gpu", one["minor"]] += int(one["resources"]["koordinator.sh/gpu-memory-ratio"])
    for key, percent in (taken + held).items():
        assert percent <= 100, f"{key} is given to {taken[key]} % and held to {held[key]} %"
    return taken


def no_forged_records(cluster):
    """node-0 has a reservation of 4 cores and one of a GPU, node-1 nothing but a Device and a topology."""
    (held,) = {e["metadata"]["name"]: e for e in cluster.items(RESERVATIONS) if e["metadata"]["name"] == "cores"}.values()
    mine = held["status"]["resourceStatus"]["cpuset"]
    reserved = cluster.get(f"{RESERVATIONS}/gpu")["status"]["deviceAllocated"]["gpu"][0]["minor"]
    cluster.make(PODS, unbound(with_gpu("g", 50, "x")))
    cluster.make(PODS, unbound(lsr("c", 4, "x")))
    forged = [("g", "node-1", gpu(0, 10), "not what the pod asks for"), ("g", "node-1", gpu(7, 50), "there is no gpu 7"),
              ("g", "node-1", None, "its record names 0 of 1 gpu devices"), ("g", "node-1", {DEVICES: "{"}, "device-allocated"),
              ("g", "node-0", gpu(reserved, 50), "too little left"), ("c", "node-1", cores("90-93"), "is not there"),
              ("c", "node-1", cores("0-1"), "2 CPUs are named"), ("c", "node-0", cores(mine), "is another's"),
              ("c", "node-1", {**cores("0-3"), **gpu(0, 50)}, "asks for no gpu device")]
    for name, node, notes, why in forged:
        code, answer = bind(cluster, name, node, annotations=notes)
        assert code == 409 and why in answer["message"], (name, node, notes, code, answer)
    assert bind(cluster, "g", "node-1", annotations=gpu(1, 50))[0] == 201
    assert bind(cluster, "c", "node-1", annotations=cores("0-3"))[0] == 201


def one_of_many(cluster):
    """Of many bindings at once that name the same GPU, or the same cores, one is made."""
    races = [(gpu(0, 60), [with_gpu(f"race-g{i}", 60, "x") for i in range(8)]),
             (cores("4-5"), [lsr(f"race-c{i}", 2, "x") for i in range(8)])]
    for notes, pods in races:
        cluster.make_many(PODS, [unbound(made) for made in pods])

        def attempt(made, notes=notes):
            return bind(cluster, made["metadata"]["name"], "node-1", annotations=notes)[0]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(attempt, pods))
        assert sorted(codes) == [201] + [409] * 7, codes


def parts_are_given_once(stage):
    """Whoever binds: no core and no part of a GPU has two holders, where something is reserved and elsewhere; two schedulers"""
    with stage.cluster() as cluster:
        # Nobody is trusted, so that both schedulers are asked.
        webhook = prepare(cluster, "--binding-webhook-trusts", "nobody")
        cluster.nodes(2, "cpu=24,memory=64Gi,pods=110")
        for i in range(2):
            cluster.apply(*machine(f"node-{i}"))
        held(cluster, ["node-0", "node-1"])
        at = {"nodeSelector": {"kubernetes.io/hostname": "node-0"}}
        with_device = reservation("gpu", "a", "1", template=at)
        with_device["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"][GPU] = "100"
        cluster.apply(reservation("cores", "a", "4", labels=LSR, template={"labels": LSR, **at}), with_device)
        watch = Watcher(cluster)
        for name in ("cores", "gpu"):
            watch.phase(name, "Available")
        no_forged_records(cluster)
        one_of_many(cluster)
        given(cluster)
        cluster.clear(PODS)
        start(cluster, name="berth-second", flags=["--scheduler-name", "second", "--metrics-bind-address", "0"])
        many = [with_gpu(f"g{i}", 50, "x") for i in range(10)] + [lsr(f"c{i}", 3, "x") for i in range(14)]
        for i, made in enumerate(many):
            made["spec"]["schedulerName"] = ("berth", "second")[i % 2]
        cluster.make_many(PODS, many)
        # Free are 3 GPUs, 12 cores of node-0 and 16 of node-1: 6 halves, and 4 and 5 times 3 cores.
        wait_for("15 pods are bound", lambda: sum(1 for p in cluster.items(PODS) if p["spec"].get("nodeName")) == 15, seconds=90)
        taken = given(cluster)
        assert sum(v for (_, kind, _), v in taken.items() if kind == "gpu") == 300, taken
        webhook.kill()
        cluster.make(PODS, unbound(pod("plain", "100m", None)))
        code, answer = bind(cluster, "plain", "node-1", annotations=cores("15"))
        assert code == 500 and "failed calling webhook" in answer["message"], (code, answer)
        given(cluster)


TESTS = [reserved_room_is_closed, pods_do_not_grow_into_reserved_room, renewed_certificate, parts_are_given_once]
