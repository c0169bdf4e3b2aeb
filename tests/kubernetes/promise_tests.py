"""What a reservation promises, on an API server that judges nothing: nobody is evicted in vain, nothing is placed or
drawn from after its end, and edits are seen at once."""
import json

from berths import start
from cluster import RESERVATIONS
from deploy_tests import install
from objects import pod, reservation
from processes import wait_for
from reservation_tests import NODE, Case, near, owner, play

URGENT = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
PAST = "2020-01-01T00:00:00Z"


# -- evicted in vain: a reservation waits, of the highest priority as they all are

def high(cpu, **more):
    return pod("high", cpu, None, labels={"owner": "high"}, priorityClassName="urgent", **more)


def hungry(case, cpu, **template):
    case.make(reservation("hungry", "nobody", cpu, template=template))
    waits(case, "hungry")


def waits(case, name):
    def tried():
        return any(c["type"] == "Scheduled" and c["status"] == "False"
                   for c in case.reservation(name).get("status", {}).get("conditions", []))
    wait_for(f"{name} was tried", tried)


def low(case, cpu, **more):
    case.make(pod("low", cpu, None, labels={"app": "low"}, nodeName="node-0", **more))


def lands_in_its_room(case, held=True):
    node = case.bound("high")
    assert node == "node-0", node
    phase = case.reservation("hungry").get("status", {}).get("phase", "Pending")
    assert phase == "Pending", f"the reservation that waited is {phase}"
    if held:
        room = "preemption-" + case.pod("high")["metadata"]["uid"]
        assert case.reservation_of("high") == room, case.reservation_of("high")
        case.phase(room, "Succeeded")


def owner_elsewhere(case):
    case.make(URGENT)
    low(case, "16")
    case.make(pod("other", "15", None, nodeName="node-1", priorityClassName="urgent"))
    case.hold(reservation("own", "high", "1"))
    hungry(case, "8")
    case.make(high("12"))
    lands_in_its_room(case)


def owner_there(case):
    case.make(URGENT)
    low(case, "12")
    case.hold(reservation("own", "high", "4"))
    hungry(case, "8")
    case.make(high("12"))
    lands_in_its_room(case, held=False)
    assert case.reservation_of("high") == "own", case.reservation_of("high")


def facing_a_port(case):
    case.make(URGENT)
    low(case, "1", ports=[8080])
    hungry(case, "1", ports=[8080])
    case.make(high("1", ports=[8080]))
    lands_in_its_room(case)


def facing_a_term(case):
    case.make(URGENT)
    low(case, "4")
    hungry(case, "14")
    case.make(high("8", **near("podAntiAffinity", "low")))
    lands_in_its_room(case)


# -- edits

def edit(case, name, **spec):
    case.cluster.kubectl("patch", "reservation", name, "--type=merge", "-p", json.dumps({"spec": spec}))


def edits_of_one_that_waits(case):
    case.hold(reservation("first", "a", "1", allocateOnce=False))
    case.make(reservation("second", "a", "1", allocateOnce=False))
    waits(case, "second")
    edit(case, "second", owners=[{"labelSelector": {"matchLabels": {"owner": "b"}}}])
    case.phase("second", "Available")
    case.make(reservation("third", "a", "1", allocatePolicy="Aligned"))
    waits(case, "third")
    edit(case, "third", allocatePolicy="")
    case.phase("third", "Available")
    case.make(reservation("fourth", "a", "15"))
    waits(case, "fourth")
    edit(case, "fourth", preAllocation=True)
    case.phase("fourth", "Waiting")


def evicted_in_vain(stage):
    """What preemption frees is its pod's: it owns a reservation there or elsewhere, faces a port, an anti-affinity term"""
    play(stage, [owner_there, facing_a_port, facing_a_term, edits_of_one_that_waits], 1)
    play(stage, [owner_elsewhere], 2)


def ends(stage):
    """Nothing is placed or drawn from after its end, also before a controller has said so"""
    with stage.cluster() as cluster:
        install(cluster)
        cluster.nodes(1, NODE)
        case = Case(cluster)
        case.make(reservation("never", "a", "4", allocateOnce=False, expires=PAST),
                  reservation("old", "a", "4", allocateOnce=False, expires=PAST))
        held = {"phase": "Available", "nodeName": "node-0", "allocatable": {"cpu": "4"}}
        cluster.kubectl("patch", "reservation", "old", "--subresource=status", "--type=merge", "-p",
                        json.dumps({"status": held}))
        names = [f"owner-{i}" for i in range(5)]
        case.make(*[owner(name, "1") for name in names])
        start(cluster, "scheduler")
        for name in names:
            case.lands(name, None)
        assert "nodeName" not in case.reservation("never").get("status", {}), case.reservation("never")
        start(cluster, "controllers")
        case.phase("never", "Failed"), case.phase("old", "Failed")
        assert [entry["metadata"]["name"] for entry in cluster.items(RESERVATIONS)] == ["never", "old"]
        case.hold(reservation("short", "a", "4", allocateOnce=False, ttl="3s"))
        case.phase("short", "Failed")
        case.make(owner("late", "1"))
        case.lands("late", None)


TESTS = [evicted_in_vain, ends]
