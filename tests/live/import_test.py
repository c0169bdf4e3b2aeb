#!/usr/bin/env python3
"""The dump of a cluster with reservations, taken over by `berth up --import`: whoever drew from one still does."""
import os
import sys
import tempfile

from cluster import Cluster, expect, pod

DUMP = """
apiVersion: v1
kind: Pod
metadata:
  name: owner
  uid: of-the-owner
  labels: {app: web}
  annotations: {scheduling.koordinator.sh/reservation-allocated: '{"name":"held","uid":"of-the-reservation"}'}
spec: {nodeName: n1, containers: [{name: main, image: app, resources: {requests: {cpu: "3"}}}]}
status: {phase: Running}
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: held, uid: of-the-reservation, creationTimestamp: "2020-01-01T00:00:00Z"}
spec:
  allocateOnce: false
  ttl: "0"
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "4"}}}]}}
status: {phase: Available, nodeName: n1, allocatable: {cpu: "4"}}
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: old, creationTimestamp: "2020-01-01T00:00:00Z"}
spec:
  ttl: 1h
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "1"}}}]}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "5", memory: 8Gi, pods: "10"}, capacity: {cpu: "5", memory: 8Gi, pods: "10"}}
"""


def test(berth, build):
    with tempfile.TemporaryDirectory() as place:
        dump = os.path.join(place, "dump.yaml")
        write(dump, DUMP)
        with Cluster(berth, build, "--import", dump, "--nodes", "0") as cluster:
            cluster.wait("reservation/held", "jsonpath={.status.allocated.cpu}=3")
            expect("its owner", [owner["name"] for owner in cluster.get("reservation", "held")["status"]["currentOwners"]],
                   ["owner"])
            cluster.wait("reservation/old", "jsonpath={.status.phase}=Failed")
            cluster.apply(pod("stranger", "1", labels="{app: db}"))
            cluster.wait("pod/stranger", "condition=Ready")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def test_restart(berth, build):
    """What was deleted since stays so; another file brings what it has."""
    with tempfile.TemporaryDirectory() as place:
        dump, store = os.path.join(place, "dump.yaml"), os.path.join(place, "store")
        write(dump, DUMP)
        flags = ("--import", dump, "--nodes", "0")
        with Cluster(berth, build, *flags, directory=store) as cluster:
            cluster.run("delete", "pod", "owner", "--grace-period=0", "--force")
            cluster.run("delete", "reservation", "old")
        with Cluster(berth, build, *flags, directory=store) as cluster:
            expect("pods", cluster.names("pods"), [])
            expect("reservations", cluster.names("reservations"), ["held"])
        write(dump, DUMP + pod("new", "1"))
        with Cluster(berth, build, *flags, directory=store) as cluster:
            expect("pods", cluster.names("pods"), ["new", "owner"])


def test_too_full(berth, build):
    """A dump of a node that holds more than it has: as a kubelet that starts again, it takes what fits."""
    with tempfile.TemporaryDirectory() as place:
        dump = os.path.join(place, "dump.yaml")
        more = "\n".join(pod(f"more-{i}", "1", "nodeName: n1") + "status: {phase: Running}\n" for i in range(3))
        write(dump, DUMP + more)
        with Cluster(berth, build, "--import", dump, "--nodes", "0") as cluster:
            pods = {p["metadata"]["name"]: p["status"] for p in cluster.get("pods")["items"]}
            expect("phases", sorted(status["phase"] for status in pods.values()), ["Failed", "Failed", "Running", "Running"])
            expect("why", {status.get("reason") for status in pods.values() if status["phase"] == "Failed"}, {"OutOfcpu"})


test(*sys.argv[1:3])
test_restart(*sys.argv[1:3])
test_too_full(*sys.argv[1:3])
print("import: passed")
