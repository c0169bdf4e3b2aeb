#!/usr/bin/env python3
"""Guarantees and shares, as a tenant's administrator sees them through kubectl: the seed's T1 to T3, and what is published."""
import json
import subprocess
import sys

from cluster import Cluster, expect, pod

WORK = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: work, namespace: NS}
spec:
  replicas: COUNT
  selector: {matchLabels: {app: NS}}
  template:
    metadata: {labels: {app: NS}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: app, resources: {requests: {cpu: "1", memory: 1Gi}}}]
"""


def work(ns, count):
    return WORK.replace("NS", ns).replace("COUNT", str(count))


def running(cluster, ns):
    pods = cluster.get("pods", "-n", ns)["items"]
    return sorted(pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"
                  and "deletionTimestamp" not in pod["metadata"])


def berth_says(berth, cluster, *words):
    return subprocess.run([berth, *words, "--kubeconfig", cluster.env["KUBECONFIG"]], check=True, capture_output=True,
                          text=True, env=cluster.env, timeout=60).stdout


def gates(berth, build):
    """Nobody tries to place a pod before its share has room."""
    with Cluster(berth, build, "--shares", "--share-gates", "--nodes", "1", "--node-cpu", "4") as cluster:
        cluster.apply("apiVersion: kuabe-arbitrator.incubator.k8s.io/v1\nkind: Consumer\nmetadata: {name: small}\n"
                      'spec: {hard: {cpu: "1"}}\n')
        cluster.run("create", "namespace", "small")
        for name in ("first", "second"):
            cluster.run("apply", "-n", "small", "-f", "-", stdin=pod(name, 1))
        cluster.run("wait", "pod/first", "-n", "small", "--for=condition=Ready", "--timeout=60s")
        held = cluster.get("pod", "second", "-n", "small")
        expect("the gate", held["spec"]["schedulingGates"], [{"name": "berth.dev/share"}])
        cluster.run("patch", "consumer", "small", "--type=merge", "-p", '{"spec":{"hard":{"cpu":"2"}}}')
        cluster.run("wait", "pod/second", "-n", "small", "--for=condition=Ready", "--timeout=60s")


def test(berth, build):
    flags = ("--shares", "--grace", "15s", "--nodes", "1", "--node-cpu", "2", "--node-memory", "2Gi")
    with Cluster(berth, build, *flags) as cluster:
        # T1: c1 is alone, and everything is its.
        cluster.run("create", "namespace", "c1")
        cluster.wait_for_value("consumers", "{.metadata.name}", "c1", 30)
        cluster.apply(work("c1", 2))
        cluster.wait_for_value("allocation/c1", "{.status.used.cpu}/{.spec.deserved.cpu}", "2/2", 30)
        before = running(cluster, "c1")
        newest = max(cluster.get("pods", "-n", "c1")["items"],
                     key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["uid"]))["metadata"]
        # T2: an empty c2 takes nothing from anybody.
        cluster.run("create", "namespace", "c2")
        cluster.wait_for_value("allocations", "{.metadata.name}", "c2", 30)
        # T3: c2 wants its half.
        cluster.apply(work("c2", 1))
        cluster.wait_for_value("allocation/c1", "{.spec.deserved.cpu}/{.status.reclaim.amounts.cpu}", "1/1", 30)
        expect("within the grace nobody goes", running(cluster, "c1"), before)
        cluster.run("wait", "deployment/work", "-n", "c2", "--for=condition=Available", "--timeout=90s")
        left = running(cluster, "c1")
        expect("one is left of c1", len(left), 1)
        evicted = [event["involvedObject"]["name"] for event in cluster.events("Reclaimed")]
        expect("exactly one was evicted", evicted, [name for name in before if name not in left])
        same_second = len({pod["metadata"]["creationTimestamp"] for pod in cluster.get("pods", "-n", "c1")["items"]
                           if pod["metadata"]["name"] in before}) == 1
        if not same_second:
            expect("the newer one", evicted, [newest["name"]])
        waiting = [pod for pod in cluster.get("pods", "-n", "c1")["items"] if pod["status"].get("phase") == "Pending"]
        expect("its replacement waits", len(waiting), 1)
        cluster.wait_for_value("allocation/c1", "{.spec.deserved.cpu}/{.status.used.cpu}/{.status.overusedSince}", "1/1/", 30)
        table = cluster.run("get", "allocations")
        expect("columns", table.split("\n")[0].split()[:4], ["NAME", "RESERVED", "DESERVED", "USED"])
        # What a person may write, and what not.
        said = ""
        try:
            cluster.run("patch", "consumer", "c1", "--type=merge", "-p", '{"spec":{"reserved":{"cpu":"3"}}}')
        except SystemExit as error:
            said = str(error)
        for word in ("spec.reserved[cpu]", '"3"', "2 available"):
            expect(f"a guarantee above the cluster is refused, and {word} is said: {said}", word in said, True)
        # What the commands of a person say of the same server.
        told = json.loads(berth_says(berth, cluster, "shares", "-o", "json"))
        shares = {one["name"]: one["deserved"].get("cpu") for one in told["consumers"]}
        expect("berth shares", (shares["c1"], shares["c2"]), ("1", "1"))
        expect("who may start", [pod["admitted"] for pod in told["pods"]], [False])
        said = berth_says(berth, cluster, "explain", "consumer", "c1")
        expect("berth explain consumer: " + said, "c1" in said and "cpu" in said, True)
        # A namespace goes, and its Consumer with it.
        cluster.run("delete", "namespace", "c2")
        cluster.wait("consumer/c2", "delete")
        cluster.wait("allocation/c2", "delete")
        cluster.wait_for_value("allocation/c1", "{.status.used.cpu}", "2", 30)


test(*sys.argv[1:3])
gates(*sys.argv[1:3])
print("shares: passed")
