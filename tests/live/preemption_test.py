#!/usr/bin/env python3
"""An important pod arrives in a full cluster: the fewest and least important go, budgets are kept, it lands."""
import sys

from cluster import Cluster, expect, pod

CLASSES = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: small}
value: 10
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: large}
value: 1000
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep-both}
spec: {minAvailable: 2, selector: {matchLabels: {app: kept}}}
"""


def on(node, priority):
    return f"nodeName: {node}\n  {priority}"


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "2", "--node-cpu", "4") as cluster:
    cluster.apply(CLASSES)
    small = "priorityClassName: small"
    cluster.apply(pod("kept-1", 2, on("node-0", ""), "{app: kept}") + pod("kept-2", 2, on("node-0", ""), "{app: kept}") +
                  pod("stays", 2, on("node-1", small)) + pod("goes", 2, on("node-1", "")))
    for name in ("kept-1", "kept-2", "stays", "goes"):
        cluster.wait("pod/" + name, "condition=Ready")
    cluster.wait("pdb/keep-both", "jsonpath={.status.currentHealthy}=2")

    cluster.apply(pod("urgent", 2, "priorityClassName: large"))
    cluster.wait("pod/urgent", "condition=Ready")
    expect("urgent", cluster.get("pod", "urgent")["spec"]["nodeName"], "node-1")
    expect("who is left", cluster.names("pods"), ["kept-1", "kept-2", "stays", "urgent"])
    uid = cluster.get("pod", "urgent")["metadata"]["uid"]
    expect("what was said", [(item["involvedObject"]["name"], item["message"]) for item in cluster.events("Preempted")],
           [("goes", f"Preempted by pod {uid} on node node-1")])

    room = cluster.get("reservation", "preemption-" + uid)
    expect("the room", (room["metadata"]["labels"], room["status"]["phase"], room["status"]["nodeName"]),
           ({"berth.dev/made-for": "preemption"}, "Succeeded", "node-1"))

    cluster.apply("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: polite}\nvalue: 0\n"
                  "preemptionPolicy: Never\n")
    cluster.apply(pod("polite", 2, "priorityClassName: polite"))
    cluster.wait("pod/polite", "condition=PodScheduled=False")
    said = [c["message"] for c in cluster.get("pod", "polite")["status"]["conditions"] if c["type"] == "PodScheduled"]
    expect("polite", said, ["0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: not "
                            "eligible due to preemptionPolicy=Never."])
print("preemption: passed")
