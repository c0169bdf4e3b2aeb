#!/usr/bin/env python3
"""The whole chain without a machine: a Node of `berth up --node-topology` gets the annotation while a Job's LSR pod runs on those cores,
and loses it again; and LowNodeLoad moves pods from a busy node to an idle one."""
import json
import pathlib
import sys
import tempfile

from agent_test_parts import RESERVATION, cpus_of, until
from cluster import Cluster, expect

TOPOLOGY = "synthetic:socket:2 numa:1 core:4 pu:1"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: bound}
spec:
  parallelism: 1
  completions: 1
  template:
    metadata: {labels: {koordinator.sh/qosClass: LSR, app: bound}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: app, command: [sleep, infinity], resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "2", memory: 1Gi}}}]
"""
LATER = """
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {koordinator.sh/qosClass: LSR}}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  containers: [{name: c, image: app, resources: {requests: {cpu: "%s", memory: 1Gi}, limits: {cpu: "%s", memory: 1Gi}}}]
"""
BUSY = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: busy}
spec:
  replicas: 4
  selector: {matchLabels: {app: busy}}
  template:
    metadata:
      labels: {app: busy}
      annotations: {berth.dev/simulated-usage: '{"cpu":"1800m","memory":"1Gi"}'}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: app, resources: {requests: {cpu: "1"}}}]
"""
LOAD = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 1s
profiles:
- name: one
  pluginConfig:
  - name: LowNodeLoad
    args: {lowThresholds: {cpu: 45}, highThresholds: {cpu: 70}, anomalyCondition: {consecutiveAbnormalities: 2}%s}
"""


def cores(pod):
    status = json.loads(pod["metadata"].get("annotations", {}).get("scheduling.koordinator.sh/resource-status", "{}"))
    return cpus_of(status.get("cpuset", ""))


def batch(cluster, node):
    return int(cluster.get("node", node)["status"]["allocatable"].get("kubernetes.io/batch-cpu", -1))


def pools(cluster, node):
    notes = cluster.get("noderesourcetopologies", node)["metadata"]["annotations"]
    return (notes.get(RESERVATION), [pool["cpuset"] for pool in json.loads(notes.get("node.koordinator.sh/cpu-shared-pools", "[]"))])


def reserved_cores(cluster):
    cluster.apply(JOB)
    bound = lambda: [pod for pod in cluster.get("pods", "-l", "app=bound")["items"] if cores(pod)]
    until("the Job's pod is given cores", bound)
    first = bound()[0]
    node = first["spec"]["nodeName"]
    expect("cores", cores(first), {0, 1})
    until("batch-cpu", lambda: batch(cluster, node) > 0)
    before = batch(cluster, node)
    until("the pools leave the pod's cores out", lambda: pools(cluster, node) == (None, ["2-3", "4-7"]))

    cluster.run("annotate", "node", node, RESERVATION + '={"reservedCPUs":"0-3"}')
    until("the pools shrink", lambda: pools(cluster, node)[0] == '{"reservedCPUs":"0-3"}' and pools(cluster, node)[1] == ["4-7"])
    until("batch-cpu falls", lambda: 0 <= batch(cluster, node) < before)
    until("its pod is moved", lambda: [pod for pod in bound() if pod["metadata"]["uid"] != first["metadata"]["uid"]])
    until("the first has gone", lambda: len(bound()) == 1)
    expect("where it went", bound()[0]["spec"]["nodeName"] != node, True)
    job = cluster.get("podmigrationjobs")["items"][0]
    cluster.wait(f"podmigrationjob/{job['metadata']['name']}", "jsonpath={.status.phase}=Succeeded")
    job = cluster.get("podmigrationjobs")["items"][0]
    expect("how", (job["spec"]["mode"], job["status"]["podRef"]["name"]), ("ReservationFirst", bound()[0]["metadata"]["name"]))
    cluster.apply(LATER % ("later", node, "4", "4") + "---" + LATER % ("too-many", node, "2", "2"))
    until("a new one keeps off", lambda: cores(cluster.get("pod", "later")) == {4, 5, 6, 7})
    cluster.wait("pod/too-many", "condition=PodScheduled=False")

    cluster.run("annotate", "node", node, RESERVATION + "-")
    until("the next has the cores", lambda: cores(cluster.get("pod", "too-many")) == {0, 1})
    until("the pools are back", lambda: pools(cluster, node) == (None, ["2-3"]))
    cluster.run("delete", "pod", "later", "too-many", "--now")
    until("everything is back", lambda: pools(cluster, node) == (None, ["0-3", "4-7"]) and batch(cluster, node) >= before)


def all_on_one_node(cluster):
    cluster.run("cordon", "node-1")
    cluster.apply(BUSY)
    on = lambda node: len(cluster.names("pods", "-l", "app=busy", "--field-selector", "spec.nodeName=" + node + ",status.phase=Running"))
    until("all are on one node", lambda: on("node-0") == 4)
    cluster.run("uncordon", "node-1")
    return on


def only_said(cluster):
    """dryRun: who would be moved stands on the Node, and nobody is."""
    on = all_on_one_node(cluster)
    said = lambda: json.loads(cluster.get("node", "node-0")["metadata"]["annotations"].get("berth.dev/high-load", "{}")).get("wouldMove")
    until("the Node says who would go", said)
    expect("who would go", [name.startswith("default/busy-") for name in said()], [True])
    expect("who went", (cluster.get("podmigrationjobs")["items"], on("node-0")), ([], 4))


def low_node_load(cluster):
    on = all_on_one_node(cluster)
    # 7.2 of 8 cpu are in use: above 70 %. One that goes leaves 5.4, which is not.
    until("one is moved to the idle node", lambda: (on("node-0"), on("node-1")) == (3, 1))
    until("nobody says that it is busy", lambda: "berth.dev/high-load" not in cluster.get("node", "node-0")["metadata"]["annotations"])
    expect("moves", [job["metadata"]["labels"]["berth.dev/relieves"] for job in cluster.get("podmigrationjobs")["items"]], ["node-0"])


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "2", "--node-topology", TOPOLOGY) as one:
    reserved_cores(one)
with tempfile.TemporaryDirectory() as place:
    for story, more in ((low_node_load, ""), (only_said, ", dryRun: true")):
        config = pathlib.Path(place) / "load.yaml"
        config.write_text(LOAD % more)
        with Cluster(sys.argv[1], sys.argv[2], "--nodes", "2", "--node-topology", TOPOLOGY, "--descheduler-config", str(config)) as other:
            story(other)
