"""From the annotation on a Node down to cgroups, and back up as topology, batch resources and moved pods."""
import json
import sys

from berths import start_both
from cluster import ROOT
from deploy_tests import rest_deployments
from processes import wait_for

sys.path.insert(0, str(ROOT / "tests/live"))
from agent_test_parts import RESERVATION, Tree, cpus_of  # noqa: E402

AGENTS = "/api/v1/namespaces/berth-agents"
TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"
MOVES = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs"
STATUS = "scheduling.koordinator.sh/resource-status"
FIELDS = "application/merge-patch+json"


def agent_account(cluster, node):
    """A kubeconfig with the token that a pod of the DaemonSet has on this node."""
    name = f"agent-on-{node}"
    made = cluster.make(f"{AGENTS}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "serviceAccountName": "berth-agent", "nodeName": node, "containers": [{"name": "agent", "image": "berth"}]}})
    bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": made["metadata"]["uid"]}
    token = cluster.make(f"{AGENTS}/serviceaccounts/berth-agent/token", {"spec": {"boundObjectRef": bound}})["status"]["token"]
    path = cluster.kubeconfig(name, name)
    config = json.loads(path.read_text())
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    return path


def annotate(cluster, node, value):
    code, answer = cluster.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {RESERVATION: value}}}, FIELDS)
    assert code == 200, answer


def bound_job():
    container = {"name": "c", "image": "pause:3.10", "resources": {part: {"cpu": "2", "memory": "1Gi"} for part in ("requests", "limits")}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "bound"}, "spec": {"template": {
        "metadata": {"labels": {"app": "bound", "koordinator.sh/qosClass": "LSR"}},
        "spec": {"schedulerName": "berth", "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}}}}


class Chain:
    def __init__(self, cluster):
        self.cluster = cluster

    def pods(self):
        """Those of the Job that have cores, with their cores."""
        out = []
        for pod in self.cluster.items("/api/v1/namespaces/default/pods?labelSelector=app%3Dbound"):
            cores = cpus_of(json.loads(pod["metadata"].get("annotations", {}).get(STATUS, "{}")).get("cpuset", ""))
            if cores and not pod["metadata"].get("deletionTimestamp"):
                out.append((pod, cores))
        return out

    def pools(self, node):
        notes = self.cluster.get(f"{TOPOLOGIES}/{node}")["metadata"]["annotations"]
        return notes.get(RESERVATION), [pool["cpuset"] for pool in json.loads(notes["node.koordinator.sh/cpu-shared-pools"])]

    def batch(self, node):
        return int(self.cluster.get(f"/api/v1/nodes/{node}")["status"]["allocatable"].get("kubernetes.io/batch-cpu", -1))


def start_agents(cluster, nodes):
    trees = {}
    for node in nodes:
        trees[node] = Tree(cluster.dir / f"tree-{node}")
        cluster.run(f"berth-agent-{node}", cluster.berth, "agent", "--node", node, "--kubeconfig", agent_account(cluster, node), "--any-files",
                    "--cgroup-root", trees[node].root, "--topology", "synthetic:socket:2 numa:1 core:4 pu:1", "--metrics-bind-address", "0")
    return trees


def install_agents(cluster):
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=cluster.kubectl("kustomize", ROOT / "deploy/agent"))
    # Its pods would run no agent here; the ones of this test have their account.
    cluster.kubectl("-n", "berth-agents", "patch", "daemonset", "berth-agent", "-p",
                    '{"spec":{"template":{"spec":{"nodeSelector":{"nowhere":"true"}}}}}')


def whole_chain(stage):
    """reservedCPUs on a Node where a Job's LSR pod runs: it is moved, batch-cpu falls, pools and cgroups shrink; and all comes back"""
    with stage.cluster() as cluster:
        start_both(cluster)
        rest_deployments(cluster)
        install_agents(cluster)
        cluster.nodes(2, "cpu=8,memory=32Gi,pods=110")
        nodes = ("node-0", "node-1")
        trees = start_agents(cluster, nodes)
        chain = Chain(cluster)
        for node in nodes:
            wait_for(f"{node} lends", lambda node=node: chain.batch(node) > 0)
        # What this machine does counts as the nodes' system, up to its two cores: 4,800 less that, less the Job's 2,000.
        before = {node: chain.batch(node) for node in nodes}
        cluster.apply(bound_job())
        (first, cores), = wait_for("the Job's pod is given cores", chain.pods)
        node = first["spec"]["nodeName"]
        assert cores == {0, 1}, cores
        group = f"kubepods/pod{first['metadata']['uid']}"
        trees[node].group(group)
        wait_for("its group has them", lambda: trees[node].cpus(group) == "0-1")

        annotate(cluster, node, '{"reservedCPUs":"0-3"}')
        wait_for("pools shrink", lambda: chain.pools(node) == ('{"reservedCPUs":"0-3"}', ["4-7"]))
        wait_for("batch-cpu falls to what four cores leave, or less", lambda: 0 <= chain.batch(node) <= 800 < before[node])
        wait_for("the pod is moved", lambda: [pod for pod, _ in chain.pods() if pod["metadata"]["uid"] != first["metadata"]["uid"]])
        moved, = wait_for("the first has gone", lambda: chain.pods() if len(chain.pods()) == 1 else None)
        assert moved[0]["spec"]["nodeName"] != node, moved
        job, = cluster.items(MOVES)
        assert job["spec"]["mode"] == "ReservationFirst", job
        wait_for("it is said that it was moved", lambda: cluster.items(MOVES)[0]["status"].get("phase") == "Succeeded")

        annotate(cluster, node, None)
        wait_for("pools are back", lambda: chain.pools(node) == (None, ["0-3", "4-7"]))
        wait_for("batch-cpu is back", lambda: chain.batch(node) > 800)


def own_node_only(stage):
    """An agent writes about its own node and no other, says the ValidatingAdmissionPolicy"""
    with stage.cluster() as cluster:
        start_both(cluster)
        rest_deployments(cluster)
        install_agents(cluster)
        cluster.nodes(2)
        account = agent_account(cluster, "node-0")

        def tried(node):
            wanted = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": node}, "spec": {}}
            return cluster.kubectl("create", "-f", "-", stdin=json.dumps(wanted), kubeconfig=account, check=False)

        # The server takes a moment to see a new policy.
        def refused():
            told = tried("node-1")
            cluster.ask("DELETE", "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/node-1")
            return 'may not write about "node-1"' in told
        wait_for("it is refused for another node", refused)
        assert "created" in tried("node-0")
        for kind in ("pods", "secrets", "nodes"):
            told = cluster.kubectl("delete", kind, "--all", "-A" if kind != "nodes" else "--wait=false", kubeconfig=account, check=False)
            assert "forbidden" in told, told


def evicts_own_only(stage):
    """An agent evicts pods of its own node, by uid, and no others"""
    with stage.cluster() as cluster:
        start_both(cluster)
        rest_deployments(cluster)
        install_agents(cluster)
        cluster.nodes(2)
        account = agent_account(cluster, "node-0")
        for node in ("node-0", "node-1"):
            cluster.make("/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"on-{node}"}, "spec": {
                "nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "pause:3.10"}]}})

        def tried(pod, uid=None):
            place = f"/api/v1/namespaces/default/pods/{pod}"
            found = uid or cluster.get(place)["metadata"]["uid"]
            options = {"preconditions": {"uid": found}} if found != "none" else {}
            wanted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}, "deleteOptions": options}
            return cluster.kubectl("create", "--raw", place + "/eviction", "-f", "-", stdin=json.dumps(wanted), kubeconfig=account, check=False)

        # The server takes a moment to see a new policy, and lets nothing of it through until it knows the pods.
        wait_for("it is refused for a pod of another node", lambda: "which is not on it" in tried("on-node-1", "0"))
        assert "which is not on it" in tried("on-node-1"), "by its uid, too"
        assert "by uid" in tried("on-node-0", "none"), "without a uid"
        assert "which is not on it" in tried("on-node-0", "0"), "by a uid that is another's"
        said = wait_for("its own is evicted", lambda: (lambda told: told if "Success" in told else None)(tried("on-node-0")))
        assert "Success" in said
        assert not cluster.get("/api/v1/namespaces/default/pods/on-node-1")["metadata"].get("deletionTimestamp")


TESTS = [whole_chain, own_node_only, evicts_own_only]
