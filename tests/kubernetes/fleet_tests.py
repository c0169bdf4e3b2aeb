"""Machines through layers of pools, beside Kubernetes' and IronCore's own programs."""
import json
import os
import subprocess
import sys

from cluster import ROOT, Cluster
from processes import free_port, wait_for

sys.path.insert(0, str(ROOT / "tests/fleet"))
from pools import COMPUTE, CORE, Tree, expect, until  # noqa: E402

IRONCORE = ROOT / "tests/kubernetes/ironcore"
ROOM = {"memory": "64Gi"}


class Root:
    """A stock kube-apiserver as the top layer."""

    def __init__(self, cluster):
        self.cluster, self.kubeconfig = cluster, str(cluster.admin)

    def ask(self, *words):
        return self.cluster.ask(*words)

    def merge(self, path, body):
        return self.cluster.ask("PATCH", path, body, "application/merge-patch+json")


def fleet_below_kubernetes(stage):
    """a stock kube-apiserver with deploy/fleet is the root; a layer of ours and a provider are its pools"""
    with stage.cluster(controllers=False) as cluster:
        cluster.kubectl("apply", "--server-side", "-k", ROOT / "deploy/fleet")
        for group, plural in ((COMPUTE, "machines"), (COMPUTE, "machinepools"), (COMPUTE, "reservations"), (CORE, "reservations")):
            wait_for(f"{plural} are served", lambda path=f"{group}/{plural}": cluster.ask("GET", path)[0] == 200)
        spec = {"z": {"a": {"cpu": 2, **ROOM}, "b": {"cpu": 0}}, "d": {"cpu": 1, **ROOM}}
        with Tree(str(stage.berth), spec, root=Root(cluster)) as tree:
            tree.machine("m", 2)
            expect("its pool", tree.lands("m"), "z")
            tree.machine("n", 1)
            expect("its pool", tree.lands("n"), "d")
            tree.clean()
            _refused(tree)
            _answers_of_all(tree)
            for name in ("m", "n"):
                tree.delete(name)
            until("both are gone", lambda: not tree.root.machines())
            expect("what is left", tree.judge(), {})


def _refused(tree):
    """What the kinds do not allow."""
    server = tree.root.server
    code, told = server.merge(f"{COMPUTE}/namespaces/default/machines/m", {"spec": {"machinePoolRef": {"name": "d"}}})
    assert code == 422 and "immutable" in told["message"], told
    code, told = server.merge(f"{COMPUTE}/namespaces/default/machines/m", {"spec": {"machineClassRef": {"name": "other"}}})
    assert code == 422 and "immutable" in told["message"], told
    code, told = server.ask("GET", f"{COMPUTE}/machines?fieldSelector=spec.machinePoolRef.name=z")
    expect("machines of z", [each["metadata"]["name"] for each in told["items"]], ["m"])
    for amount in ("-1", "0", "many"):
        code, told = server.ask("POST", f"{CORE}/namespaces/default/reservations", {
            "apiVersion": "core.ironcore.dev/v1alpha1", "kind": "Reservation", "metadata": {"name": "bad"},
            "spec": {"resources": {"cpu": amount}}})
        assert code == 422, (amount, code, told)


def _answers_of_all(tree):
    """Both pools write into one list at once."""
    for i in range(10):
        tree.root.reserve(f"kept-{i}", {"tpu": "1"})

        def answers(name=f"kept-{i}"):
            for each in tree.root.reservations():
                if each["metadata"]["name"] == name:
                    return sorted(entry["name"] for entry in each.get("status", {}).get("pools", [])) == ["d", "z"]
        until("both have answered", answers)
        tree.root.delete(CORE, "reservations", f"kept-{i}")


def ironcore_programs(stage, *packages):
    """IronCore's own programs of the version in ironcore/go.mod; None where Go's module proxy has them not."""
    folder = os.path.abspath(str(stage.programs))
    names = [f"github.com/ironcore-dev/ironcore/{package}" for package in packages]
    done = subprocess.run(["go", "build", "-ldflags", "-s -w", "-o", folder + "/", *names], cwd=IRONCORE, capture_output=True,
                          text=True)
    if done.returncode != 0:
        stage.say("skipped, IronCore's programs cannot be built: " + done.stderr.strip()[-300:])
        return None
    return folder


def _irictl(folder, address, *words, body=None, refused=None):
    """What it printed; `refused`: what it must be told."""
    done = subprocess.run([folder + "/irictl-machine", "--address", address, *words], capture_output=True, text=True, timeout=60,
                          input=None if body is None else json.dumps(body))
    printed = done.stdout + done.stderr
    assert (done.returncode == 0) == (refused is None), f"irictl-machine {' '.join(words)}: {printed}"
    assert refused is None or refused in printed, printed
    return done.stdout


def _needs(name, cpu):
    return {"metadata": {"labels": {"machinepoollet.ironcore.dev/machine-uid": name},
                         "annotations": {"berth.dev/resources": json.dumps({"cpu": cpu, "nics": "1"})}},
            "spec": {"class": "small", "network_interfaces": [{"name": "n", "network_id": "x"}]}}


def _listed(folder, address, name):
    found = [each for each in json.loads(_irictl(folder, address, "get", "machine", "-o", "json"))
             if each["metadata"]["labels"].get("machinepoollet.ironcore.dev/machine-uid") == name]
    expect("how many there are", len(found), 1)
    return found[0]


def _by_hand(folder, address, name):
    """A machine comes, by IronCore's command line, and is turned off and on."""
    assert "berth" in _irictl(folder, address, "get", "version"), "no version"
    _irictl(folder, address, "get", "status")
    _irictl(folder, address, "create", "machine", "-f", "-", body=_needs(name, "1"))
    machine = _listed(folder, address, name)["metadata"]["id"]
    # On, and 0 of the enumeration, is left out of JSON.
    for power, word in ((1, "SUSPENDED"), (0, "RUNNING")):
        _irictl(folder, address, "update", "power", "--machine-id", machine, "--power", str(power))
        until(f"{name} is {word}", lambda told=word: told in _irictl(folder, address, "get", "machine", machine))
    return machine


def _room_by_hand(folder, address, machine):
    """Interfaces need room; what does not fit is refused with a sentence, and shows as an event."""
    for i in range(1, 4):
        body = {"name": f"n{i}", "network_id": "x"}
        words = "attach", "networkinterface", "--machine-id", machine, "-f", "-"
        _irictl(folder, address, *words, body=body, refused="Insufficient room" if i == 3 else None)
    _irictl(folder, address, "detach", "networkinterface", "--machine-id", machine, "n1")
    _irictl(folder, address, "create", "machine", "-f", "-", body=_needs("huge", "9"), refused="Unsatisfiable room")
    told = _irictl(folder, address, "get", "events")
    assert "it has its room" in told and "Unsatisfiable room" in told, told


def fleet_ironcore_command_line(stage):
    """IronCore's irictl-machine asks our provider, and a broker of ours, whose layer places the machine"""
    folder = ironcore_programs(stage, "irictl-machine/cmd/irictl-machine")
    if folder is None:
        return
    with Tree(str(stage.berth), {"z": {"a": {"cpu": 4, "nics": 3, **ROOM}}}) as tree:
        direct = _by_hand(folder, tree.socket("a"), "direct")
        expect("where it is", set(tree.used("a")), {"direct"})
        _room_by_hand(folder, tree.socket("a"), direct)
        _irictl(folder, tree.socket("a"), "delete", "machine", direct)
        expect("what is left", tree.used("a"), {})
        brokered = _by_hand(folder, tree.socket("z"), "brokered")
        until("it runs in the layer below", lambda: tree.running("z"))
        expect("what is used", list(tree.used("a").values()), [1])
        _irictl(folder, tree.socket("z"), "delete", "machine", brokered)
        until("it is gone", lambda: not tree.layers["z"].machines() and not tree.used("a"))


class BelowAggregation(Cluster):
    """A kube-apiserver that others may stand behind."""

    def start_server(self):
        cert, key = self.authority.client("aggregator", "aggregator")
        self.server_flags += ["--requestheader-client-ca-file", self.authority.cert, "--requestheader-allowed-names=aggregator",
                              "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
                              "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--proxy-client-cert-file", cert,
                              "--proxy-client-key-file", key]
        super().start_server()

    def start_ironcore(self, folder):
        """IronCore's API server, which serves its groups through ours."""
        port = free_port()
        self.make("/api/v1/namespaces/default/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "ironcore"},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}})
        self.run("ironcore-apiserver", folder + "/ironcore-apiserver", "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}",
                 "--secure-port", port, "--bind-address=127.0.0.1", "--kubeconfig", self.admin, "--authentication-kubeconfig",
                 self.admin, "--authorization-kubeconfig", self.admin, "--cert-dir", self.dir / "ironcore-pki",
                 "--enable-priority-and-fairness=false")
        for group in ("compute", "storage", "networking", "ipam", "core"):
            self.make("/apis/apiregistration.k8s.io/v1/apiservices", {
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": f"v1alpha1.{group}.ironcore.dev"},
                "spec": {"group": f"{group}.ironcore.dev", "version": "v1alpha1", "groupPriorityMinimum": 2000,
                         "versionPriority": 15, "insecureSkipTLSVerify": True,
                         "service": {"namespace": "default", "name": "ironcore", "port": port}}})
        wait_for("IronCore's machines are served", lambda: self.ask("GET", f"{COMPUTE}/machines")[0] == 200)


SMALL = {"cpu": "1", "memory": "1Gi"}


def _pool_below(cluster, stage, folder):
    """A provider of ours, as the pool p of IronCore's API server."""
    small = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "MachineClass", "metadata": {"name": "small"},
             "capabilities": SMALL}
    cluster.make(f"{COMPUTE}/machineclasses", small)
    classes = cluster.dir / "classes.json"
    classes.write_text(json.dumps(small))
    socket = f"unix://{cluster.dir}/a.sock"
    provider = cluster.run("berth-provider", stage.berth, "fleet", "provider", "--listen", socket, "--data-dir", cluster.dir / "a",
                           "--capacity", "cpu=1,memory=1Gi", "--classes", classes, "--publish-amounts")
    wait_for("the provider is ready", lambda: provider.printed("^berth: ready"))
    cluster.run("machinepoollet", folder + "/machinepoollet", "--kubeconfig", cluster.admin, "--machine-pool-name", "p",
                "--provider-id", "berth://a", "--machine-runtime-endpoint", socket, "--health-probe-bind-address", "0",
                "--metrics-bind-address", "0", "--address", f"127.0.0.1:{free_port()}", "--insecure-disable-auth",
                "--addresses-hostname-override", "localhost", "--leader-election-kubeconfig", cluster.admin,
                "--cert-dir", cluster.dir / "poollet-pki", "--relist-period", "1s")

    def pool():
        code, document = cluster.ask("GET", f"{COMPUTE}/machinepools/p")
        return document["status"] if code == 200 and document.get("status", {}).get("availableMachineClasses") else None
    wait_for("the pool has the class", pool)


def fleet_ironcore_poollet(stage):
    """IronCore's poollet, below IronCore's API server, brings a machine to our provider and follows it"""
    folder = ironcore_programs(stage, "cmd/ironcore-apiserver", "poollet/machinepoollet/cmd/machinepoollet")
    if folder is None:
        return
    with BelowAggregation(stage.programs, stage.berth, controllers=False, keep=stage.arguments.keep) as cluster:
        cluster.start_ironcore(folder)
        _pool_below(cluster, stage, folder)
        _lives(cluster, "m")


def fleet_ironcore_broker(stage):
    """our poollet has IronCore's machinebroker below it, which knows no reservations: best effort, down to our provider"""
    folder = ironcore_programs(stage, "cmd/ironcore-apiserver", "poollet/machinepoollet/cmd/machinepoollet",
                               "broker/machinebroker/cmd/machinebroker")
    if folder is None:
        return
    with BelowAggregation(stage.programs, stage.berth, controllers=False, keep=stage.arguments.keep) as cluster:
        cluster.start_ironcore(folder)
        _pool_below(cluster, stage, folder)
        socket = f"{cluster.dir}/broker.sock"
        cluster.run("machinebroker", folder + "/machinebroker", "--kubeconfig", cluster.admin, "--namespace", "default",
                    "--machine-pool-name", "p", "--address", socket, "--streaming-address", f"127.0.0.1:{free_port()}")
        wait_for("the broker listens", lambda: os.path.exists(socket))
        with Tree(str(stage.berth), {}) as tree:
            tree.add_poollet(tree.root, "z", f"unix://{socket}").ready()
            tree.ready()
            tree.root.create(COMPUTE, "machineclasses", "MachineClass", "small", ns=False, capabilities=SMALL)
            tree.root.create(COMPUTE, "machines", "Machine", "m", spec={"machineClassRef": {"name": "small"}})
            expect("its pool", tree.lands("m"), "z")
            below = cluster.items(f"{COMPUTE}/machines")
            expect("below", [each["status"]["state"] for each in below], ["Running"])
            tree.delete("m")
            until("it is gone", lambda: not tree.root.machines() and not cluster.items(f"{COMPUTE}/machines"))


def _lives(cluster, name):
    """One machine: there, off, on, refused where there is no room, gone."""
    machines = f"{COMPUTE}/namespaces/default/machines"

    def make(machine):
        cluster.make(machines, {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "Machine", "metadata": {"name": machine},
                                "spec": {"machineClassRef": {"name": "small"}, "machinePoolRef": {"name": "p"}, "power": "On"}})

    def state(machine):
        return cluster.get(f"{machines}/{machine}").get("status", {}).get("state")
    make(name)
    wait_for("it runs", lambda: state(name) == "Running")
    found = cluster.get(f"{machines}/{name}")["status"]["machineID"]
    assert found.startswith("berth://"), found
    make("second")
    events = "/apis/events.k8s.io/v1/events"
    wait_for("there is no room for another", lambda: any(
        "Insufficient room" in each.get("note", "") for each in cluster.items(events)) or state("second") != "Running")
    cluster.ask("PATCH", f"{machines}/{name}", {"spec": {"power": "Off"}}, "application/merge-patch+json")
    wait_for("it is off", lambda: state(name) == "Shutdown")
    assert cluster.ask("DELETE", f"{machines}/{name}")[0] == 200
    wait_for("it is gone", lambda: cluster.ask("GET", f"{machines}/{name}")[0] == 404)
    wait_for("its room is another's", lambda: state("second") == "Running")


# IronCore's programs take minutes to build: with IRONCORE=1.
TESTS = [fleet_below_kubernetes]
if os.environ.get("IRONCORE"):
    TESTS += [fleet_ironcore_command_line, fleet_ironcore_poollet, fleet_ironcore_broker]
