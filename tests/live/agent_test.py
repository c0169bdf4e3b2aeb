#!/usr/bin/env python3
"""The chain from the annotation on a Node to the machine and back: berth agent on a tree of plain files, batch resources, a pod that
leaves reserved cores, kill -9."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

from agent_test_parts import PODS, RESERVATION, Tree, cpus_of, until
from cluster import Cluster, expect

BOUND = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: bound}
spec:
  replicas: 1
  selector: {matchLabels: {app: bound}}
  template:
    metadata: {labels: {koordinator.sh/qosClass: LSR, app: bound}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {kubernetes.io/hostname: node-0}
      containers: [{name: c, image: app, resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "2", memory: 1Gi}}}]
"""


def start(*more):
    return subprocess.Popen([sys.argv[1], "agent", "--node", "node-0", "--any-files", "--cgroup-root", str(tree.root), "--topology",
                             "synthetic:socket:2 numa:1 core:4 pu:1", "--metrics-bind-address", "0", *more], env=cluster.env,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def annotate(value):
    cluster.run("annotate", "--overwrite", "node", "node-0", f"{RESERVATION}={value}" if value else f"{RESERVATION}-")


def topology(key):
    return cluster.get("noderesourcetopologies", "node-0")["metadata"]["annotations"].get(key)


def bound():
    return cluster.get("pods", "-l", "app=bound")["items"]


def cores_of(item):
    status = item["metadata"].get("annotations", {}).get("scheduling.koordinator.sh/resource-status", "{}")
    return json.loads(status).get("cpuset", "")


def batch():
    return int(cluster.get("node", "node-0")["status"]["allocatable"].get("kubernetes.io/batch-cpu", -1))


def zones():
    """batch-cpu of each NUMA node; -1: nobody has said any."""
    out = {}
    for zone in cluster.get("noderesourcetopologies", "node-0")["zones"]:
        said = {part["name"]: part["allocatable"] for part in zone["resources"]}
        out[zone["name"]] = int(said.get("kubernetes.io/batch-cpu", -1))
    return out


with tempfile.TemporaryDirectory() as place, Cluster(sys.argv[1], sys.argv[2], "--nodes", "2", "--node-cpu", "8") as cluster:
    tree = Tree(place)
    cluster.apply(PODS)
    for name in ("ls", "be"):
        cluster.wait("pod/" + name, "condition=Ready")
    uids = {name: cluster.get("pod", name)["metadata"]["uid"] for name in ("ls", "be")}
    ls, be = f"kubepods/burstable/pod{uids['ls']}", f"kubepods/besteffort/pod{uids['be']}"
    for group in (ls, be):
        tree.group(group)

    # Once: a topology and a metric, and it ends.
    once = start("--once")
    said, _ = once.communicate(timeout=60)
    expect("exit code of --once", (once.returncode, said if once.returncode else ""), (0, ""))
    expect("reserved", topology(RESERVATION), None)
    pools = json.loads(topology("node.koordinator.sh/cpu-shared-pools"))
    expect("pools", [pool["cpuset"] for pool in pools], ["0-3", "4-7"])

    agent = start("--restore")
    until("batch-cpu", lambda: batch() > 0)
    before = batch()
    until("batch-cpu of each zone", lambda: min(zones().values()) > 0)

    # Four cores for processes outside Kubernetes.
    annotate('{"reservedCPUs":"0-3"}')
    until("reserved cores in the topology", lambda: topology(RESERVATION) == '{"reservedCPUs":"0-3"}')
    until("LS pods keep off", lambda: tree.cpus(ls) == "4-7")
    until("BE pods keep off", lambda: cpus_of(tree.cpus(be)) <= {4, 5, 6, 7})
    until("batch-cpu falls", lambda: 0 <= batch() < before)
    until("it falls where the cores are", lambda: zones()["node-0"] == 0 < zones()["node-1"])

    # Killed at any point: what it wants follows from what is. BERTH_KILLS=200 for a longer run.
    seed = int(os.environ.get("BERTH_SEED", random.randrange(1 << 32)))
    dice = random.Random(seed)
    print(f"BERTH_SEED={seed}")
    for kill in range(int(os.environ.get("BERTH_KILLS", "5"))):
        reserved, wanted = dice.choice((("0-3", "4-7"), ("4-7", "0-3"), ("0", "1-7"), ("", "0-7")))
        annotate(json.dumps({"reservedCPUs": reserved}) if reserved else "")
        try:
            agent.wait(dice.uniform(0, 0.6))
            raise SystemExit("FAILED: the agent ended")
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()
        tree.check(f"kill {kill}", [ls, be])
        if dice.random() < 0.3:  # somebody else writes meanwhile
            (tree.root / "cpuset" / ls / "cpuset.cpus").write_text("0-7\n")
        agent = start("--restore")
        until(f"kill {kill}: it comes back to {wanted}", lambda: tree.cpus(ls) == wanted)
        until(f"kill {kill}: BE too", lambda: cpus_of(tree.cpus(be)) <= cpus_of(wanted))
        tree.check(f"after kill {kill}", [ls, be])

    annotate("")
    until("all comes back", lambda: tree.cpus(ls) == "0-7" and topology(RESERVATION) is None)
    until("batch-cpu comes back", lambda: batch() > 0)

    # A pod that was given cores has to leave them when they are reserved, and gets others. No other node may have it: it is evicted.
    cluster.apply(BOUND)
    until("it is given cores", lambda: any(cores_of(item) for item in bound()))
    first = bound()[0]
    annotate(json.dumps({"reservedCPUs": cores_of(first)}))
    until("it leaves reserved cores", lambda: first["metadata"]["uid"] not in [item["metadata"]["uid"] for item in bound()])
    until("it is given others", lambda: any(cores_of(item) not in ("", cores_of(first)) for item in bound()))
    modes = sorted(job["spec"]["mode"] for job in cluster.get("podmigrationjobs")["items"])
    expect("how it was tried", modes, ["EvictDirectly", "ReservationFirst"])
    cluster.run("delete", "replicaset", "bound")

    annotate('{"reservedCPUs":"0-3"}')
    until("again", lambda: tree.cpus(ls) == "4-7")
    agent.send_signal(signal.SIGTERM)
    said, _ = agent.communicate(timeout=60)
    expect("exit code", agent.returncode, 0)
    expect("given back", (tree.cpus(ls), tree.cpus("kubepods/besteffort"), tree.cpus(be)), ("0-7", "0-7", "0-7"))
