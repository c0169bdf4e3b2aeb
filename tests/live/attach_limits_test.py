#!/usr/bin/env python3
"""How many volumes of a driver a node takes: volumes that are only being made count, and so do those of reservations."""
import sys

from cluster import Cluster, expect

CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: berth.dev/simulated
volumeBindingMode: WaitForFirstConsumer
"""


def limit(node, count):
    return f"""---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {{name: {node}}}
spec: {{drivers: [{{name: berth.dev/simulated, nodeID: {node}, topologyKeys: [], allocatable: {{count: {count}}}}}]}}
"""


def claim(name):
    return f"""---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: late, resources: {{requests: {{storage: 1Gi}}}}}}
"""


def spec(claim_name):
    return (f"{{terminationGracePeriodSeconds: 0, containers: [{{name: main, image: app}}], "
            f"volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim_name}}}}}]}}")


def pod(name, claim_name, labels="{}"):
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {labels}}}
spec: {spec(claim_name)}
"""


RESERVATION = f"""---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {{name: held}}
spec:
  allocateOnce: false
  owners: [{{labelSelector: {{matchLabels: {{app: db}}}}}}]
  template: {{metadata: {{namespace: default}}, spec: {spec("c-held")}}}
"""


def node_of(cluster, name):
    cluster.wait("pod/" + name, "condition=Ready")
    return cluster.get("pod", name)["spec"]["nodeName"]


def why_not(cluster, name):
    cluster.wait("pod/" + name, "condition=PodScheduled=False")
    return [c["message"] for c in cluster.get("pod", name)["status"]["conditions"] if c["type"] == "PodScheduled"][0]


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "2") as cluster:
    cluster.apply(CLASS + limit("node-0", 1) + limit("node-1", 1))
    # One after the other on purpose: each claim is bound before the next pod comes.
    cluster.apply(claim("c-held") + pod("first", "c-held"))
    where = node_of(cluster, "first")
    cluster.apply(claim("c-b") + pod("second", "c-b"))
    expect("the other node", {where, node_of(cluster, "second")}, {"node-0", "node-1"})
    cluster.apply(claim("c-c") + pod("third", "c-c"))
    expect("why", why_not(cluster, "third"),
           "0/2 nodes are available: 2 node(s) exceed max volume count. no new claims to deallocate, "
           "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.")

    # A reservation takes the place of the first pod: its volume keeps the slot, for its owner alone.
    cluster.apply(RESERVATION)
    cluster.wait("reservation/held", "jsonpath={.status.phase}=Available")
    expect("where the volume is", cluster.get("reservation", "held")["status"]["nodeName"], where)
    cluster.run("delete", "pod", "first")
    expect("still no room", why_not(cluster, "third").startswith("0/2 nodes are available: 2 node(s) exceed max volume"), True)
    cluster.apply(pod("owner", "c-held", "{app: db}"))
    expect("the owner", node_of(cluster, "owner"), where)

    cluster.run("delete", "pod", "second")
    expect("a slot is free", node_of(cluster, "third") != where, True)
print("attach limits: passed")
