"""What is in deploy/, applied to a real API server."""
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

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


def rest_deployments(cluster):
    """The pods of Berth's own deployments would take room of the simulated nodes."""
    cluster.kubectl("-n", "berth-system", "scale", "deployment", "--all", "--replicas=0")
    wait_for("they are gone", lambda: not cluster.items("/api/v1/namespaces/berth-system/pods"))


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
    ("an object of any name", {"owners": [{"object": {"apiVersion": "v1", "kind": "Pod"}}]}, "would match every pod"),
    ("an empty controller", {"owners": [{"controller": {"controller": True}}]}, "would match every pod"),
    ("an empty selector", {"owners": [{"labelSelector": {}}]}, "would match every pod"),
    ("nothing but empty parts", {"owners": [{"object": {}, "controller": {}, "labelSelector": {}}]},
     "would match every pod"),
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
    ("an unknown toleration", {"template": {"spec": {"tolerations": [{"key": "a", "operator": "Near"}], "containers": [
        {"name": "c", "image": "i"}]}}}, "operator"),
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
        beside = reservation("beside", "a")
        beside["spec"]["owners"][0]["object"] = {}
        cluster.make(RESERVATIONS, beside)
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


def helm(cluster, *words):
    done = subprocess.run([str(cluster.bin / "helm"), "--kubeconfig", str(cluster.admin), *map(str, words)], text=True,
                          capture_output=True, timeout=120, env={"HOME": str(cluster.dir), "PATH": "/usr/bin:/bin"})
    return done.returncode, done.stdout + done.stderr


def helm_chart(stage):
    """The chart is clean, refuses unknown values, installs, upgrades, and keeps reservations when it is uninstalled"""
    chart = ROOT / "deploy/helm/berth"
    place = ("-n", "berth-system")

    def must(*words):
        code, told = helm(cluster, *words)
        assert code == 0, told
        return told

    with stage.cluster() as cluster:
        must("lint", "--strict", chart)
        for wrong in ("nonsense=1", "scheduler.replicas=0", "controllers.reservationGc=soon", "image.repository="):
            code, told = helm(cluster, "template", "berth", chart, "--set", wrong)
            assert code != 0 and wrong.split("=")[0].split(".")[-1] in told, f"{wrong}: {told}"
        assert not re.search(r"""[-:] ['"]?\*['"]?$""", must("template", "berth", chart), re.MULTILINE), "a role has a wildcard"
        told = must("template", "berth", chart, "--set", "metrics.tokenSecret=scrape")
        assert told.count("--metrics-token-file=") == 2 and told.count('secretName: "scrape"') == 2, told
        must("install", "berth", chart, *place, "--create-namespace")
        wait_for("reservations are served", lambda: cluster.ask("GET", RESERVATIONS)[0] == 200)
        cluster.make(RESERVATIONS, reservation("kept", "a"))
        must("upgrade", "berth", chart, *place, "--set", "scheduler.replicas=3,controllers.bindingWebhook=true")
        assert cluster.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-webhook")[0] == 200
        deployment = cluster.get("/apis/apps/v1/namespaces/berth-system/deployments/berth-scheduler")
        assert deployment["spec"]["replicas"] == 3
        pods = "/api/v1/namespaces/berth-system/pods"
        # None becomes ready here, so the old pods of a rolling update stay beside the new ones.
        wait_for("both deployments made their pods", lambda: len(cluster.items(pods)) >= 5)
        must("uninstall", "berth", *place)
        assert cluster.get(RESERVATIONS + "/kept")["metadata"]["name"] == "kept"
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-scheduler"
        wait_for("the roles are gone", lambda: cluster.ask("GET", role)[0] == 404)


def image(stage):
    """The image has everything that berth needs: it runs in it, as nobody in particular, and is the same when built again"""
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        for name in ("one.tar", "two.tar"):
            subprocess.run([ROOT / "deploy/image/build", stage.berth, place / name], check=True, capture_output=True)
        assert (place / "one.tar").read_bytes() == (place / "two.tar").read_bytes(), "two builds differ"
        with tarfile.open(place / "one.tar") as whole:
            whole.extractall(place, filter="data")
        manifest = json.loads((place / "manifest.json").read_text())[0]
        with tarfile.open(place / manifest["Layers"][0]) as layer:
            layer.extractall(place / "root", filter="data")
        config = json.loads((place / manifest["Config"]).read_text())["config"]
        assert config["User"] == "65532:65532" and config["Entrypoint"] == ["/usr/bin/berth"], config
        if os.getuid() != 0:
            return stage.say("not run in it: that needs root")
        place.chmod(0o755)
        words = ["chroot", f"--userspec={config['User']}", place / "root", *config["Entrypoint"], "version"]
        told = subprocess.run(words, capture_output=True, text=True)
        assert told.stdout.startswith("berth "), told.stderr


def units(stage):
    """systemd's own judge finds the units tight (below 3.0)"""
    if not shutil.which("systemd-analyze"):
        return stage.say("not judged: there is no systemd-analyze")
    for unit in sorted((ROOT / "deploy/systemd").glob("*.service")):
        words = ["systemd-analyze", "security", "--offline=true", "--threshold=30", str(unit)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout.splitlines()[-1:] + [done.stderr]


TESTS = [deploy_base, reservation_schema, helm_chart, image, units]
