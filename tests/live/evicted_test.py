#!/usr/bin/env python3
"""Nobody is evicted in vain: whoever preempts, a reservation that waits for room gets nothing of what was freed."""
import sys

from cluster import Cluster, expect, pod

LARGE = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: large}
value: 1000
"""
APART = """affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: low}}}"""


def reservation(name, cpu, app, port="", more=""):
    ports = f"ports: [{{containerPort: {port}, hostPort: {port}}}], " if port else ""
    return f"""---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {{name: {name}}}
spec:
  owners: [{{labelSelector: {{matchLabels: {{app: {app}}}}}}}]
  {more}
  template: {{spec: {{containers: [{{name: c, image: app, {ports}resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}
"""


def with_port(text, port):
    return text.replace("image: app,", f"image: app, ports: [{{containerPort: {port}, hostPort: {port}}}],")


def phase(cluster, name):
    return cluster.get("reservation", name).get("status", {}).get("phase", "Pending")


def waits(cluster, name):
    """The reservation has been tried, and found no room."""
    cluster.wait("reservation/" + name, "condition=Scheduled=False")


def lands(cluster, story, node="node-0"):
    cluster.wait("pod/high", "condition=Ready")
    expect(f"{story}: where", cluster.get("pod", "high")["spec"]["nodeName"], node)
    expect(f"{story}: the reservation that waits", phase(cluster, "hungry"), "Pending")
    expect(f"{story}: the victim", cluster.run("get", "pod", "low", "--ignore-not-found"), "")
    return cluster.get("pod", "high")["metadata"]["uid"]


def room_was_held(cluster, story, uid):
    cluster.wait("reservation/preemption-" + uid, "jsonpath={.status.phase}=Succeeded")


def high(cpu, more=""):
    return pod("high", cpu, "priorityClassName: large\n  " + more, "{app: high}")


def owner_elsewhere(berth, build):
    with Cluster(berth, build, "--nodes", "2", "--node-cpu", "4") as cluster:
        cluster.apply(LARGE)
        cluster.apply(pod("low", 4, "nodeName: node-0", "{app: low}") +
                      pod("other", 3, "nodeName: node-1\n  priorityClassName: large"))
        cluster.apply(reservation("own", 1, "high"))
        cluster.wait("reservation/own", "condition=Ready")
        cluster.apply(reservation("hungry", 2, "nobody"))
        waits(cluster, "hungry")
        cluster.apply(high(3))
        room_was_held(cluster, "owner", lands(cluster, "owner"))


def owner_there(berth, build):
    with Cluster(berth, build, "--nodes", "1", "--node-cpu", "4") as cluster:
        cluster.apply(LARGE)
        cluster.apply(pod("low", 3, "nodeName: node-0", "{app: low}"))
        cluster.apply(reservation("own", 1, "high"))
        cluster.wait("reservation/own", "condition=Ready")
        cluster.apply(reservation("hungry", 2, "nobody"))
        waits(cluster, "hungry")
        cluster.apply(high(3))
        lands(cluster, "owner there")


def facing_a_port(berth, build):
    with Cluster(berth, build, "--nodes", "1", "--node-cpu", "4") as cluster:
        cluster.apply(LARGE)
        cluster.apply(with_port(pod("low", 1, "nodeName: node-0", "{app: low}"), 8080))
        cluster.wait("pod/low", "condition=Ready")
        cluster.apply(reservation("hungry", 1, "nobody", 8080))
        waits(cluster, "hungry")
        cluster.apply(with_port(high(1), 8080))
        room_was_held(cluster, "port", lands(cluster, "port"))


def facing_a_term(berth, build):
    with Cluster(berth, build, "--nodes", "1", "--node-cpu", "4") as cluster:
        cluster.apply(LARGE)
        cluster.apply(pod("low", 1, "nodeName: node-0", "{app: low}"))
        cluster.wait("pod/low", "condition=Ready")
        cluster.apply(reservation("hungry", "3500m", "nobody"))
        waits(cluster, "hungry")
        cluster.apply(high(2, APART))
        room_was_held(cluster, "term", lands(cluster, "term"))


for story in (owner_elsewhere, owner_there, facing_a_port, facing_a_term):
    story(*sys.argv[1:3])
print("evicted: passed")
