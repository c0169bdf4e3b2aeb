#!/usr/bin/env python3
"""The workloads that people try first, with the manifests that they bring and `kubectl rollout`."""
import sys

from cluster import Cluster, expect

STATEFUL = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: sql, port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {kubernetes.io/change-cause: first}}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: IMAGE
        ports: [{name: sql, containerPort: 5432}]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""

DAEMONS = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: IMAGE}]}
"""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: IMAGE, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""

CRON = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  timeZone: Europe/Berlin
  successfulJobsHistoryLimit: 1
  concurrencyPolicy: Forbid
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: app}]}}}
"""


def images(cluster, app):
    return {pod["spec"]["containers"][0]["image"] for pod in cluster.get("pods", "-l", f"app={app}")["items"]}


def revisions(cluster, what):
    """The numbers that `kubectl rollout history` shows."""
    return [line.split()[0] for line in cluster.run("rollout", "history", what).splitlines() if line[:1].isdigit()]


def roll(cluster, what, manifest, app):
    """Up, to another image, back again and back to a number: each time `kubectl rollout` knows."""
    cluster.apply(manifest.replace("IMAGE", "app:1"))
    cluster.run("rollout", "status", what, "--timeout=60s")
    expect(f"the first images of {what}", images(cluster, app), {"app:1"})
    cluster.apply(manifest.replace("IMAGE", "app:2"))
    cluster.run("rollout", "status", what, "--timeout=60s")
    expect(f"the images of {what} after the update", images(cluster, app), {"app:2"})
    expect(f"the history of {what}", revisions(cluster, what), ["1", "2"])
    cluster.run("rollout", "undo", what)
    cluster.run("rollout", "status", what, "--timeout=60s")
    expect(f"the images of {what} after undo", images(cluster, app), {"app:1"})
    expect(f"the history of {what} after undo", revisions(cluster, what), ["2", "3"])
    cluster.run("rollout", "undo", what, "--to-revision=2")
    cluster.run("rollout", "status", what, "--timeout=60s")
    expect(f"the images of {what} after undo to 2", images(cluster, app), {"app:2"})
    expect(f"the history of {what} after undo to 2", revisions(cluster, what), ["3", "4"])


def stateful(cluster):
    roll(cluster, "statefulset/db", STATEFUL, "db")
    expect("the pods", cluster.names("pods", "-l", "app=db"), ["db-0", "db-1", "db-2"])
    expect("the claims", cluster.names("pvc"), ["data-db-0", "data-db-1", "data-db-2"])
    expect("their class", {item["spec"]["storageClassName"] for item in cluster.get("pvc")["items"]}, {"standard"})
    expect("their phase", {item["status"]["phase"] for item in cluster.get("pvc")["items"]}, {"Bound"})
    subset = cluster.get("endpoints", "db")["subsets"][0]
    expect("who can be found by name", sorted(each["hostname"] for each in subset["addresses"]), ["db-0", "db-1", "db-2"])
    cluster.run("scale", "statefulset/db", "--replicas=1")
    cluster.wait("pod/db-1", "delete")
    expect("the claims stay", len(cluster.names("pvc")), 3)


def daemons(cluster):
    roll(cluster, "daemonset/agent", DAEMONS, "agent")
    nodes = sorted(pod["spec"]["nodeName"] for pod in cluster.get("pods", "-l", "app=agent")["items"])
    expect("a pod on each node", nodes, ["node-0", "node-1", "node-2"])
    cluster.run("cordon", "node-1")
    cluster.run("delete", "pod", "-l", "app=agent")
    cluster.run("rollout", "status", "daemonset/agent", "--timeout=60s")
    expect("cordoned nodes have their daemons", len(cluster.names("pods", "-l", "app=agent")), 3)


def deployment(cluster):
    roll(cluster, "deployment/web", DEPLOYMENT, "web")
    expect("the sets", len(cluster.names("replicasets", "-l", "app=web")), 2)
    slices = cluster.get("endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
    expect("where the service leads", sum(len(each["endpoints"]) for each in slices), 2)


def cron(cluster):
    cluster.apply(CRON)
    cluster.wait("cronjob/tick", "jsonpath={.status.active[*].kind}=Job", 90)
    cluster.run("wait", "--for=condition=complete", "job", "--all", "--timeout=30s")
    expect("who made the job", len(cluster.events("SuccessfulCreate")), 1)
    refused = ""
    try:
        cluster.apply(CRON.replace("Europe/Berlin", "Mars/Olympus"))
    except SystemExit as error:
        refused = str(error)
    expect("a place that does not exist is refused", "unknown time zone Mars/Olympus" in refused, True)


if __name__ == "__main__":
    with Cluster(sys.argv[1], sys.argv[2]) as live:
        stateful(live)
        daemons(live)
        deployment(live)
        cron(live)
