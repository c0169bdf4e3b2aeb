#!/usr/bin/env python3
"""An allocateOnce reservation ends with its owner's binding, and says so: no restart lets a second pod use it."""
import sys
import tempfile

from cluster import Cluster, expect, pod

RESERVATION = """
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: once}
spec:
  owners: [{labelSelector: {matchLabels: {app: web}}}]
  template: {spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "2"}}}]}}
"""
PORT_ALONE = """
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: port}
spec:
  owners: [{labelSelector: {matchLabels: {app: listens}}}]
  template: {spec: {containers: [{name: main, image: app, ports: [{containerPort: 7777, hostPort: 7777}]}]}}
"""
LISTENS = """
apiVersion: v1
kind: Pod
metadata: {name: listens, labels: {app: listens}}
spec: {containers: [{name: main, image: app, ports: [{containerPort: 7777, hostPort: 7777}]}]}
"""
MUST_DRAW = "{app: web}, annotations: {scheduling.koordinator.sh/reservation-affinity: '{}'}"


def test(berth, build):
    with tempfile.TemporaryDirectory() as kept:
        with Cluster(berth, build, "--nodes", "1", "--controllers=-reservation", directory=kept) as cluster:
            cluster.apply(RESERVATION)
            cluster.wait("reservation/once", "jsonpath={.status.phase}=Available")
            cluster.apply(pod("w1", "1", labels=MUST_DRAW))
            cluster.wait("pod/w1", "condition=Ready")
            status = cluster.get("reservation", "once")["status"]
            expect("the phase, though no controller runs", status["phase"], "Succeeded")
            expect("its owner", [owner["name"] for owner in status["currentOwners"]], ["w1"])
            cluster.run("delete", "pod", "w1", "--wait=true")
        with Cluster(berth, build, "--nodes", "1", directory=kept) as cluster:
            cluster.apply(pod("w2", "1", labels=MUST_DRAW))
            cluster.wait("pod/w2", "jsonpath={.status.conditions[0].reason}=Unschedulable")
            expect("the phase", cluster.get("reservation", "once")["status"]["phase"], "Succeeded")
            cluster.apply(PORT_ALONE)
            cluster.wait("reservation/port", "jsonpath={.status.phase}=Available")
            cluster.apply(LISTENS)
            cluster.wait("events", "jsonpath={.reason} {.involvedObject.name}=Succeeded port")
            status = cluster.get("reservation", "port")["status"]
            expect("the phase", status["phase"], "Succeeded")
            expect("its owner", [owner["name"] for owner in status["currentOwners"]], ["listens"])


test(*sys.argv[1:3])
print("once: passed")
