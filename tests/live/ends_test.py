#!/usr/bin/env python3
"""A reservation that has ended takes no place and serves nobody: one that expired before it came, one that came with a
dump long after its end, one whose owner comes too late."""
import os
import sys
import tempfile

from cluster import Cluster, expect, pod

ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"


def reservation(name, life, status="", created=""):
    return f"""---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {{name: {name}, uid: of-{name}{created}}}
spec:
  {life}
  allocateOnce: false
  owners: [{{labelSelector: {{matchLabels: {{app: web}}}}}}]
  template: {{spec: {{containers: [{{name: main, image: app, resources: {{requests: {{cpu: "2"}}}}}}]}}}}
{status}
"""


def owner(name):
    return pod(name, "100m", labels="{app: web}")


def drawn_from(cluster, name):
    cluster.wait("pod/" + name, "condition=Ready")
    return cluster.get("pod", name)["metadata"].get("annotations", {}).get(ALLOCATED)


def failed(cluster, name):
    cluster.wait("reservation/" + name, "jsonpath={.status.phase}=Failed")
    return cluster.get("reservation", name)["status"]


def expired_before_it_came(cluster):
    names = [f"early-{i}" for i in range(5)]
    cluster.apply(reservation("late", 'expires: "2020-01-01T00:00:00Z"') + "".join(owner(name) for name in names))
    for name in names:
        expect(name, drawn_from(cluster, name), None)
    expect("its node", failed(cluster, "late").get("nodeName"), None)
    said = [item["reason"] for item in cluster.get("events", "-A")["items"] if item["involvedObject"]["name"] == "late"]
    expect("what was said of it", said, ["Expired"])


def owner_too_late(cluster):
    cluster.apply(reservation("short", "ttl: 2s"))
    cluster.wait("reservation/short", "condition=Ready")
    cluster.apply(owner("in-time"))
    expect("in time", "short" in (drawn_from(cluster, "in-time") or ""), True)
    failed(cluster, "short")
    cluster.apply(owner("too-late"))
    expect("too late", drawn_from(cluster, "too-late"), None)


def dumped_long_after_its_end(berth, build):
    long_ago = ', creationTimestamp: "2020-01-01T00:00:00Z"'
    dump = f"""
apiVersion: v1
kind: Node
metadata: {{name: n1}}
status: {{allocatable: {{cpu: "5", memory: 8Gi, pods: "10"}}, capacity: {{cpu: "5", memory: 8Gi, pods: "10"}}}}
{reservation("old", "ttl: 1h", 'status: {phase: Available, nodeName: n1, allocatable: {cpu: "2"}}', long_ago)}
""" + "".join(owner(f"waits-{i}") for i in range(5))
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "dump.yaml")
        with open(path, "w") as file:
            file.write(dump)
        with Cluster(berth, build, "--import", path, "--nodes", "0") as cluster:
            for i in range(5):
                expect(f"waits-{i}", drawn_from(cluster, f"waits-{i}"), None)
            failed(cluster, "old")


dumped_long_after_its_end(*sys.argv[1:3])
with Cluster(sys.argv[1], sys.argv[2], "--nodes", "1", "--node-cpu", "4") as cluster:
    expired_before_it_came(cluster)
    owner_too_late(cluster)
print("ends: passed")
