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
        with open(dump, "w") as file:
            file.write(DUMP)
        with Cluster(berth, build, "--import", dump, "--nodes", "0") as cluster:
            cluster.wait("reservation/held", "jsonpath={.status.allocated.cpu}=3")
            expect("its owner", [owner["name"] for owner in cluster.get("reservation", "held")["status"]["currentOwners"]],
                   ["owner"])
            cluster.wait("reservation/old", "jsonpath={.status.phase}=Failed")
            cluster.apply(pod("stranger", "1", labels="{app: db}"))
            cluster.wait("pod/stranger", "condition=Ready")


test(*sys.argv[1:3])
print("import: passed")
