#!/usr/bin/env python3
"""A thousand pods on a hundred nodes: all are bound; one that does not fit says why, and is bound when another goes."""
import concurrent.futures
import sys
import time

from cluster import Cluster, expect, pod

PODS, AT_ONCE = 1000, 10  # a kubectl sends few requests a second


def create(names):
    cluster.run("create", "-f", "-", stdin="".join(pod(name, "100m") for name in names))


def until(what, look):
    """What it sees, once it sees something."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if seen := look():
            return seen
    raise SystemExit(f"{what}: not within 120 s")


def nodes_of_all():
    nodes = {item["metadata"]["name"]: item["spec"].get("nodeName") for item in cluster.get("pods")["items"]}
    return nodes if all(nodes.values()) else None


def complaints():
    return [line.split() for line in cluster.run("describe", "pod", "large").splitlines() if "FailedScheduling" in line]


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "100") as cluster:
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as several:
        list(several.map(create, [[f"p-{i}" for i in range(first, PODS, AT_ONCE)] for first in range(AT_ONCE)]))
    nodes = until("all pods are bound", nodes_of_all)
    expect("pods", len(nodes), PODS)
    expect("on each node", {list(nodes.values()).count(node) for node in nodes.values()}, {PODS // 100})

    # Every node has 3 cpu left.
    cluster.apply(pod("large", "3100m"))
    cluster.wait("pod/large", "condition=PodScheduled=False")
    said = until("its event", complaints)
    expect("one event", len(said), 1)
    expect("what it says", " ".join(said[0][4:]),
           "0/100 nodes are available: 100 Insufficient cpu. no new claims to deallocate, preemption: 0/100 nodes are "
           "available: 100 No preemption victims found for incoming pod.")
    cluster.run("delete", "pod", "p-7", "--now")
    cluster.wait("pod/large", "condition=PodScheduled", 10)
    expect("where it went", cluster.get("pod", "large")["spec"]["nodeName"], nodes["p-7"])
print("thousand: passed")
