"""Reservations, their owners and strangers that come together, on a server that judges nothing: whatever overtakes what, and
whoever dies, nothing is oversold and nothing is used twice."""
import http.client
import json
import random
import threading

from berths import start
from cluster import PODS, RESERVATIONS
from deploy_tests import install
from invariants import check, draws_of
from objects import pod, reservation
from processes import wait_for

LIVE = ("Pending", "Available", "Waiting")


def links_of(entry):
    """The uids of the reservations that a bound pod draws from."""
    return set(draws_of(entry)) if entry["spec"].get("nodeName") else set()


class History:
    """Every pod that was ever bound, as a watch tells it: where, and what it draws from."""

    def __init__(self, cluster):
        self.cluster, self.nodes, self.drawers, self.moved = cluster, {}, {}, []
        self.ended = False
        self.version = self._list()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _list(self):
        listed = self.cluster.get(PODS)
        for entry in listed["items"]:
            self._see(entry)
        return listed["metadata"]["resourceVersion"]

    def _see(self, entry):
        uid, node = entry["metadata"]["uid"], entry["spec"].get("nodeName")
        if not node:
            return
        if self.nodes.setdefault(uid, node) != node:
            self.moved.append(uid)
        for drawn in links_of(entry):
            self.drawers.setdefault(drawn, set()).add(uid)

    def _follow(self):
        while not self.ended:
            try:
                for line in self.cluster.watch(PODS, self.version):
                    told = json.loads(line)
                    assert told["type"] != "ERROR", told
                    self._see(told["object"])
                    self.version = told["object"]["metadata"]["resourceVersion"]
            except (OSError, http.client.HTTPException):
                pass

    def close(self):
        """Nothing is missed: what the watch has not told yet is listed."""
        self.ended = True
        self._list()

    def judge(self, once):
        """`once`: uid -> name of the allocateOnce reservations there ever were."""
        assert not self.moved, f"pods that moved: {self.moved}"
        twice = sorted(once[uid] for uid, pods in list(self.drawers.items()) if uid in once and len(pods) > 1)
        assert not twice, f"{len(twice)} of {len(once)} reservations were used twice: {twice}"


def told(entry, condition):
    return any(c["type"] == condition for c in entry.get("status", {}).get("conditions", []))


def at_rest(cluster):
    """Everybody has a place or was told why not, and what was used has ended. Gives pods and reservations then."""
    pods, reservations = cluster.items(PODS), cluster.items(RESERVATIONS)
    used = {uid for entry in pods for uid in links_of(entry)}
    for entry in pods:
        assert entry["spec"].get("nodeName") or told(entry, "PodScheduled"), f"pod {entry['metadata']['name']} knows nothing"
    for entry in reservations:
        name, status = entry["metadata"]["name"], entry.get("status", {})
        phase = status.get("phase", "Pending")
        assert phase != "Pending" or told(entry, "Scheduled"), f"reservation {name} knows nothing"
        if entry["spec"].get("allocateOnce", True) and phase in LIVE:
            assert entry["metadata"]["uid"] not in used, f"reservation {name} was used and is {phase}"
            assert not status.get("currentOwners"), f"reservation {name} is claimed and not used"
    return pods, reservations


def waiting_together(stage):
    """24 reservations and 48 owners wait together when the scheduler starts: none is drawn from twice, every used one ends"""
    used = 0
    with stage.cluster() as cluster:
        install(cluster)
        start(cluster, "controllers")
        cluster.nodes(16)
        for round_ in range(stage.rounds):
            cluster.make_many(RESERVATIONS, [reservation(f"r{i}", f"o{i}", "1") for i in range(24)])
            cluster.make_many(PODS, [pod(f"p{i}", "1", None, labels={"owner": f"o{i % 24}"}) for i in range(48)])
            scheduler = start(cluster, name=f"berth-scheduler-{round_}")
            wait_for("48 pods are bound", lambda: sum(1 for p in cluster.items(PODS) if p["spec"].get("nodeName")) == 48)
            drawers = {}
            for entry in cluster.items(PODS):
                for uid in links_of(entry):
                    drawers.setdefault(uid, []).append(entry["metadata"]["name"])
            twice = {uid: pods for uid, pods in drawers.items() if len(pods) > 1}
            assert not twice, f"start {round_ + 1}: {len(twice)} of 24 reservations were drawn from twice: {twice}"
            wait_for("used reservations are Succeeded", lambda: at_rest(cluster))
            check(cluster)
            used += len(drawers)
            scheduler.kill()
            cluster.clear()
        assert used > 12 * stage.rounds, f"only {used} were used at all"
        stage.say(f"{stage.rounds} starts: {used} of {24 * stage.rounds} reservations used, none twice, every one Succeeded")


def burst(dice, round_):
    """More than there is room for: allocateOnce, reusable and waiting reservations, their owners, strangers."""
    held = [reservation(f"r{round_}-{i}", f"o{dice.randrange(6)}", str(dice.randrange(1, 4)), allocateOnce=dice.random() < 0.7,
                        preAllocation=dice.random() < 0.2, labels={"number": f"{round_}-{i}"},
                        template={"labels": {"number": f"{round_}-{i}"}}) for i in range(12)]
    pods = [pod(f"p{round_}-{i}", str(dice.randrange(1, 3)), None, labels={"owner": f"o{dice.randrange(6)}"}) for i in range(20)]
    strangers = [pod(f"s{round_}-{i}", str(dice.randrange(1, 3)), None) for i in range(8)]
    made = [(RESERVATIONS, each) for each in held] + [(PODS, each) for each in pods + strangers]
    dice.shuffle(made)
    return made


def make(cluster, part):
    for path in (RESERVATIONS, PODS):
        cluster.make_many(path, [body for where, body in part if where == path])


def burst_kills(stage):
    """kill -9 of scheduler and controllers in bursts of reservations, owners and strangers: none oversold, none used twice"""
    dice = random.Random(stage.seed)
    kills, drawn = 0, 0
    with stage.cluster() as cluster:
        install(cluster)
        running = {component: start(cluster, component) for component in ("scheduler", "controllers")}
        cluster.nodes(10)
        once = {}
        history = History(cluster)
        for round_ in range(stage.rounds):
            made = burst(dice, round_)
            cut = dice.randrange(1, len(made))
            make(cluster, made[:cut])
            going = [each for each in running if dice.random() < 0.7] or ["scheduler"]
            for component in going:
                running[component].kill()
            for component in going:
                kills += 1
                running[component] = start(cluster, component, name=f"berth-{component}-{kills}")
            make(cluster, made[cut:])
            pods, reservations = wait_for("everybody has a place or knows why not", lambda: at_rest(cluster))
            once.update({entry["metadata"]["uid"]: entry["metadata"]["name"] for entry in reservations
                         if entry["spec"].get("allocateOnce", True)})
            check(cluster)
            history.judge(once)
            drawn += sum(1 for entry in pods if links_of(entry))
            cluster.clear()
        history.close()
        history.judge(once)
        assert all(process.alive() for process in running.values()), "Berth ended"
        stage.say(f"{kills} kills in {stage.rounds} bursts, {drawn} owners in reservations, {len(once)} of them allocateOnce: "
                  f"none oversold, none used twice (seed {stage.seed})")


TESTS = [waiting_together, burst_kills]
