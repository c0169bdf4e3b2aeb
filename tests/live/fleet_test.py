#!/usr/bin/env python3
"""Machines through layers of pools in one `berth up --fleet`: the numbered cases are those of the specification."""
import json
import subprocess
import sys
import time

from cluster import Cluster, expect

MACHINES = "machines.compute.ironcore.dev"
RESERVATIONS = "reservations.core.ironcore.dev"


def classes(*sizes):
    return "".join(f"""---
apiVersion: compute.ironcore.dev/v1alpha1
kind: MachineClass
metadata: {{name: c{size}}}
capabilities: {{cpu: "{size}", memory: 1Gi}}
""" for size in sizes)


def machine(name, size, more=""):
    return f"""---
apiVersion: compute.ironcore.dev/v1alpha1
kind: Machine
metadata: {{name: {name}}}
spec: {{machineClassRef: {{name: c{size}}}{more}}}
"""


class Fleet(Cluster):
    def __init__(self, berth, build, spec):
        super().__init__(berth, build, "--nodes", "0", "--fleet", spec)
        self.berth = berth

    def tree(self):
        words = [self.berth, "fleet", "tree", "-o", "json"]
        return json.loads(subprocess.run(words, env=self.env, capture_output=True, text=True, check=True).stdout)

    def lands(self, name, seconds=120):
        self.wait(f"{MACHINES}/{name}", "jsonpath={.status.state}=Running", seconds)
        return self.get(MACHINES, name)["spec"]["machinePoolRef"]["name"]

    def no_reservation_left(self):
        for name in self.names(RESERVATIONS):
            self.wait(f"{RESERVATIONS}/{name}", "delete", 120)

    def refused(self, text):
        """What is said of objects that cannot be created."""
        return subprocess.run([self.kubectl, "create", "-f", "-"], input=text, env=self.env, capture_output=True, text=True).stderr

    def explain(self, name):
        words = [self.berth, "explain", "machine", name]
        return subprocess.run(words, env=self.env, capture_output=True, text=True, check=True).stdout


def find(tree, *names):
    for name in names:
        tree = next(child for child in tree["children"] if child["name"] == name)
    return tree


def machines_in(tree):
    return sorted(each["name"] for each in tree["machines"])


def all_reservations(tree):
    return tree["reservations"] + [each for child in tree["children"] for each in all_reservations(child)]


def test_layers(berth, build):
    # Case 2: three layers.
    with Fleet(berth, build, "z1: {a: {cpu: 4, memory: 8Gi}, b: {cpu: 0}}, z2: {c: {cpu: 2, memory: 8Gi}}") as fleet:
        fleet.apply(classes(2, 3, 64))
        fleet.apply(machine("m", 3))
        expect("the pool of m", fleet.lands("m"), "z1")
        fleet.no_reservation_left()
        tree = fleet.tree()
        expect("the kinds", [child["kind"] for child in tree["children"]], ["pool", "pool"])
        expect("what is on z1", machines_in(find(tree, "z1")), ["default/m"])
        expect("how many are on a", len(find(tree, "z1", "a")["machines"]), 1)
        expect("what is on b", find(tree, "z1", "b")["machines"], [])
        # What fits nowhere is not asked for again; a pool that has not answered in time is.
        fleet.apply(machine("huge", 64))
        fleet.wait_for_value(RESERVATIONS, "{.status.state} {.status.reason}", "Rejected Unsatisfiable", 120)
        expect("why", "Unsatisfiable" in fleet.explain("huge"), True)
        # Its deletion takes the reservation along.
        fleet.run("delete", MACHINES, "huge")
        fleet.no_reservation_left()
        # The short name goes on meaning Koordinator's.
        expect("kubectl get reservations", fleet.run("get", "reservations").strip(), "")
        # Room that comes wakes who waits; case 8 in small.
        fleet.apply(machine("next", 3))
        fleet.wait_for_value(RESERVATIONS, "{.status.reason}", "Insufficient", 120)
        fleet.run("delete", MACHINES, "m")
        expect("the pool of next", fleet.lands("next"), "z1")
        fleet.no_reservation_left()
        # Layer by layer, from the top down.
        end = time.monotonic() + 120
        while (left := all_reservations(fleet.tree())) and time.monotonic() < end:
            pass
        expect("what is left in the tree", left, [])


def test_one_layer(berth, build):
    spec = ", ".join(f"{name}: {{cpu: 1, memory: 8Gi}}" for name in "abc")
    with Fleet(berth, build, spec) as fleet:
        # Case 7: three at once on three leaves of one.
        fleet.apply(classes(1) + "".join(machine(f"m{i}", 1) for i in range(3)))
        expect("the pools", sorted(fleet.lands(f"m{i}") for i in range(3)), ["a", "b", "c"])
        fleet.no_reservation_left()
        # A machine whose pool is set by hand goes straight down, and steals nothing.
        fleet.run("delete", MACHINES, "m0")
        fleet.apply(machine("hand", 1, ", machinePoolRef: {name: a}"))
        pools = {each["metadata"]["name"]: each["spec"]["machinePoolRef"]["name"] for each in fleet.get(MACHINES)["items"]}
        if pools.get("m1") != "a" and pools.get("m2") != "a":
            expect("the pool of hand", fleet.lands("hand"), "a")
        expect("its reservations", fleet.names(RESERVATIONS), [])


def test_hold(berth, build):
    """A reservation without a machine keeps its room in every pool until it is deleted."""
    with Fleet(berth, build, "a: {cpu: 2, memory: 8Gi}") as fleet:
        fleet.apply(classes(2))
        fleet.apply("""
apiVersion: core.ironcore.dev/v1alpha1
kind: Reservation
metadata: {name: kept}
spec: {pools: [{name: a}], resources: {cpu: 2}}
""")
        fleet.wait(f"{RESERVATIONS}/kept", "jsonpath={.status.state}=Accepted", 120)
        expect("its pools", fleet.get(RESERVATIONS, "kept")["spec"]["pools"], ["a"])
        fleet.apply(machine("m", 2))
        fleet.wait_for_value(f"{RESERVATIONS}", "{.status.reason}", "Contended", 120)
        fleet.run("delete", RESERVATIONS, "kept")
        expect("the pool of m", fleet.lands("m"), "a")


def test_bad_input(berth, build):
    """What nobody can place is told so, once, and keeps nobody else from being placed, seen or explained."""
    with Fleet(berth, build, "a: {cpu: 2, memory: 8Gi}") as fleet:
        fleet.apply(classes(1))
        for name, needs in (("negative", '{"cpu":"-4"}'), ("none", "{}"), ("words", "all of it")):
            fleet.apply(machine(name, 1).replace(f"name: {name}", f"name: {name}, annotations: {{berth.dev/resources: '{needs}'}}"))
        fleet.apply(machine("astray", 1, ", machinePoolRef: {name: nowhere}"))
        fleet.apply(machine("m", 1))
        expect("the pool of m", fleet.lands("m"), "a")
        expect("what is on a", machines_in(find(fleet.tree(), "a")), ["default/m"])
        for name, words in (("negative", "is no amount"), ("none", "it needs nothing"), ("words", "it is no JSON object"),
                            ("astray", "machine pool nowhere does not exist")):
            end = time.monotonic() + 60
            while words not in fleet.explain(name) and time.monotonic() < end:
                pass
            expect(f"what is said of {name}", words in fleet.explain(name), True)
            expect(f"the state of {name}", fleet.get(MACHINES, name)["status"]["state"], "Pending")
        for what in ("resources: {'': 1}", "resources: {a b: 1}", "resources: {cpu: 1}, pools: [A_B]"):
            refused = fleet.refused(f"""
apiVersion: core.ironcore.dev/v1alpha1
kind: Reservation
metadata: {{name: bad}}
spec: {{{what}}}
""")
            expect(f"{what} is invalid", "is invalid" in refused, True)


def main():
    berth, build = sys.argv[1:3]
    test_one_layer(berth, build)
    test_layers(berth, build)
    test_hold(berth, build)
    test_bad_input(berth, build)


if __name__ == "__main__":
    main()
