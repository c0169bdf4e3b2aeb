"""What must hold on a cluster at every moment, computed from its objects alone."""
import json

from berths import ALLOCATED
from cluster import RESERVATIONS
from objects import cpu_of, milli

DRAWS = "berth.dev/reservation-draws"


def draws_of(pod):
    """uid -> (cpu, slots) that a pod draws from a reservation: the further draws as they are written, the rest from the first."""
    notes = pod["metadata"].get("annotations", {})
    if not notes.get(ALLOCATED):
        return {}
    further = {draw["uid"]: milli(draw["resources"].get("cpu", "0")) for draw in json.loads(notes.get(DRAWS) or "[]")}
    out = {uid: (cpu, 0) for uid, cpu in further.items()}
    out[json.loads(notes[ALLOCATED])["uid"]] = (cpu_of(pod) - sum(further.values()), 1)
    return out


def check(cluster):
    """Counts of pods and owners. Raises when a node is oversold or a reservation is over-allocated. What a reservation that
    waits for room holds is not counted: it may be more than the node has."""
    pods = [p for p in cluster.items("/api/v1/pods") if p["status"].get("phase") not in ("Succeeded", "Failed")]
    code, listed = cluster.ask("GET", RESERVATIONS)
    reservations = {r["metadata"]["uid"]: r for r in (listed["items"] if code == 200 else [])}
    live = {uid: r for uid, r in reservations.items() if r.get("status", {}).get("phase") in ("Available", "Waiting")}
    nodes = {n["metadata"]["name"]: (milli(n["status"]["allocatable"]["cpu"]), int(n["status"]["allocatable"]["pods"]))
             for n in cluster.items("/api/v1/nodes")}
    used = {name: [0, 0] for name in nodes}
    charged = {uid: [0, 0] for uid in reservations}
    owners = 0
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node:
            continue
        rest = [cpu_of(pod), 1]
        draws = draws_of(pod)
        owners += bool(draws)
        for uid, amounts in draws.items():
            if uid not in live:
                continue
            assert live[uid]["status"]["nodeName"] == node, f"{pod['metadata']['name']} is not where its reservation is"
            for i in (0, 1):
                charged[uid][i] += amounts[i]
                rest[i] -= amounts[i]
        for i in (0, 1):
            used[node][i] += rest[i]
    for uid, entry in live.items():
        status, name = entry["status"], entry["metadata"]["name"]
        held = (milli(status["allocatable"].get("cpu", "0")), 1)
        if entry["spec"].get("allocatePolicy") == "Restricted":
            assert charged[uid][0] <= held[0], f"reservation {name} holds {held[0]}m and gave {charged[uid][0]}m"
        for i in (0, 1):
            waits = status["phase"] == "Waiting"
            used[status["nodeName"]][i] += charged[uid][i] if waits else max(held[i], charged[uid][i])
    for name, (cpu, slots) in used.items():
        assert cpu <= nodes[name][0], f"node {name} has {nodes[name][0]}m and holds {cpu}m"
        assert slots <= nodes[name][1], f"node {name} has {nodes[name][1]} slots and holds {slots} pods"
    bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
    return {"pods": len(pods), "bound": bound, "owners": owners, "charged": sum(cpu for cpu, _ in charged.values())}
