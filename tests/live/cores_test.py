#!/usr/bin/env python3
"""Cores of pods and reservations: the seed's cases of NUMANodeResources, and a restart in their midst."""
import json
import shutil
import sys
import tempfile

from cluster import Cluster

RECORD = "scheduling.koordinator.sh/resource-status"
MACHINE = ["--nodes", "1", "--node-topology", "synthetic:socket:1 numa:2 core:4 pu:2"]


def pod(name, cpu, app, qos="LSR"):
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {app}, koordinator.sh/qosClass: {qos}}}}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{{name: c, image: app, resources: {{requests: {{cpu: "{cpu}"}}, limits: {{cpu: "{cpu}"}}}}}}]
"""


def reservation(name, cpu, app, once):
    return f"""---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {{name: {name}, labels: {{koordinator.sh/qosClass: LSR}}}}
spec:
  allocateOnce: {str(once).lower()}
  owners: [{{labelSelector: {{matchLabels: {{app: {app}}}}}}}]
  template: {{spec: {{containers: [{{name: c, image: app, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}
"""


def expect(holds, what):
    if not holds:
        raise SystemExit(f"not so: {what}")


def ids(text):
    out = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out


def cores_of(cluster, name):
    cluster.wait("pod/" + name, "condition=Ready")
    record = json.loads(cluster.get("pod", name)["metadata"]["annotations"][RECORD])
    return ids(record["cpuset"])


def reserve(cluster, name, cpu, app, once):
    cluster.apply(reservation(name, cpu, app, once))
    cluster.wait("reservation/" + name, "condition=Ready")
    return ids(cluster.get("reservation", name)["status"]["resourceStatus"]["cpuset"])


def same_and_six(cluster):
    held = reserve(cluster, "same", 4, "same", True)
    expect(len(held) == 4, f"it holds {held}")
    cluster.apply(pod("stranger", 2, "other"))
    expect(not cores_of(cluster, "stranger") & held, "a stranger has none of them")
    cluster.apply(pod("same", 4, "same"))
    expect(cores_of(cluster, "same") == held, "its owner has all of them")
    cluster.run("delete", "pod", "same", "stranger")
    held = reserve(cluster, "six", 4, "six", True)
    cluster.apply(pod("six", 6, "six"))
    mine = cores_of(cluster, "six")
    expect(len(mine) == 6 and held < mine, f"{mine} are those of the reservation, {held}, and two more")
    cluster.run("delete", "pod", "six")


def twos_and_threes(cluster):
    held = reserve(cluster, "twos", 4, "twos", False)
    cluster.apply(pod("two-a", 2, "twos"))
    cluster.apply(pod("two-b", 2, "twos"))
    first, second = cores_of(cluster, "two-a"), cores_of(cluster, "two-b")
    expect(first | second == held and not first & second, f"{first} and {second} are {held}")
    cluster.run("delete", "pod", "two-a", "two-b")
    cluster.run("delete", "reservation", "twos")
    held = reserve(cluster, "threes", 4, "threes", False)
    cluster.apply(pod("three-a", 3, "threes"))
    first = cores_of(cluster, "three-a")
    expect(first < held, "the first has three of them")
    cluster.apply(pod("three-b", 3, "threes"))
    second = cores_of(cluster, "three-b")
    expect(not first & second and held < first | second, f"{second} has what is left of {held}, and two more")
    return first | second


def main(berth, build):
    directory = tempfile.mkdtemp(prefix="berth-cores-")
    try:
        with Cluster(berth, build, *MACHINE, directory=directory) as cluster:
            expect(cluster.get("node", "node-0")["status"]["allocatable"]["cpu"] == "16", "as many as the topology has")
            same_and_six(cluster)
            taken = twos_and_threes(cluster)
        with Cluster(berth, build, *MACHINE, directory=directory) as cluster:
            cluster.apply(pod("late", 10, "late"))
            late = cores_of(cluster, "late")
            expect(not late & taken and len(late) == 10, f"after a restart {late} are others than {taken}")
            cluster.apply(pod("more", 1, "late"))
            cluster.wait("pod/more", "jsonpath={.status.conditions[0].reason}=Unschedulable")
            message = cluster.get("pod", "more")["status"]["conditions"][0]["message"]
            expect("Insufficient cpu" in message, message)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


main(*sys.argv[1:3])
