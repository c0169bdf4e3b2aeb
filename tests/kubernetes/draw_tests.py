"""Nodes without a free pod slot, and reservations that are drawn from together: nothing is sold twice."""
import contextlib
import json

from berths import ALLOCATED, start_both
from cluster import PODS, RESERVATIONS
from objects import milli, pod, reservation
from processes import wait_for
from reservation_tests import Case, owner

DRAWS = "berth.dev/reservation-draws"
LIVE = ("Available", "Waiting")
NODE = "cpu=4,memory=4Gi,pods=2"


def amount(name, quantity):
    """cpu in thousandths, everything else in whole units."""
    if name == "cpu":
        return milli(quantity)
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
    return int(quantity[:-2]) * units[quantity[-2:]] if quantity[-2:] in units else int(quantity)


def amounts(quantities):
    return {name: amount(name, quantity) for name, quantity in quantities.items()}


def charges(entry, request):
    """What of the pod's request each reservation it names is charged, by uid: the first one whatever the others do not."""
    notes = entry["metadata"].get("annotations", {})
    if not notes.get(ALLOCATED):
        return {}
    rest, out = dict(request), {}
    for draw in json.loads(notes.get(DRAWS) or "[]"):
        out[draw["uid"]] = amounts(draw["resources"])
        for name, part in out[draw["uid"]].items():
            rest[name] -= part
    out[json.loads(notes[ALLOCATED])["uid"]] = rest
    return out


def used(cluster):
    """used = requests of pods that no live reservation pays for + sum over live ones of max(reserved, charged)"""
    total, charged = {}, {}

    def add(to, more):
        for name, value in more.items():
            to[name] = to.get(name, 0) + value

    live = {r["metadata"]["uid"]: r for r in cluster.items(RESERVATIONS) if r.get("status", {}).get("phase") in LIVE}
    for entry in cluster.items(PODS):
        if not entry["spec"].get("nodeName"):
            continue
        request = {"pods": 1}
        for container in entry["spec"]["containers"]:
            add(request, amounts(container["resources"].get("requests", {})))
        rest = dict(request)
        for uid, parts in charges(entry, request).items():
            if uid in live:
                add(charged.setdefault(uid, {}), parts)
                add(rest, {name: -part for name, part in parts.items()})
        add(total, rest)
    for uid, entry in live.items():
        held = {"pods": 1, **amounts(entry["status"]["allocatable"])}
        paid = charged.get(uid, {})
        add(total, {name: max(held.get(name, 0), paid.get(name, 0)) for name in {*held, *paid}})
    return total


def expect_use(case, **wanted):
    """Of the one node, at last; and at no moment more than it has."""
    (node,) = case.cluster.items("/api/v1/nodes")
    has = amounts({name: node["status"]["allocatable"][name] for name in ("cpu", "memory", "pods")})

    def look():
        now = used(case.cluster)
        sold = [f"{value} of {has[name]} {name}" for name, value in now.items() if value > has[name]]
        return sold or all(now.get(name, 0) == value for name, value in wanted.items())
    found = wait_for(f"{wanted} are used", look)
    assert found is True, f"oversold: {found}"


@contextlib.contextmanager
def two_slots(stage):
    """One node of 4 cpu with two slots, and Berth."""
    with stage.cluster() as cluster:
        start_both(cluster)
        cluster.nodes(1, NODE)
        yield Case(cluster)


def joint_draw_without_a_slot(stage):
    """A joint draw where no slot is free: r2's slot is its owner's, so a pod that wants the cpu of both has r1's"""
    with two_slots(stage) as case:
        case.hold(reservation("r2", "a", "2", "1Gi", allocateOnce=False))
        case.make(owner("first", None, "1Gi"))
        case.lands("first", "r2")
        case.hold(reservation("r1", "a", "2"))
        case.make(owner("more", "5"))
        assert "Insufficient cpu" in case.refused("more")
        case.make(owner("all", "4"))
        case.lands("all", "r1")
        case.phase("r1", "Succeeded")
        expect_use(case, cpu=4000, memory=1 << 30, pods=2)
        draws = json.loads(case.pod("all")["metadata"]["annotations"][DRAWS])
        assert [(d["name"], d["resources"]) for d in draws] == [("r2", {"cpu": "2"})], draws


def slot_without_use(stage):
    """Cpu is reserved, memory is asked for: the reservation keeps its slot"""
    with two_slots(stage) as case:
        case.make(pod("base", "1", None))
        case.lands("base", None)
        case.hold(reservation("r", "a", "2"))
        case.make(owner("memory", None, "1Gi"))
        wait_for("the pod is judged", lambda: case.pod("memory")["spec"].get("nodeName") or case.refused("memory"))
        expect_use(case, cpu=3000, pods=2)
        assert "Too many pods" in case.refused("memory")
        case.make(owner("both", "2", "1Gi"))
        case.lands("both", "r")
        expect_use(case, cpu=3000, memory=1 << 30, pods=2)


TESTS = [joint_draw_without_a_slot, slot_without_use]
