#!/usr/bin/env python3
"""cases_test.py BERTH MOVED_CLOCK: the numbered cases of pools of machines between real processes, by gRPC over unix sockets. Those that need
leases of half a minute or fifty pools come with BERTH_CASES=all; BERTH_CASES=12,14 are these alone. tests/fleet/fleet_test.cc has the
same in virtual time."""
import os
import random
import shutil
import socket
import stat
import struct
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from pools import COMPUTE, CORE, Tree, expect, until

ROOM = {"memory": "64Gi"}


def leaf(cpu):
    return {"cpu": cpu, **ROOM}


def entries(layer, name):
    for each in layer.reservations():
        if each["metadata"]["name"] == name:
            return {entry["name"]: entry for entry in each.get("status", {}).get("pools", [])}
    return {}


def states(layer, name):
    return {pool: entry["state"] for pool, entry in entries(layer, name).items()}


def told(layer):
    return {(each.get("status", {}).get("state"), each.get("status", {}).get("reason")) for each in layer.reservations()}


def by_hand(tree, name, cpu, pools, lineage):
    """A Reservation as a scheduler makes it, in a layer without one."""
    return tree.root.reserve(name, {"cpu": str(cpu)}, pools, metadata={"labels": {
        "berth.dev/lineage": lineage, "berth.dev/attempt": "1"}})


def case_1_one_layer(berth):
    with Tree(berth, {"v": leaf(4)}) as tree:
        tree.machine("m", 2)
        expect("its pool", tree.lands("m"), "v")
        tree.clean()
        expect("what is used", list(tree.used("v").values()), [2])


def case_2_three_layers(berth):
    with Tree(berth, {"z1": {"a": leaf(2), "b": leaf(0)}, "z2": {"c": leaf(0)}}) as tree:
        tree.machine("m", 2)
        expect("its pool", tree.lands("m"), "z1")
        tree.clean()
        expect("its pool in z1", list(tree.running("z1").values()), ["a"])
        expect("where it is", list(tree.judge().values()), ["a"])


def case_3_a_sum_is_no_room(berth):
    with Tree(berth, {"z1": {"a": leaf(1), "b": leaf(1)}, "z2": {"c": leaf(2)}}) as tree:
        tree.machine("m", 2)
        expect("its pool", tree.lands("m"), "z2")
        tree.clean()


def case_4_one_that_has_room_is_enough(berth):
    with Tree(berth, {"z1": {"a": leaf(0), "b": leaf(4)}}) as tree:
        tree.machine("m", 2)
        expect("its pool", tree.lands("m"), "z1")
        expect("where it is", list(tree.judge().values()), ["b"])
        tree.clean()


def hook_of(tree_dir, text):
    path = f"{tree_dir}-hook"
    with open(path, "w") as hook:
        hook.write("#!/bin/sh\n" + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def case_5_the_losers_are_free_at_selection(berth):
    called = f"/tmp/berth-case5-{os.getpid()}"
    hook = hook_of(called, f"echo $2 >> {called}; [ $1 = create ] && exec sleep 60\n")
    try:
        with Tree(berth, {"a": leaf(2), "b": leaf(2), "c": leaf(2)}, provider=("--exec-hook", hook)) as tree:
            tree.machine("m", 2)
            until("the machine is on its way", lambda: os.path.exists(called))
            pool = tree.root.machines()["m"]["spec"]["machinePoolRef"]["name"]
            # Long before it is there.
            until("the others are free", lambda: set(tree.holds()) <= {pool}, 2)
    finally:
        for path in (called, hook):
            if os.path.exists(path):
                os.remove(path)


def case_6_the_swap_on_a_full_host(berth):
    with Tree(berth, {"v": leaf(2)}) as tree:
        stop = threading.Event()
        trouble = []

        def watch():
            while not stop.is_set():
                try:
                    tree.judge()
                except AssertionError as error:
                    trouble.append(error)
        thread = threading.Thread(target=watch)
        thread.start()
        tree.machine("m", 2)
        tree.lands("m")
        tree.clean()
        stop.set()
        thread.join()
        expect("more than there is", trouble, [])
        expect("what is used", list(tree.used("v").values()), [2])


def case_7_three_at_once(berth):
    with Tree(berth, {name: leaf(1) for name in "abc"}) as tree:
        for i in range(3):
            tree.machine(f"m{i}", 1)
        until("all three are there", lambda: len(tree.running()) == 3)
        expect("their pools", sorted(tree.running().values()), ["a", "b", "c"])
        tree.clean()


def case_8_one_goes_one_comes(berth):
    with Tree(berth, {"a": leaf(1), "b": leaf(1)}) as tree:
        for i in range(5):
            tree.machine(f"m{i}", 1)
        first = until("two are there", lambda: len(tree.running()) == 2 and tree.running())
        tree.delete(sorted(first)[0])
        until("another one is", lambda: len(set(tree.running()) - set(first)) == 1)
        tree.judge()
        for name in tree.root.machines():
            tree.delete(name)
        until("all are gone", lambda: not tree.root.machines())
        tree.clean()


def case_9_all_answer_at_once(berth):
    with Tree(berth, {f"p{i}": leaf(200) for i in range(10)}) as tree:
        for i in range(100 if ALL else 10):
            tree.root.reserve(f"k{i}", {"cpu": "1"})
            until("ten entries", lambda name=f"k{i}": len(entries(tree.root, name)) == 10)
            expect("what they say", set(states(tree.root, f"k{i}").values()), {"Accepted"})


class Swallow:
    """Between a poollet and its provider: once the ledger shows what was asked, the connection ends, and the answer is lost."""

    def __init__(self, tree, leaf_name, times):
        self.tree, self.leaf, self.left = tree, leaf_name, times
        self.path = f"{tree.dir}/swallow.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.armed = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{self.tree.dir}/{self.leaf}.sock")
            threading.Thread(target=self.carry, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, True), daemon=True).start()

    def carry(self, source, sink, answers):
        try:
            while data := source.recv(65536):
                if answers and self.left > 0 and self.armed.is_set() and self.tree.held(self.leaf):
                    self.left -= 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def case_10_an_answer_lost_twice(berth):
    with Tree(berth, {"a": leaf(2)}) as tree:
        tree.parts["poollet a"].kill()
        proxy = Swallow(tree, "a", 2)
        proxy.armed.set()
        tree.add_poollet(tree.root, "a", f"unix://{proxy.path}").ready()
        tree.machine("m", 2)
        expect("its pool", tree.lands("m"), "a")
        expect("how many answers were not lost", proxy.left, 0)
        tree.clean()
        expect("how many there are", len(tree.used("a")), 1)


def case_11_a_provider_dies(berth):
    with Tree(berth, {"a": leaf(2)}) as tree:
        tree.root.reserve("kept", {"cpu": "2"}, ["a"], {"duration": "1h"})
        until("it is held", lambda: tree.held("a"))
        tree.parts["provider a"].restart()
        hold = next(iter(tree.ledger("a").values()))[0]
        expect("with its journal", (hold["state"], hold["left"] <= 3600 * 10**9), ("Accepted", True))
        # What it promised is gone with its journal; nobody sells it twice.
        tree.parts["provider a"].kill()
        shutil.rmtree(tree.data("a"))
        tree.parts["provider a"].start()
        tree.parts["provider a"].ready()
        until("it is Lost, or held anew", lambda: states(tree.root, "kept").get("a") == "Lost" or tree.held("a"))
        tree.judge()


def case_12_a_poollet_is_dead(berth):
    with Tree(berth, {"a": leaf(2), "b": leaf(2)}) as tree:
        tree.parts["poollet b"].pause()
        tree.machine("m", 2)
        expect("its pool", tree.lands("m"), "a")
        tree.parts["poollet b"].go_on()
        tree.clean()


class MovedClock:
    """The wall clock of the processes that have env()."""

    def __init__(self):
        with tempfile.NamedTemporaryFile(prefix="berth-clock-", delete=False) as file:
            self.path = file.name
        self.move(0)

    def move(self, seconds):
        with open(self.path, "r+b" if os.path.getsize(self.path) else "wb") as file:
            file.write(struct.pack("q", seconds))

    def env(self):
        return {**os.environ, "LD_PRELOAD": MOVED_CLOCK, "BERTH_MOVED_CLOCK": self.path}


def lease_of(layer, pool):
    """When its poollet says that it was alive."""
    lease = layer.server.ask("GET", f"/apis/coordination.k8s.io/v1/namespaces/ironcore-machinepool-lease/leases/{pool}")[1]
    return datetime.fromisoformat(lease["spec"]["renewTime"])


def case_13_cut_for_ever(berth):
    """One link is cut above a provider, another one above a broker; both wall clocks go on by days, and back again."""
    clock = MovedClock()
    with Tree(berth, {"a": leaf(2), "z": {"b": leaf(2)}}, env=clock.env()) as tree:
        tree.parts["scheduler root"].kill()
        by_hand(tree, "r", 2, ["a", "z"], "somebody")
        until("both hold it", lambda: set(tree.holds()) == {"a", "b"})
        for pool in ("a", "z"):
            tree.parts[f"poollet {pool}"].pause()
        cut = time.monotonic()
        clock.move(10 * 86400)
        until("the clock is another one", lambda: lease_of(tree.layers["z"], "b") > datetime.now(UTC) + timedelta(days=9))
        # Renewed every ten seconds, for thirty: for twenty more at least.
        while time.monotonic() - cut < 15:
            expect("who holds it", set(tree.holds()), {"a", "b"})
            time.sleep(0.2)
        clock.move(86400)
        until("both are free", lambda: not tree.holds(), 35)
        until("nothing is left in z", lambda: not tree.layers["z"].reservations())
        tree.judge()
    os.remove(clock.path)


def case_14_deleted_in_flight(berth):
    with Tree(berth, {"z1": {"a": leaf(2)}, "z2": {"b": leaf(2)}}) as tree:
        dice = random.Random(14)
        for i in range(20):
            tree.machine(f"m{i}", 1)
            time.sleep(dice.random() / 10)  # each is met at another step
            tree.delete(f"m{i}")
        until("all are gone", lambda: not tree.root.machines())
        until("below, too", lambda: not tree.layers["z1"].machines() and not tree.layers["z2"].machines())
        tree.clean()
        expect("what is left of them", tree.judge(), {})


def case_15_two_schedulers(berth):
    flags = ("--leader-elect", "--leader-elect-lease-duration", "3s", "--leader-elect-renew-deadline", "2s",
             "--leader-elect-retry-period", "500ms")
    with Tree(berth, {"a": leaf(10), "b": leaf(10)}, scheduler=flags, schedulers=2, start=False) as tree:
        for key, part in tree.parts.items():
            if not key.startswith("scheduler"):
                part.ready()
        tree.ready()
        for i in range(20):
            tree.machine(f"m{i}", 1)
        until("some are there", lambda: len(tree.running()) > 3)
        leader = next(name for name in ("scheduler root", "scheduler root 2")
                      if "Starting" in open(tree.parts[name].log).read())
        tree.parts[leader].kill()
        until("all are there", lambda: len(tree.running()) == 20)
        tree.clean()
        expect("how many there are", len(tree.judge()), 20)


def case_16_the_scheduler_is_killed(berth):
    with Tree(berth, {"z1": {"a": leaf(8)}, "z2": {"b": leaf(8)}}) as tree:
        dice = random.Random(16)
        for i in range(12):
            tree.machine(f"m{i}", 1)
            time.sleep(dice.random() / 20)
            tree.parts["scheduler " + dice.choice(["root", "z1", "z2"])].restart()
        until("all are there", lambda: len(tree.running()) == 12, 120)
        tree.clean()
        expect("how many there are", len(tree.judge()), 12)


def case_17_room_comes(berth):
    with Tree(berth, {"a": leaf(4), "b": leaf(4)}) as tree:
        tree.root.reserve("kept", {"cpu": "4"})
        until("all is held", lambda: len(tree.holds()) == 2)
        tree.machine("m", 2)
        until("they are in the way", lambda: ("Rejected", "Contended") in told(tree.root))
        tree.machine("huge", 64)
        until("nobody has so much", lambda: ("Rejected", "Unsatisfiable") in told(tree.root))
        tree.root.delete(CORE, "reservations", "kept")
        tree.lands("m")
        huge = [name for name in tree.reservations() if name.startswith("huge")]
        expect("the attempts of huge", huge, [huge[0]])
        expect("its number", huge[0].rsplit("-", 1)[1], "1")
        # Unsatisfiable ends when a pool comes that has it.
        tree.add_pool(tree.root, "c", leaf(64))
        for what in ("provider c", "poollet c"):
            tree.parts[what].ready()
        expect("its pool", tree.lands("huge"), "c")


def case_18_who_is_asked(berth):
    with Tree(berth, {"a": leaf(2), "b": leaf(2), "z": {"d": leaf(2), "e": leaf(2)}},
              broker=("--pool", "d")) as tree:
        tree.root.server.merge(f"{COMPUTE}/machinepools/a", {
            "metadata": {"labels": {"disk": "fast"}}, "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
        tree.machine("m", 2, machinePoolSelector={"disk": "fast"})
        until("nobody is asked", lambda: tree.reservations())
        tree.add_pool(tree.root, "c", leaf(2), "--pool-labels", "disk=fast")
        for what in ("provider c", "poollet c"):
            tree.parts[what].ready()
        expect("its pool", tree.lands("m"), "c")
        expect("who was asked", [name for name in "abde" if tree.ledger(name)], [])
        # A broker that is pinned to d asks only d.
        tree.machine("n", 2, machinePoolSelector={"zone": "z"})
        tree.root.server.merge(f"{COMPUTE}/machinepools/z", {"metadata": {"labels": {"zone": "z"}}})
        expect("its pool", tree.lands("n"), "z")
        expect("where it is", sorted(tree.judge().values()), ["c", "d"])
        expect("what e was asked", tree.ledger("e"), {})


def case_19_fifty_pools(berth):
    with Tree(berth, {f"p{i}": leaf(4) for i in range(50 if ALL else 8)}) as tree:
        tree.parts["provider p0"].pause()
        count = 100 if ALL else 16
        for i in range(count):
            tree.machine(f"m{i}", 1)
        began = time.monotonic()
        until("all are there", lambda: len(tree.running()) == count, 180)
        if time.monotonic() - began < 10:
            time.sleep(10 - (time.monotonic() - began))  # it stalls for ten seconds
        tree.parts["provider p0"].go_on()
        tree.clean()
        expect("how many there are", len(tree.judge()), count)


SLOW = ("case_13",)
MOVED_CLOCK = sys.argv[2] if len(sys.argv) > 2 else ""
WANTED = os.environ.get("BERTH_CASES", "")
ALL = WANTED == "all"


def chosen(name):
    number = name.split("_")[1]
    if WANTED and not ALL:
        return number in WANTED.split(",")
    return ALL or not name.startswith(SLOW)


def passes(name, berth):
    began = time.monotonic()
    try:
        globals()[name](berth)
        return True
    except Exception:  # noqa: BLE001  whatever it is, it is told, and the next one is run
        print(traceback.format_exc())
        return False
    finally:
        print(f"{name} took {time.monotonic() - began:.1f} s", flush=True)


def main():
    berth = sys.argv[1]
    names = [name for name in globals() if name.startswith("case_") and chosen(name)]
    # They wait for most of their time.
    with ThreadPoolExecutor(4) as several:
        failed = [name for name, ok in zip(names, several.map(lambda name: passes(name, berth), names)) if not ok]
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed: {' '.join(failed)}")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
