#!/usr/bin/env python3
"""What stands in somebody's way is said where he looks: at his Deployment, his pod, the node."""
import json
import os
import sys
import tempfile

from cluster import Cluster, expect

LINK = "scheduling.koordinator.sh/reservation-allocated"
FORGED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: forged}
spec:
  replicas: 1
  selector: {matchLabels: {app: forged}}
  template:
    metadata: {labels: {app: forged}, annotations: {%s: "{}"}}
    spec: {containers: [{name: main, image: app}]}
""" % LINK
TORN = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "torn", "namespace": "default", "annotations": {LINK: "{"}},
        "spec": {"nodeName": "node-0", "containers": [{"name": "main", "image": "app"}]}, "status": {"phase": "Running"}}


def test(berth, build):
    with tempfile.TemporaryDirectory() as directory:
        brought = os.path.join(directory, "torn.json")
        with open(brought, "w", encoding="utf-8") as file:
            json.dump(TORN, file)
        with Cluster(berth, build, "--nodes", "1", "--import", brought) as cluster:
            cluster.wait("events", "jsonpath={.reason} {.involvedObject.name}=AnnotationUnreadable torn")
            cluster.wait("events", "jsonpath={.reason} {.involvedObject.name}=ReservationsClosed node-0")
            expect("the node", "ReservationsClosed" in cluster.run("describe", "node", "node-0"), True)

            cluster.apply(FORGED)
            cluster.wait("events", "jsonpath={.reason} {.involvedObject.kind}=FailedCreate ReplicaSet")
            (name,) = cluster.names("replicasets")
            told = cluster.run("describe", "replicaset", name)
            expect("why", f'pods "{name}-" is forbidden: only the scheduler may set or change the annotation {LINK}' in told, True)
            cluster.run("delete", "deployment", "forged")


test(*sys.argv[1:3])
print("faults: passed")
