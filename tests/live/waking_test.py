#!/usr/bin/env python3
"""Pods that wait for somebody else's word: for their gates to open, and for a pod with a nomination to let go."""
import json
import sys

from cluster import Cluster, expect, pod

LARGE = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: large}
value: 1000
"""
GATED = "schedulingGates: [{name: example.com/first}, {name: example.com/second}]"


def node_of(cluster, name):
    return cluster.get("pod", name)["spec"].get("nodeName", "")


def open_gate(cluster, name):
    cluster.run("patch", "pod", name, "--type=json", "-p", '[{"op": "remove", "path": "/spec/schedulingGates/0"}]')


def nominate(cluster, name, node):
    document = cluster.get("pod", name)
    document["status"]["nominatedNodeName"] = node
    cluster.run("replace", "--raw", f"/api/v1/namespaces/default/pods/{name}/status", "-f", "-", stdin=json.dumps(document))


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "1", "--node-cpu", "4") as cluster:
    cluster.apply(LARGE)
    cluster.apply(pod("gated", 1, GATED))
    # Whoever comes later is placed; so the gated one was passed over.
    cluster.apply(pod("later", 1))
    cluster.wait("pod/later", "condition=Ready")
    expect("gated", node_of(cluster, "gated"), "")
    expect("why", [c["reason"] for c in cluster.get("pod", "gated")["status"]["conditions"]], ["SchedulingGated"])
    open_gate(cluster, "gated")
    cluster.apply(pod("later-still", 1))
    cluster.wait("pod/later-still", "condition=Ready")
    expect("gated by one", node_of(cluster, "gated"), "")
    open_gate(cluster, "gated")
    cluster.wait("pod/gated", "condition=Ready")

    # One cpu is left. It is meant for the claimant, which is gated itself, so the modest one yields.
    cluster.apply(pod("claimant", 1, "priorityClassName: large\n  " + GATED))
    nominate(cluster, "claimant", "node-0")
    cluster.apply(pod("modest", 1))
    cluster.wait("pod/modest", "condition=PodScheduled=False")
    expect("modest", node_of(cluster, "modest"), "")
    # Nothing else happens: only the end of the nomination wakes it.
    nominate(cluster, "claimant", "")
    cluster.wait("pod/modest", "condition=Ready")
    expect("claimant", node_of(cluster, "claimant"), "")
print("waking: passed")
