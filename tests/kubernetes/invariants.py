"""What must hold on a cluster at every moment, computed from its objects alone."""
import json

from berths import ALLOCATED
from cluster import RESERVATIONS
from objects import cpu_of, milli

LIVE = ("Available", "Waiting")


def check(cluster):
    """Counts of pods and owners. Raises when a node is oversold or a reservation is over-allocated."""
    pods = [p for p in cluster.items("/api/v1/pods") if p["status"].get("phase") not in ("Succeeded", "Failed")]
    code, listed = cluster.ask("GET", RESERVATIONS)
    reservations = {r["metadata"]["uid"]: r for r in (listed["items"] if code == 200 else [])}
    nodes = {n["metadata"]["name"]: milli(n["status"]["allocatable"]["cpu"]) for n in cluster.items("/api/v1/nodes")}
    used = dict.fromkeys(nodes, 0)
    charged = dict.fromkeys(reservations, 0)
    owners = 0
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node:
            continue
        note = pod["metadata"].get("annotations", {}).get(ALLOCATED)
        uid = json.loads(note)["uid"] if note else None
        owners += uid is not None
        live = uid in reservations and reservations[uid].get("status", {}).get("phase") in LIVE
        if live:
            assert reservations[uid]["status"]["nodeName"] == node, f"{pod['metadata']['name']} is not where its reservation is"
            charged[uid] += cpu_of(pod)
        else:
            used[node] += cpu_of(pod)
    for uid, entry in reservations.items():
        status = entry.get("status", {})
        if status.get("phase") not in LIVE:
            continue
        held = milli(status["allocatable"].get("cpu", "0"))
        name = entry["metadata"]["name"]
        if entry["spec"].get("allocatePolicy") == "Restricted":
            assert charged[uid] <= held, f"reservation {name} holds {held}m and gave {charged[uid]}m"
        used[status["nodeName"]] += max(held, charged[uid])
    for name, amount in used.items():
        assert amount <= nodes[name], f"node {name} has {nodes[name]}m and holds {amount}m"
    bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
    return {"pods": len(pods), "bound": bound, "owners": owners, "charged": sum(charged.values())}
