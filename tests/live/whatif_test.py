#!/usr/bin/env python3
"""What whatif foretells from a dump is what kubectl then does: drain, with budgets, and how many more fit."""
import collections
import json
import os
import subprocess
import sys
import tempfile

from cluster import Cluster, expect, pod

KINDS = "nodes,pods,deployments.apps,replicasets.apps,poddisruptionbudgets.policy,reservations.scheduling.koordinator.sh"


def deployment(name, replicas, cpu):
    return f"""---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{{name: main, image: app, resources: {{requests: {{cpu: "{cpu}"}}}}}}]
"""


def budget(name, least):
    return f"""---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {name}}}
spec: {{minAvailable: {least}, selector: {{matchLabels: {{app: {name}}}}}}}
"""


def app_of(document):
    return document["metadata"].get("labels", {}).get("app")


def places(pods):
    """How many pods of which application are where."""
    return dict(collections.Counter((app_of(item), item["spec"].get("nodeName")) for item in pods
                                    if "deletionTimestamp" not in item["metadata"]))


DAEMONS_AND_A_RESERVATION = """---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 10m}}}]}
---
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: kept}
spec:
  ttl: "0"
  owners: [{labelSelector: {matchLabels: {app: none}}}]
  template: {spec: {nodeName: %s, containers: [{name: main, image: app, resources: {requests: {cpu: 100m}}}]}}
"""


def who_stays_and_what_is_lost():
    """Of a node that the database is not on: a daemon stays on it, and a reservation ends with it."""
    cluster.run("scale", "deployment", "more", "--replicas=0")
    cluster.run("wait", "pods", "-l", "app=more", "--for=delete", "--timeout=60s")
    home = cluster.get("pods", "-l", "app=db")["items"][0]["spec"]["nodeName"]
    node = next(name for name in cluster.names("nodes") if name != home)
    cluster.apply(DAEMONS_AND_A_RESERVATION % node)
    cluster.run("rollout", "status", "daemonset/agent", "--timeout=60s")
    cluster.wait("reservation/kept", "jsonpath={.status.phase}=Available")
    dump = cluster.get(KINDS, "-A")
    said, _ = whatif(dump, "--drain", node)
    expect("what would be lost", said["drain"]["reservations"], ["kept"])
    cluster.run("drain", node, "--ignore-daemonsets", "--force", "--timeout=60s")
    for name in ("web", "db", "cache"):
        cluster.run("rollout", "status", "deployment/" + name, "--timeout=60s")
    there = cluster.get("pods")["items"]
    expect("who stays", [f"default/{item['metadata']['name']}" for item in there if item["spec"].get("nodeName") == node],
           said["drain"]["staying"])
    expect("after this drain", places(there), foretold(dump, said))
    cluster.run("delete", "node", node)
    cluster.wait("reservation/kept", "jsonpath={.status.phase}=Failed")


def whatif(dump, *flags):
    path = os.path.join(folder, "dump.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(dump, file)
    done = subprocess.run([sys.argv[1], "whatif", "-f", path, "-o", "json", *flags], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f"whatif {flags}: {done.returncode} {done.stderr}")
    return json.loads(done.stdout), done.stderr


def foretold(dump, said):
    """Where everything is afterwards: what has moved is where the results say."""
    app = {f"{item['metadata']['namespace']}/{item['metadata']['name']}": app_of(item) for item in dump["items"]
           if item["kind"] == "Pod"}
    moved = {f"{result['namespace']}/{result['name']}": result["node"] for result in said["results"]}
    out = collections.Counter()
    for item in dump["items"]:
        if item["kind"] == "Pod":
            name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            out[(app[name], moved.get(name, item["spec"].get("nodeName")))] += 1
    return dict(out)


with tempfile.TemporaryDirectory() as folder, \
        Cluster(sys.argv[1], sys.argv[2], "--nodes", "4", "--node-cpu", "4") as cluster:
    cluster.apply(deployment("web", 5, 1) + budget("web", 4) + deployment("db", 1, 2) + budget("db", 1) +
                  deployment("cache", 2, "500m"))
    for name in ("web", "db", "cache"):
        cluster.run("rollout", "status", "deployment/" + name, "--timeout=60s")
    for name, allowed in (("web", 1), ("db", 0)):
        cluster.wait("poddisruptionbudget/" + name, f"jsonpath={{.status.disruptionsAllowed}}={allowed}")

    # A node that the database is not on: everybody finds another place, one web pod after the other.
    there = cluster.get("pods")["items"]
    home = next(item["spec"]["nodeName"] for item in there if app_of(item) == "db")
    node = next(item["spec"]["nodeName"] for item in there if app_of(item) == "web" and item["spec"]["nodeName"] != home)
    dump = cluster.get(KINDS, "-A")
    said, _ = whatif(dump, "--drain", node, "--exit-code")
    expect("who is in the way", said["drain"]["blocked"], [])
    cluster.run("drain", node, "--ignore-daemonsets", "--force", "--timeout=60s")
    for name in ("web", "db", "cache"):
        cluster.run("rollout", "status", "deployment/" + name, "--timeout=60s")
    expect("after the drain", places(cluster.get("pods")["items"]), foretold(dump, said))

    # The database may not be disturbed.
    said, _ = whatif(cluster.get(KINDS, "-A"), "--drain", home)
    blocked = [one["pod"].rsplit("/", 1)[1].split("-")[0] for one in said["drain"]["blocked"]]
    expect("who is blocked", blocked, ["db"])
    drained = subprocess.run([cluster.kubectl, "drain", home, "--ignore-daemonsets", "--force", "--timeout=6s"],
                             env=cluster.env, capture_output=True, text=True)
    if drained.returncode == 0 or "disruption budget" not in drained.stderr:
        raise SystemExit(f"kubectl drained {home}: {drained.stdout}{drained.stderr}")
    for name in (node, home):
        cluster.run("uncordon", name)
    for name in ("web", "db", "cache"):
        cluster.run("rollout", "status", "deployment/" + name, "--timeout=60s")

    # As many more as it says, and not one more.
    wish = os.path.join(folder, "wish.yaml")
    with open(wish, "w", encoding="utf-8") as file:
        file.write(pod("one", "1500m"))
    said, _ = whatif(cluster.get(KINDS, "-A"), "--fit", wish)
    count = said["fit"]["count"]
    cluster.apply(deployment("more", count + 1, "1500m"))
    cluster.wait("deployment/more", f"jsonpath={{.status.readyReplicas}}={count}")
    placed = [item for item in cluster.get("pods", "-l", "app=more")["items"] if item["spec"].get("nodeName")]
    expect("how many fit", len(placed), count)

    # The naive edit: a node is taken out of the dump.
    dump = cluster.get(KINDS, "-A")
    dump["items"] = [item for item in dump["items"] if item["kind"] != "Node" or item["metadata"]["name"] != home]
    said, warned = whatif(dump, "--exit-code")
    lost = sorted(item["metadata"]["name"] for item in dump["items"]
                  if item["kind"] == "Pod" and item["spec"].get("nodeName") == home)
    expect("the homeless", sorted(result["name"] for result in said["results"] if result["from"] == home), lost)
    if f"nodes that are not there ({home})" not in warned:
        raise SystemExit(f"whatif does not name the node: {warned}")
    who_stays_and_what_is_lost()
print("ok")
