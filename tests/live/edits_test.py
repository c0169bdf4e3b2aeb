#!/usr/bin/env python3
"""What is edited while it waits is looked at at once: nothing else happens in the cluster that could wake it."""
import json
import sys

from cluster import Cluster, expect, pod

AFFINITY = "scheduling.koordinator.sh/reservation-affinity"


def reservation(name, cpu, more=""):
    return f"""---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {{name: {name}}}
spec:
  {more}
  owners: [{{labelSelector: {{matchLabels: {{app: web}}}}}}]
  template: {{spec: {{containers: [{{name: c, image: app, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}
"""


def edit(cluster, name, **spec):
    cluster.run("patch", "reservation", name, "--type=merge", "-p", json.dumps({"spec": spec}))


def waits(cluster, name):
    cluster.wait("reservation/" + name, "condition=Scheduled=False")


def phase(cluster, name, wanted):
    cluster.wait("reservation/" + name, "jsonpath={.status.phase}=" + wanted, 20)


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "1", "--node-cpu", "4") as cluster:
    # Two reusable ones with the same purpose do not share a node; with other owners it is another purpose.
    cluster.apply(reservation("first", "500m", "allocateOnce: false"))
    phase(cluster, "first", "Available")
    cluster.apply(reservation("second", "500m", "allocateOnce: false"))
    waits(cluster, "second")
    edit(cluster, "second", owners=[{"labelSelector": {"matchLabels": {"app": "db"}}}])
    phase(cluster, "second", "Available")
    cluster.apply(reservation("third", "500m", "allocateOnce: false"))
    waits(cluster, "third")
    edit(cluster, "third", allocateOnce=True)
    phase(cluster, "third", "Available")

    # The Default policy does not share a node with Restricted.
    cluster.apply(reservation("fourth", "500m", "allocatePolicy: Restricted"))
    waits(cluster, "fourth")
    edit(cluster, "fourth", allocatePolicy="")
    phase(cluster, "fourth", "Available")

    # Room is lacking; it may wait for it now.
    cluster.apply(reservation("fifth", "3"))
    waits(cluster, "fifth")
    edit(cluster, "fifth", preAllocation=True)
    phase(cluster, "fifth", "Waiting")

    # Owners wait for one that is closed to them.
    edit(cluster, "second", unschedulable=True)
    for name, app in (("closed", "db"), ("stranger", "new")):
        cluster.apply(pod(name, "100m", labels=f"{{app: {app}}}").replace(
            "labels:", f"annotations: {{{AFFINITY}: '{{\"name\":\"second\"}}'}}, labels:"))
        cluster.wait("pod/" + name, "condition=PodScheduled=False")
    edit(cluster, "second", unschedulable=False)
    cluster.wait("pod/closed", "condition=Ready", 20)
    edit(cluster, "second", owners=[{"labelSelector": {"matchLabels": {"app": app}}} for app in ("db", "new")])
    cluster.wait("pod/stranger", "condition=Ready", 20)
print("edits: passed")
