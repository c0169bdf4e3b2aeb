#!/usr/bin/env python3
"""berth migrate: refuses without room, waits for room when asked to, and reserves again when a sibling takes it."""
import signal
import subprocess
import sys

from cluster import Cluster, expect, pod

WEB = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: early}
provisioner: berth.dev/simulated
volumeBindingMode: Immediate
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteMany], storageClassName: early, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: app, resources: {requests: {cpu: "3"}}}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""


def web():
    """Where each pod of the ReplicaSet is."""
    return {item["metadata"]["name"]: item["spec"].get("nodeName") for item in cluster.get("pods", "-l", "app=web")["items"]
            if "deletionTimestamp" not in item["metadata"]}


def migrate(name, *flags):
    return subprocess.Popen([sys.argv[1], "migrate", "pod", name, *flags], env=cluster.env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def end_of(process):
    said, _ = process.communicate(timeout=120)
    return process.returncode, said.splitlines()


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "3", "--node-cpu", "4") as cluster:
    cluster.run("create", "namespace", "shop")
    cluster.run("config", "set-context", "--current", "--namespace=shop")
    # The pod gets node-0. For another of its kind node-1 lacks 2 cpu, node-2 2500m.
    cluster.apply(pod("large", 2, "nodeName: node-1") + pod("small", 1, "nodeName: node-1") +
                  pod("other", "3500m", "nodeName: node-2"))
    for name in ("large", "small", "other"):
        cluster.wait("pod/" + name, "condition=Ready")
    cluster.apply(WEB)
    cluster.wait("rs/web", "jsonpath={.status.readyReplicas}=1")
    (first,) = web()

    code, said = end_of(migrate(first))
    expect("without room", (code, "berth migrate: there is no room elsewhere: 0/3 nodes are available" in said[-1]), (1, True))
    expect("nothing is left of it", (cluster.names("reservations"), web()), ([], {first: "node-0"}))
    code, looked = end_of(migrate(first, "--dry-run"))
    expect("a dry run finds the same", (code, looked), (1, [said[-1]]))
    expect("where it would wait", end_of(migrate(first, "--dry-run", "--pre-allocate")),
           (0, [f"pod/{first} would move from node-0 to node-1, once there is room (dry run)"]))

    # Whoever gives up leaves nothing behind; while somebody moves the pod nobody else does.
    moving = migrate(first, "--pre-allocate")
    room = moving.stdout.readline().split()[0]
    cluster.wait(room, "jsonpath={.status.phase}=Waiting")
    code, said = end_of(migrate(first, "--pre-allocate"))
    expect("twice at once", (code, said[-1].startswith(f'berth migrate: pod "{first}" is being moved already')), (1, True))
    moving.send_signal(signal.SIGINT)
    expect("given up", end_of(moving), (1, ["berth migrate: interrupted; nothing was moved"]))
    expect("nothing is left of it", (cluster.names("reservations"), web()), ([], {first: "node-0"}))

    cluster.run("scale", "rs", "web", "--replicas=2")
    cluster.wait("rs/web", "jsonpath={.status.replicas}=2")
    (sibling,) = set(web()) - {first}
    cluster.wait("pod/" + sibling, "condition=PodScheduled=False")
    moving = migrate(first, "--pre-allocate")
    room = moving.stdout.readline().split()[0]
    cluster.wait(room, "jsonpath={.status.phase}=Waiting")
    expect("where least is missing", cluster.get(room)["status"]["nodeName"], "node-1")
    cluster.run("delete", "pod", "large", "--now")
    expect("there is room", moving.stdout.readline(), f"{room} holds room on node-1\n")
    expect("for the sibling", moving.stdout.readline(), f"pod/{sibling} took the room on node-1; reserving again\n")
    expect("again", moving.stdout.readline(), f"{room}-2 created\n")
    cluster.wait(room + "-2", "jsonpath={.status.phase}=Waiting")
    expect("the pod waits where it is", web(), {first: "node-0", sibling: "node-1"})
    cluster.run("delete", "pod", "other", "--now")
    code, said = end_of(moving)
    (replacement,) = set(web()) - {first, sibling}
    expect("the end", (code, said[-1]), (0, f"pod/{replacement} took its place on node-2"))
    expect("both are placed", web(), {sibling: "node-1", replacement: "node-2"})

    # What an earlier move of the same pod used up is in nobody's way: it is kept for a day.
    cluster.run("wait", "--for=delete", "pod/" + first, "--timeout=30s")
    expect("where it would go", end_of(migrate(sibling, "--dry-run")), (0, [f"pod/{sibling} would move from node-1 to node-0 (dry run)"]))
    expect("nothing was made", len(cluster.names("reservations")), 2)
    cluster.apply(pod("filler", 4, "nodeName: node-0"))
    cluster.wait("pod/filler", "condition=Ready")
    moving = migrate(sibling, "--pre-allocate")
    room = moving.stdout.readline().split()[0]
    cluster.wait(room, "jsonpath={.status.phase}=Waiting")
    moving.kill()
    end_of(moving)
    cluster.run("patch", room, "--type=merge", "-p", '{"spec": {"ttl": "1s"}}')
    cluster.wait(room, "jsonpath={.status.phase}=Failed")
    moving = migrate(sibling, "--pre-allocate")
    expect("another name", moving.stdout.readline(), f"{room}-2 created\n")
    moving.send_signal(signal.SIGTERM)
    expect("given up", end_of(moving)[0], 1)
print("migrate: passed")
