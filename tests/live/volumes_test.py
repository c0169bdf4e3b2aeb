#!/usr/bin/env python3
"""Claims that wait for their first consumer: a volume is made for the node, the pod runs, and everything goes again."""
import sys

from cluster import Cluster, expect

STORY = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: berth.dev/simulated
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: early}
provisioner: berth.dev/simulated
volumeBindingMode: Immediate
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: on-node-1}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: local
  local: {path: /disk}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]}]
"""


def claim(name, of):
    return f"""---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: {of}, resources: {{requests: {{storage: 1Gi}}}}}}
"""


def pod(name, *claims):
    volumes = ", ".join(f"{{name: v{i}, persistentVolumeClaim: {{claimName: {c}}}}}" for i, c in enumerate(claims))
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{{name: main, image: app}}]
  volumes: [{volumes}]
"""


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "3") as cluster:
    cluster.apply(STORY)
    cluster.apply(claim("made", "late") + claim("found", "local") + claim("at-once", "early"))
    cluster.wait("pvc/at-once", "jsonpath={.status.phase}=Bound")
    cluster.wait("pv/on-node-1", "jsonpath={.status.phase}=Available")
    for name in ("made", "found"):
        expect(name, cluster.get("pvc", name)["spec"].get("volumeName"), None)
    cluster.apply(pod("both", "made", "found", "at-once"))
    cluster.wait("pod/both", "condition=Ready")
    expect("the node", cluster.get("pod", "both")["spec"]["nodeName"], "node-1")
    for name in ("made", "found"):
        cluster.wait("pvc/" + name, "jsonpath={.status.phase}=Bound")
    made = cluster.get("pvc", "made")
    expect("the node it was made for", made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"], "node-1")
    expect("the volume that was there", cluster.get("pvc", "found")["spec"]["volumeName"], "on-node-1")
    volume = made["spec"]["volumeName"]
    cluster.wait("pv/" + volume, "jsonpath={.status.phase}=Bound")

    # A second pod finds no disk on any node, and says so.
    cluster.apply(claim("late-comer", "local") + pod("waits", "late-comer"))
    cluster.wait("pod/waits", "condition=PodScheduled=False")
    said = [c["message"] for c in cluster.get("pod", "waits")["status"]["conditions"] if c["type"] == "PodScheduled"][0]
    expect("why", "node(s) didn't find available persistent volumes to bind" in said, True)

    cluster.run("delete", "pod", "both")
    cluster.run("delete", "pvc", "made", "found")
    cluster.wait("pv/on-node-1", "jsonpath={.status.phase}=Released")
    cluster.wait("pv/" + volume, "delete")
print("volumes: passed")
