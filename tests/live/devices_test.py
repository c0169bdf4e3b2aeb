#!/usr/bin/env python3
"""Devices of pods and reservations: the seed's cases of DeviceShare, a scheduler that lies, and a restart in their midst."""
import json
import shutil
import subprocess
import sys
import tempfile

from cluster import Cluster

RECORD = "scheduling.koordinator.sh/device-allocated"
MACHINE = ["--nodes", "1", "--node-cpu", "32", "--node-gpus", "2:V100"]


def pod(name, percent, app, resource="koordinator.sh/gpu", extra=""):
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {app}}}}}
spec:
  terminationGracePeriodSeconds: 0
  {extra}
  containers: [{{name: c, image: app, resources: {{requests: {{{resource}: "{percent}"}}, limits: {{{resource}: "{percent}"}}}}}}]
"""


def reservation(name, percent, app, once):
    return f"""---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {{name: {name}}}
spec:
  allocateOnce: {str(once).lower()}
  owners: [{{labelSelector: {{matchLabels: {{app: {app}}}}}}}]
  template: {{spec: {{containers: [{{name: c, image: app, resources: {{requests: {{koordinator.sh/gpu: "{percent}"}}}}}}]}}}}
"""


def expect(holds, what):
    if not holds:
        raise SystemExit(f"not so: {what}")


def shares(record):
    """{minor: percent}"""
    return {entry["minor"]: int(entry["resources"]["koordinator.sh/gpu-memory-ratio"]) for entry in record["gpu"]}


def gpus_of(cluster, name):
    cluster.wait("pod/" + name, "condition=Ready")
    return shares(json.loads(cluster.get("pod", name)["metadata"]["annotations"][RECORD]))


def reserve(cluster, name, percent, app, once):
    cluster.apply(reservation(name, percent, app, once))
    cluster.wait("reservation/" + name, "condition=Ready")
    return shares(cluster.get("reservation", name)["status"]["deviceAllocated"])


def refused(cluster, name):
    cluster.wait("pod/" + name, "jsonpath={.status.conditions[0].reason}=Unschedulable")
    return cluster.get("pod", name)["status"]["conditions"][0]["message"]


def one_gpu(cluster):
    held = reserve(cluster, "same", 100, "same", True)
    expect(list(held.values()) == [100], f"it holds {held}")
    cluster.apply(pod("stranger", 1, "other", "nvidia.com/gpu"))
    cluster.apply(pod("late", 1, "other", "nvidia.com/gpu"))
    expect(not gpus_of(cluster, "stranger").keys() & held.keys(), "a stranger has the other one")
    expect("Insufficient" in refused(cluster, "late"), "a second stranger has none")
    cluster.apply(pod("same", 100, "same", extra="schedulerName: koord-scheduler"))
    expect(gpus_of(cluster, "same") == held, "its owner has the one that was held")
    cluster.run("delete", "pod", "late", "same")


def two_halves(cluster):
    """The stranger has the other GPU."""
    held = reserve(cluster, "halves", 100, "halves", False)
    cluster.apply(pod("half-a", 50, "halves") + pod("half-b", 50, "halves") + pod("half-c", 50, "halves"))
    cluster.wait("reservation/halves", "jsonpath={.status.allocated.koordinator\\.sh/gpu}=100")
    got = [gpus_of(cluster, name) for name in ("half-a", "half-b")]
    expect(all(one == {minor: 50 for minor in held} for one in got), f"{got} are halves of {held}")
    expect("Insufficient" in refused(cluster, "half-c"), "there is no third half")
    cluster.run("delete", "pod", "half-a", "half-b", "half-c")
    cluster.run("delete", "reservation", "halves")


def sixty_and_fifty(cluster):
    held = reserve(cluster, "most", 100, "most", False)
    cluster.apply(pod("sixty", 60, "most"))
    expect(gpus_of(cluster, "sixty") == {minor: 60 for minor in held}, "the first has 60 % of it")
    cluster.apply(pod("fifty", 50, "most"))
    expect("Insufficient" in refused(cluster, "fifty"), "50 % do not fit into what is left of it")
    cluster.run("delete", "pod", "stranger")
    other = gpus_of(cluster, "fifty")
    expect(not other.keys() & held.keys(), f"when another GPU is free it takes that one, {other}")
    return held


def liar(cluster, held):
    """A scheduler of somebody else's may not bind without a record, nor to what is taken."""
    cluster.apply(pod("lied", 1, "other", "nvidia.com/gpu", "schedulerName: nobody"))
    for notes in ({}, {RECORD: json.dumps({"gpu": [{"minor": min(held), "resources": {
            "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100",
            "koordinator.sh/gpu-memory": "32Gi"}}]})}):
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "lied", "annotations": notes},
                "target": {"kind": "Node", "name": "node-0"}}
        done = subprocess.run([cluster.kubectl, "create", "--raw", "/api/v1/namespaces/default/pods/lied/binding", "-f", "-"],
                              input=json.dumps(body), capture_output=True, text=True, env=cluster.env, timeout=60)
        expect(done.returncode != 0, f"a binding with {notes or 'no record'} is refused")
    cluster.run("delete", "pod", "lied")


def main(berth, build):
    directory = tempfile.mkdtemp(prefix="berth-devices-")
    try:
        with Cluster(berth, build, *MACHINE, directory=directory) as cluster:
            node = cluster.get("node", "node-0")
            expect(node["status"]["allocatable"]["koordinator.sh/gpu"] == "200", "the node says what its Device has")
            expect(node["metadata"]["labels"]["node.koordinator.sh/gpu-model"] == "V100", "and the model")
            one_gpu(cluster)
            two_halves(cluster)
            held = sixty_and_fifty(cluster)
            liar(cluster, held)
        with Cluster(berth, build, *MACHINE, directory=directory) as cluster:
            cluster.apply(pod("after", 51, "after") + pod("fits", 50, "after"))
            expect(not gpus_of(cluster, "fits").keys() & held.keys(), "after a restart what is held is held")
            expect("Insufficient" in refused(cluster, "after"), "and what is taken is taken")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


main(*sys.argv[1:3])
