"""A tree of pools as real processes that talk by gRPC: for each layer a server and a scheduler, for each pool a poollet, below it a
broker or a provider. What a provider has promised is read from its ledger, not from what anybody says."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from server import Server  # noqa: E402

COMPUTE = "/apis/compute.ironcore.dev/v1alpha1"
CORE = "/apis/core.ironcore.dev/v1alpha1"


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, got {got!r}")


def until(what, check, seconds=60):
    """The first true answer of check(). The time is for machines that are slow and busy."""
    end = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


class Part:
    """One process, that may be killed and begin anew."""

    def __init__(self, words, log, env=None):
        self.words, self.log, self.env = words, log, env
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=log, text=True, env=self.env)

    def ready(self):
        line = self.process.stdout.readline()
        if not line.startswith("berth: ready"):
            raise AssertionError(f"{' '.join(self.words)} did not start: {open(self.log).read()[-2000:]}")
        return line

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restart(self):
        self.kill()
        self.start()
        self.ready()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)


class Layer:
    def __init__(self, tree, name, above, server=None):
        self.name, self.ours = name, server is None
        self.server = server or Server(tree.berth, "--in-memory", "--fleet")
        self.kubeconfig = self.server.kubeconfig
        self.above = above

    def list(self, group, plural):
        code, answer = self.server.ask("GET", f"{group}/{plural}")
        expect(f"listing {plural}", code, 200)
        return answer["items"]

    def reservations(self):
        return self.list(CORE, "reservations")

    def machines(self):
        return {each["metadata"]["name"]: each for each in self.list(COMPUTE, "machines")}

    def create(self, group, plural, kind, name, ns=True, **more):
        body = {"apiVersion": group[len("/apis/"):], "kind": kind, **more}
        body["metadata"] = {"name": name, **more.get("metadata", {})}
        code, answer = self.server.ask("POST", f"{group}/{'namespaces/default/' if ns else ''}{plural}", body)
        if code != 201:
            raise AssertionError(f"making {plural} {name}: {code} {answer}")
        return answer

    def reserve(self, name, resources, pools=(), more=None, **top):
        return self.create(CORE, "reservations", "Reservation", name,
                           spec={"pools": list(pools), "resources": resources, **(more or {})}, **top)

    def delete(self, group, plural, name, ns=True):
        return self.server.ask("DELETE", f"{group}/{'namespaces/default/' if ns else ''}{plural}/{name}")[0]


class Tree:
    """`spec`: a mapping of names; a mapping of amounts is a provider, any other a layer below. `root`: the server of the top layer,
    where it is not to be one of ours: ask(), merge() and a kubeconfig. `env`: what all but servers are run with."""

    def __init__(self, berth, spec, scheduler=(), broker=(), provider=(), poollet=(), schedulers=1, start=True, root=None, env=None):
        self.berth, self.env = berth, env
        self.dir = tempfile.mkdtemp(prefix="berth-fleet-")
        self.flags = {"scheduler": scheduler, "broker": broker, "provider": provider, "poollet": poollet}
        self.count = schedulers
        self.parts = {}  # "scheduler root", "poollet a", "broker z1", "provider a"
        self.layers = {}
        self.leaves = {}  # capacity, by name
        self.classes = set()
        self.add_layer("root", spec, None, root)
        if start:
            for part in self.parts.values():
                part.ready()
            self.ready()

    def __enter__(self):
        return self

    def __exit__(self, *trouble):
        if trouble[0] is not None:
            print(self.story())
        for part in self.parts.values():
            if part.process.poll() is None:
                part.go_on()
                part.kill()
        for layer in self.layers.values():
            if not layer.ours:
                continue
            layer.server.process.kill()
            layer.server.process.wait()
            shutil.rmtree(layer.server.dir, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def add_layer(self, name, spec, above, server=None):
        layer = self.layers[name] = Layer(self, name, above, server)
        for i in range(self.count):
            self.add("scheduler", name if i == 0 else f"{name} {i + 1}", "--kubeconfig", layer.kubeconfig)
        for pool, below in spec.items():
            self.add_pool(layer, pool, below)

    def add_pool(self, layer, name, below, *flags):
        if all(not isinstance(value, dict) for value in below.values()):
            self.leaves[name] = below
            amounts = ",".join(f"{key}={value}" for key, value in below.items())
            self.add("provider", name, "--listen", self.socket(name), "--name", name, "--data-dir", self.data(name),
                     "--capacity", amounts)
        else:
            self.add_layer(name, below, layer)
            self.add("broker", name, "--listen", self.socket(name), "--kubeconfig", self.layers[name].kubeconfig)
        self.add_poollet(layer, name, self.socket(name), *flags)

    def add_poollet(self, layer, name, runtime, *flags):
        return self.add("poollet", name, "--kubeconfig", layer.kubeconfig, "--pool", name, "--runtime", runtime, *flags)

    def add(self, what, name, *words):
        log = f"{self.dir}/{what}-{name.replace(' ', '-')}.log"
        part = Part([self.berth, "fleet", what, *words, *self.flags[what]], log, self.env)
        self.parts[f"{what} {name}"] = part
        return part

    def socket(self, name):
        return f"unix://{self.dir}/{name}.sock"

    def data(self, name):
        return f"{self.dir}/{name}"

    def story(self):
        """What is there now, and what everybody has logged."""
        out = []
        for name, layer in self.layers.items():
            code, answer = layer.server.ask("GET", f"{CORE}/reservations")
            out.append(f"-- {name}: {json.dumps(answer.get('items'))}" if code == 200 else f"-- {name}: {code}")
        for leaf in self.leaves:
            out.append(f"-- {leaf}: {self.ledger(leaf)}")
        for part in self.parts.values():
            with open(part.log) as log:
                out.append(f"-- {part.log}\n{log.read()[-1500:]}")
        return "\n".join(out)

    def ready(self):
        """Every pool is Ready in its layer."""
        for name, layer in self.layers.items():
            pools = sum(1 for key, part in self.parts.items()
                        if key.startswith("poollet") and layer.kubeconfig in part.words)
            until(f"the pools of {name}", lambda: sum(
                1 for pool in layer.list(COMPUTE, "machinepools") if any(
                    each["type"] == "Ready" and each["status"] == "True"
                    for each in pool.get("status", {}).get("conditions", []))) == pools)

    @property
    def root(self):
        return self.layers["root"]

    def ledger(self, leaf):
        """By lineage: what is held or used of it, as the provider wrote it down."""
        path = f"{self.data(leaf)}/ledger.db"
        if not os.path.exists(path):
            return {}
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20) as ledger:
            rows = list(ledger.execute("SELECT lineage, hold, machine FROM ledger"))
        return {lineage: (json.loads(hold or "null"), json.loads(machine or "null")) for lineage, hold, machine in rows}

    def amounts(self, leaf):
        """The cpu of live holds and of machines, by lineage, at one moment."""
        held, used = {}, {}
        for lineage, (hold, machine) in self.ledger(leaf).items():
            if hold and hold["state"] == "Accepted":
                held[lineage] = int(hold["resources"].get("cpu", 0))
            if machine:
                used[lineage] = int(machine["resources"].get("cpu", 0))
        return held, used

    def held(self, leaf):
        return self.amounts(leaf)[0]

    def used(self, leaf):
        return self.amounts(leaf)[1]

    def judge(self):
        """I1, I2 and I3, from the ledgers alone. Each is one snapshot; a machine that goes from one leaf to another would show in two
        only when it is in two."""
        homes = {}
        for leaf, capacity in self.leaves.items():
            held, used = self.amounts(leaf)
            all_of = sum(held.values()) + sum(used.values())
            if all_of > int(capacity.get("cpu", 0)):
                raise AssertionError(f"I1: {leaf} has {capacity}, and gave {held} and {used}")
            if set(held) & set(used):
                raise AssertionError(f"I3: {leaf}: a hold and a machine: {set(held) & set(used)}")
            for lineage in used:
                if lineage in homes:
                    raise AssertionError(f"I2: {lineage} is on {homes[lineage]} and on {leaf}")
                homes[lineage] = leaf
        return homes

    def holds(self):
        return {leaf: held for leaf in self.leaves if (held := self.held(leaf))}

    def machine(self, name, cpu, layer="root", **spec):
        at = self.layers[layer]
        if (layer, cpu) not in self.classes:
            self.classes.add((layer, cpu))
            at.create(COMPUTE, "machineclasses", "MachineClass", f"c{cpu}", ns=False,
                      capabilities={"cpu": str(cpu), "memory": "1Mi"})
        return at.create(COMPUTE, "machines", "Machine", name, spec={"machineClassRef": {"name": f"c{cpu}"}, **spec})

    def delete(self, name):
        return self.root.delete(COMPUTE, "machines", name)

    def running(self, layer="root"):
        return {name: each["spec"]["machinePoolRef"]["name"] for name, each in self.layers[layer].machines().items()
                if each.get("status", {}).get("state") == "Running"}

    def lands(self, name, seconds=60):
        return until(f"machine {name} runs", lambda: self.running().get(name), seconds)

    def reservations(self):
        return [each["metadata"]["name"] for layer in self.layers.values() for each in layer.reservations()]

    def clean(self, seconds=60):
        """Nothing is left of any reservation."""
        until("no reservation is left", lambda: not self.reservations(), seconds)
        until("no hold is left", lambda: not self.holds(), seconds)
        self.judge()
