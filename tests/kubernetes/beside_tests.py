"""Berth beside kube-scheduler, and instead of it."""
import collections
import json

from berths import Watcher, start, start_both
from cluster import PODS
from deploy_tests import install, rest_deployments
from invariants import check
from objects import pod, reservation
from processes import wait_for
from scheduler_tests import all_bound


def start_kube_scheduler(cluster, **more):
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
              "leaderElection": {"leaderElect": False},
              "clientConnection": {"kubeconfig": str(cluster.admin), "qps": 1000, "burst": 1000}, **more}
    path = cluster.dir / "kube-scheduler.json"
    path.write_text(json.dumps(config))
    return cluster.run("kube-scheduler", cluster.bin / "kube-scheduler", "--config", path, "--secure-port=0")


def beside_kube_scheduler(stage):
    """Both on one cluster: each places its own pods; what the other one placed counts; on nodes of its own Berth is exact"""
    with stage.cluster() as cluster:
        start_both(cluster)
        rest_deployments(cluster)
        start_kube_scheduler(cluster)
        cluster.nodes(10, prefix="shared-")
        cluster.nodes(5, prefix="berth-", labels="pool=berth")
        for i in range(5):
            taint = {"spec": {"taints": [{"key": "berth.dev/pool", "effect": "NoSchedule"}]}}
            code, answer = cluster.ask("PATCH", f"/api/v1/nodes/berth-{i}", taint, "application/merge-patch+json")
            assert code == 200, answer
        own = {"nodeSelector": {"pool": "berth"}, "tolerations": [{"key": "berth.dev/pool", "operator": "Exists"}]}
        watch = Watcher(cluster)
        held = reservation("held", "a", "4", template=own)
        cluster.apply(held)
        watch.phase("held", "Available")
        cluster.make_many(PODS, [pod(f"theirs-{i}", "100m", None, scheduler="default-scheduler") for i in range(100)])
        cluster.make_many(PODS, [pod(f"ours-{i}", "100m", None) for i in range(100)])
        cluster.make_many(PODS, [pod(f"pool-{i}", "1", None, **own) for i in range(17)])  # 16 fit beside the reservation

        def all_but_one():
            nodes = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in cluster.items(PODS)}
            placed = collections.Counter((name.split("-")[0], node.split("-")[0]) for name, node in nodes.items() if node)
            assert placed == {("theirs", "shared"): 100, ("ours", "shared"): 100, ("pool", "berth"): 16}, placed
            return True
        wait_for("200 pods and 16 of the pool are bound", all_but_one)
        cluster.make(PODS, pod("owner", "4", None, labels={"owner": "a"}, **own))
        assert watch.bound("owner").startswith("berth-") and watch.reservation_of("owner") == "held"
        check(cluster)


def instead_of_kube_scheduler(stage):
    """Without kube-scheduler: a Deployment's pods, which name nobody, are placed; what does not fit says why; room wakes it"""
    with stage.cluster() as cluster:
        install(cluster)
        scheduler = start(cluster, flags=["--scheduler-name", "default-scheduler,berth", "--metrics-bind-address", "0"])
        start(cluster, "controllers", flags=["--metrics-bind-address", "0"])
        cluster.nodes(3)
        # Four to a node, also beside pods of Berth's own deployments.
        container = {"name": "c", "image": "pause:3.10", "resources": {"requests": {"cpu": "900m"}}}
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
                      "spec": {"replicas": 13, "selector": {"matchLabels": {"app": "web"}},
                               "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}}
        cluster.apply(deployment)
        wait_for("13 pods exist", lambda: len(cluster.items(PODS)) == 13)
        all_bound(cluster, 12)
        waiting = next(p["metadata"]["name"] for p in cluster.items(PODS) if not p["spec"].get("nodeName"))
        assert Watcher(cluster).refused(waiting).startswith("0/3 nodes are available: 3 Insufficient cpu.")
        cluster.nodes(1, prefix="more-")
        all_bound(cluster, 13)
        cluster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
        check(cluster)
        assert scheduler.alive()


def rotated_token(stage):
    """A service account's token is taken away and replaced in its file: Berth goes on with the new one"""
    with stage.cluster() as cluster:
        install(cluster)
        cluster.nodes(2)
        token_file = cluster.dir / "token"

        def issue(name):
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "berth-system"}}
            cluster.apply(secret)
            token = cluster.kubectl("create", "token", "berth-scheduler", "-n", "berth-system", "--bound-object-kind=Secret",
                                    f"--bound-object-name={name}")
            fresh = cluster.dir / "token.new"
            fresh.write_text(token)
            fresh.chmod(0o600)
            fresh.rename(token_file)

        issue("first")
        config = json.loads(cluster.admin.read_text())
        config["users"][0]["user"] = {"tokenFile": str(token_file)}
        kubeconfig = cluster.dir / "token.kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        kubeconfig.chmod(0o600)
        cluster.run("berth-scheduler", cluster.berth, "scheduler", "--kubeconfig", kubeconfig, "--metrics-bind-address", "0")
        cluster.make_many(PODS, [pod(f"a{i}") for i in range(10)])
        all_bound(cluster, 10)
        old = token_file.read_text().strip()
        issue("second")
        cluster.kubectl("delete", "secret", "first", "-n", "berth-system")
        wait_for("the old token is refused", lambda: "nauthorized" in cluster.kubectl(
            f"--token={old}", "get", "pods", kubeconfig=bare(cluster), check=False))
        cluster.make_many(PODS, [pod(f"b{i}") for i in range(10)])
        all_bound(cluster, 20)


def bare(cluster):
    """A kubeconfig without any user."""
    config = json.loads(cluster.admin.read_text())
    config["users"][0]["user"] = {}
    path = cluster.dir / "bare.kubeconfig"
    path.write_text(json.dumps(config))
    return path


TESTS = [beside_kube_scheduler, instead_of_kube_scheduler, rotated_token]
