"""What is in deploy/, applied to a real API server."""
import copy
import re

from cluster import RESERVATIONS, ROOT
from objects import reservation
from processes import wait_for

BASE = ROOT / "deploy/base"


def install(cluster):
    """Applies deploy/base and waits until reservations are served."""
    text = cluster.kubectl("kustomize", BASE)
    for _ in range(2):  # the second time nothing may change
        told = cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    wait_for("reservations are served", lambda: cluster.ask("GET", RESERVATIONS)[0] == 200)
    return text, told


def deploy_base(stage):
    """kubectl kustomize deploy/base applies, twice; nothing in it is a wildcard; pods of it are admitted"""
    with stage.cluster() as cluster:
        text, _ = install(cluster)
        assert not re.search(r"""^\s*- ['"]?\*['"]?$""", text, re.MULTILINE), "a role has a wildcard"
        cluster.nodes(2)
        pods = "/api/v1/namespaces/berth-system/pods"
        wait_for("both deployments made their pods", lambda: len(cluster.items(pods)) == 4)
        told = cluster.kubectl("get", "crd,deployments,pdb,serviceaccounts", "-n", "berth-system")
        for name in ("reservations.scheduling.koordinator.sh", "berth-scheduler", "berth-controllers"):
            assert name in told, told


# What a strict schema refuses, with a part of what it says.
BROKEN = [
    ("ttl abc", {"ttl": "abc"}, "spec.ttl"),
    ("a negative ttl", {"ttl": "-5s"}, "spec.ttl"),
    ("no owners", {"owners": []}, "spec.owners"),
    ("an empty owner", {"owners": [{}]}, "needs at least one of"),
    ("an empty object", {"owners": [{"object": {}}]}, "would match every pod"),
    ("an empty controller", {"owners": [{"controller": {"controller": True}}]}, "would match every pod"),
    ("an empty selector", {"owners": [{"labelSelector": {}}]}, "would match every pod"),
    ("an unknown operator", {"owners": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]},
     "operator"),
    ("an unknown policy", {"allocatePolicy": "Strict"}, "allocatePolicy"),
    ("no template", {"template": None}, "spec.template"),
    ("a template without containers", {"template": {"spec": {"containers": []}}}, "containers"),
    ("a quantity that is none", {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "much"}}}]}}}, "requests"),
    ("a negative quantity", {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "-1"}}}]}}}, "requests"),
    ("a port that is none", {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 70000}]}]}}}, "hostPort"),
    ("a taint without an effect", {"taints": [{"key": "a"}]}, "effect"),
    ("an unreadable end", {"expires": "tomorrow"}, "expires"),
]


def reservation_schema(stage):
    """The CRD refuses what `berth up` refuses, keeps unknown template fields, prints its columns, guards its status"""
    with stage.cluster() as cluster:
        install(cluster)
        for what, change, part in BROKEN:
            broken = reservation("broken", "a")
            broken["spec"].update(copy.deepcopy(change))
            code, answer = cluster.ask("POST", RESERVATIONS, broken)
            assert code == 422 and part in answer["message"], f"{what}: {code} {answer}"
        good = reservation("good", "a", cpu="4", memory="4Gi")
        good["spec"]["template"]["spec"]["somethingNew"] = {"kept": True}
        good["status"] = {"phase": "Available"}
        made = cluster.make(RESERVATIONS, good)
        assert made["spec"]["template"]["spec"]["somethingNew"] == {"kept": True}, made
        assert made["spec"]["allocateOnce"] is True and "status" not in made, made
        code, answer = cluster.ask("PATCH", RESERVATIONS + "/good/status", {"status": {
            "phase": "Available", "nodeName": "node-7", "allocatable": {"cpu": "4"}}}, "application/merge-patch+json")
        assert code == 200, answer
        row = cluster.kubectl("get", "reservations", "good").splitlines()
        assert row[0].split() == ["NAME", "PHASE", "AGE", "NODE", "TTL", "EXPIRES"], row
        assert row[1].split()[:2] == ["good", "Available"] and "node-7" in row[1], row
        assert "24h" in cluster.kubectl("explain", "reservation.spec.ttl")


TESTS = [deploy_base, reservation_schema]
