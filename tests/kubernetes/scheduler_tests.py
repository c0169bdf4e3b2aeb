"""berth scheduler and berth controllers on a real cluster: many pods, kills, restarts."""
import os
import random
import re
import signal
import subprocess
import time

from berths import Watcher, start, start_both
from cluster import PODS, RESERVATIONS, elapsed
from invariants import check
from objects import pod, reservation
from processes import wait_for


def bound_count(cluster):
    return sum(1 for entry in cluster.items(PODS) if entry["spec"].get("nodeName"))


def all_bound(cluster, count):
    """Waits for that many bound pods; when they do not come it says what is known of one that is not."""
    try:
        wait_for(f"{count} pods are bound", lambda: bound_count(cluster) == count)
    except AssertionError as error:
        waiting = [p for p in cluster.items(PODS) if not p["spec"].get("nodeName")]
        raise AssertionError(f"{error}; {len(waiting)} wait, e.g. {waiting[:1]}") from error


def thousand_pods(stage):
    """1,000 pods on 100 nodes with the minimal roles; pods of another scheduler are left alone; events are written"""
    with stage.cluster() as cluster:
        scheduler, _ = start_both(cluster)
        cluster.nodes(100)
        cluster.make(PODS, pod("foreign", scheduler="somebody-else"))
        start_time = time.monotonic()
        cluster.make_many(PODS, [pod(f"p{i}") for i in range(1000)])
        all_bound(cluster, 1000)
        stage.say(f"1,000 pods were created and bound in {elapsed(start_time)}")
        check(cluster)
        assert not Watcher(cluster).pod("foreign")["spec"].get("nodeName")
        wait_for("events say Scheduled", lambda: "Successfully assigned" in cluster.kubectl("get", "events"))
        assert not scheduler.printed("orbidden"), "a role is missing something:\n" + scheduler.tail()
        wait_for("pods run", lambda: all(p["status"]["phase"] == "Running" for p in cluster.items(PODS) if p["spec"].get("nodeName")))
        assert scheduler.stop() == 0


def every_owner_in_its_own(stage):
    """Each of many owners lands in its own reservation among many nodes"""
    count, nodes = (1000, 5000) if stage.rounds >= 50 else (200, 300)
    with stage.cluster(controllers=False, server_flags=["--disable-admission-plugins=ServiceAccount"]) as cluster:
        start_both(cluster)
        cluster.nodes(nodes, lease="0s", workers=16)
        cluster.make_many(RESERVATIONS, [reservation(f"r{i}", f"o{i}", "1") for i in range(count)])
        wait_for("reservations are Available", lambda: all(
            r.get("status", {}).get("phase") == "Available" for r in cluster.items(RESERVATIONS)))
        cluster.make_many(PODS, [pod(f"p{i}", "1", None, labels={"owner": f"o{i}"}) for i in range(count)])
        all_bound(cluster, count)
        wrong = [p["metadata"]["name"] for p in cluster.items(PODS) if f'"r{p["metadata"]["name"][1:]}"' not in str(p["metadata"]["annotations"])]
        assert not wrong, f"{len(wrong)} owners of {count} are not in their own reservation: {wrong[:5]}"
        wait_for("reservations are Succeeded", lambda: all(
            r["status"]["phase"] == "Succeeded" for r in cluster.items(RESERVATIONS)))
        check(cluster)
        stage.say(f"{count} owners of {count} on {nodes} nodes")


def scheduler_kills(stage):
    """kill -9 of the scheduler in mid-flight, 50 Restricted reusable reservations, 500 owners: none over-allocated or unused"""
    dice = random.Random(stage.seed)
    with stage.cluster() as cluster:
        scheduler, _ = start_both(cluster)
        cluster.nodes(60)
        made = [reservation(f"r{i}", "a", "1", allocateOnce=False, allocatePolicy="Restricted", ttl="0") for i in range(50)]
        for entry in made:  # equal reusable ones would each want a node of their own
            entry["metadata"]["labels"]["number"] = entry["metadata"]["name"]
            entry["spec"]["template"]["metadata"]["labels"] = {"number": entry["metadata"]["name"]}
        cluster.make_many(RESERVATIONS, made)
        wait_for("reservations are Available", lambda: all(
            r.get("status", {}).get("phase") == "Available" for r in cluster.items(RESERVATIONS)))
        for round_ in range(stage.rounds):
            must_draw = {"scheduling.koordinator.sh/reservation-affinity": "{}"}
            pods = [pod(f"p{round_}-{i}", "100m", None, labels={"owner": "a"}, annotations=must_draw) for i in range(500)]
            kill_at = dice.randrange(20, 480)
            cluster.make_many(PODS, pods[:kill_at])
            scheduler.kill()
            cluster.make_many(PODS, pods[kill_at:])
            check(cluster)
            scheduler = start(cluster, name=f"berth-scheduler-{round_}")
            all_bound(cluster, 500)
            counts = check(cluster)
            assert counts["owners"] == 500, f"{500 - counts['owners']} owners are outside of the reservations"
            assert counts["charged"] == 50_000, counts
            cluster.clear(PODS)
            wait_for("all charges are returned", lambda: all(
                not r["status"].get("currentOwners") for r in cluster.items(RESERVATIONS)))
        stage.say(f"{stage.rounds} kills, 500 owners each time: none over-allocated, none outside (seed {stage.seed})")


def server_restarts(stage):
    """The API server goes away under load and comes back; watches are taken up again; nothing is oversold or forgotten"""
    with stage.cluster() as cluster:
        scheduler, controllers = start_both(cluster)
        cluster.nodes(20)
        for round_ in range(min(stage.rounds, 5)):
            pods = [pod(f"p{round_}-{i}", "200m", None) for i in range(400)]  # 20 nodes x 4 cpu, to the brim
            cluster.make_many(PODS, pods[:200])
            if round_ % 2:
                cluster.server.kill()
                cluster.start_server()
            else:
                cluster.restart_server()
            cluster.make_many(PODS, pods[200:])
            all_bound(cluster, 400)
            check(cluster)
            cluster.clear(PODS)
        assert scheduler.alive() and controllers.alive()
        stage.say(f"{min(stage.rounds, 5)} restarts")


def compaction(stage):
    """etcd forgets its history while the scheduler is stopped in its tracks: 410, list anew, go on"""
    flags = ["--etcd-compaction-interval=2s", "--watch-cache=false"]
    with stage.cluster(server_flags=flags) as cluster:
        scheduler, _ = start_both(cluster)
        cluster.nodes(10)
        cluster.make_many(PODS, [pod(f"a{i}", "100m", None) for i in range(100)])
        all_bound(cluster, 100)
        os.kill(scheduler.pid, signal.SIGSTOP)
        try:
            cluster.make_many(PODS, [pod(f"b{i}", "100m", None) for i in range(100)])
            cluster.ask("DELETE", f"{PODS}/a0?gracePeriodSeconds=0", {})
            before = time.monotonic()
            wait_for("two compactions passed", lambda: time.monotonic() - before > 6, 10)
        finally:
            os.kill(scheduler.pid, signal.SIGCONT)
        all_bound(cluster, 199)
        cluster.make_many(PODS, [pod(f"c{i}", "100m", None) for i in range(201)])  # 400 fill the ten nodes to the brim
        all_bound(cluster, 400)
        check(cluster)


def overload(stage):
    """A server that lets in three reads and one write at a time and turns the rest away (429): everything is bound all the same"""
    flags = ["--enable-priority-and-fairness=false", "--max-requests-inflight=3", "--max-mutating-requests-inflight=1"]
    with stage.cluster(server_flags=flags) as cluster:
        scheduler, controllers = start_both(cluster)
        cluster.nodes(10)
        cluster.make_many(PODS, [pod(f"p{i}", "100m", None) for i in range(400)])  # the administrator is never turned away
        all_bound(cluster, 400)
        check(cluster)
        assert scheduler.alive() and controllers.alive()
        told = cluster.ask("GET", "/metrics")[1]
        counts = re.findall(r'^apiserver_request_total{.*code="429".*resource="pods".*} (\d+)', told, re.MULTILINE)
        refused = sum(map(int, counts))
        assert refused, "nobody was turned away"
        stage.say(f"{refused} requests for pods were turned away meanwhile")


POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


def forbid_bindings_of(cluster, name):
    """An admission policy by which pods of this name get no node, once it is in force."""
    about = {"metadata": {"name": "no-entry"}}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}]
    cluster.make(POLICIES, {**about, "spec": {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "there is no entry"}]}})
    cluster.make(POLICIES.replace("policies", "policybindings"), {**about, "spec": {
        "policyName": "no-entry", "validationActions": ["Deny"]}})
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "node-0"}}
    wait_for("the policy is in force", lambda: "no entry" in str(
        cluster.ask("POST", f"{PODS}/{name}/binding?dryRun=All", binding)))


def refused_bind(stage):
    """A bind that the server refuses: its reason is at the pod, and in berth explain; when it is over the pod is bound"""
    with stage.cluster() as cluster:
        start_both(cluster)
        cluster.nodes(1)
        cluster.make(PODS, pod("p", schedulingGates=[{"name": "later"}]))
        forbid_bindings_of(cluster, "p")
        cluster.ask("PATCH", f"{PODS}/p", {"spec": {"schedulingGates": []}}, kind="application/merge-patch+json")
        watcher = Watcher(cluster)
        wait_for("the pod says why", lambda: "there is no entry" in watcher.refused("p"))
        (condition,) = [c for c in watcher.pod("p")["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert condition["reason"] == "SchedulerError", condition
        wait_for("an event says why", lambda: any(
            "there is no entry" in event["message"] and event["reason"] == "FailedScheduling" and event["type"] == "Warning"
            for event in cluster.items("/api/v1/namespaces/default/events")))
        said = subprocess.run([cluster.berth, "explain", "pod", "p", "--kubeconfig", cluster.admin], capture_output=True,
                              text=True, timeout=60)
        assert "there is no entry" in said.stdout, said
        cluster.ask("DELETE", f"{POLICIES.replace('policies', 'policybindings')}/no-entry")
        watcher.bound("p")


TESTS = [thousand_pods, every_owner_in_its_own, scheduler_kills, server_restarts, compaction, overload, refused_bind]
