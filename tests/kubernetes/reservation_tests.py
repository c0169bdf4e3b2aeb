"""The seed's end-to-end list of reservations, through kubectl on a real API server."""
import subprocess

from berths import Watcher, start_both
from cluster import PODS
from objects import pod, reservation
from processes import wait_for

HOST = "kubernetes.io/hostname"
NODE_RESERVATION = "node.koordinator.sh/reservation"
NODE = "cpu=16,memory=32Gi,pods=110"


class Case(Watcher):
    def make(self, *objects):
        self.cluster.apply(*objects)

    def hold(self, *reservations):
        """Makes reservations and waits until they are Available."""
        self.make(*reservations)
        return [self.phase(entry["metadata"]["name"], "Available") for entry in reservations]

    def lands(self, name, in_reservation, node=None):
        where = self.bound(name)
        assert self.reservation_of(name) == in_reservation, f"{name} is in {self.reservation_of(name)}, not {in_reservation}"
        assert node is None or where == node, f"{name} is on {where}, not {node}"
        return where

    def room(self, cpu, gibibytes=32):
        """Exactly so much is left on the one node for strangers."""
        self.make(pod("probe", cpu=str(cpu), memory=f"{gibibytes}Gi"))
        self.lands("probe", None)
        self.make(pod("more-cpu", cpu="100m", memory=None), pod("more-memory", cpu=None, memory="1Mi"))
        assert "Insufficient cpu" in self.refused("more-cpu")
        assert "Insufficient memory" in self.refused("more-memory")
        self.cluster.kubectl("delete", "pod", "--now", "probe", "more-cpu", "more-memory")


def owner(name, cpu, memory=None, **more):
    return pod(name, cpu, memory, labels={"owner": "a"}, **more)


# -- NodeResources: one node of 16 cpu

def same_size(case):
    case.hold(reservation("r", "a", "4", "4Gi"))
    case.room(12, 28)
    case.make(owner("p", "4", "4Gi"))
    case.lands("p", "r")
    done = case.phase("r", "Succeeded")["status"]
    assert done["allocated"] == {"cpu": "4", "memory": "4Gi"} and len(done["currentOwners"]) == 1, done
    case.room(12, 28)


def owner_without_memory(case):
    case.hold(reservation("r", "a", "4", "4Gi"))
    case.make(owner("p", "4"))
    case.lands("p", "r")
    case.room(12)


def owner_of_less_memory(case):
    case.hold(reservation("r", "a", "4", "4Gi"))
    case.make(owner("p", "4", "1Gi"))
    case.lands("p", "r")
    case.room(12, 31)


def memory_from_the_node(case):
    case.hold(reservation("r", "a", "4"))
    case.make(owner("p", "4", "1Gi"))
    case.lands("p", "r")
    case.room(12, 31)


def more_than_reserved(case):
    case.hold(reservation("r", "a", "4"))
    case.make(owner("p", "6"))
    case.lands("p", "r")
    case.room(10)


def two_owners_fit(case):
    case.hold(reservation("r", "a", "8", allocateOnce=False))
    case.make(owner("p", "4"), owner("q", "4"))
    case.lands("p", "r")
    case.lands("q", "r")
    wait_for("both are owners", lambda: len(case.reservation("r")["status"].get("currentOwners", [])) == 2)
    case.room(8)


def two_owners_of_six(case):
    case.hold(reservation("r", "a", "6", allocateOnce=False))
    case.make(owner("p", "4"), owner("q", "4"))
    case.lands("p", "r"), case.lands("q", "r")
    wait_for("all of it is in use", lambda: case.reservation("r")["status"].get("allocated") == {"cpu": "6"})
    case.room(8)


def stranger(case):
    case.make(pod("other", "12", None))
    case.bound("other")
    case.hold(reservation("r", "a", "4"))
    case.make(pod("p", "4", None))
    assert "Insufficient cpu" in case.refused("p")


def stranger_after_a_small_owner(case):
    case.make(pod("other", "12", None))
    case.bound("other")
    case.hold(reservation("r", "a", "4"))
    case.make(pod("stranger", "2", None))
    assert "Insufficient cpu" in case.refused("stranger")
    case.make(owner("p", "2"))
    case.lands("p", "r")
    case.lands("stranger", None)


def returned_charge(case):
    case.hold(reservation("r", "a", "2", "2Gi", allocateOnce=False))
    case.make(owner("p", "1", "1Gi"), owner("q", "1", "1Gi"))
    case.lands("p", "r"), case.lands("q", "r")
    case.cluster.kubectl("delete", "pod", "p", "--now")
    wait_for("one owner is left", lambda: [o["name"] for o in case.reservation("r")["status"]["currentOwners"]] == ["q"])
    assert case.reservation("r")["status"]["allocated"] == {"cpu": "1", "memory": "1Gi"}
    case.cluster.kubectl("delete", "pod", "q", "--now")
    wait_for("no owner is left", lambda: not case.reservation("r")["status"].get("currentOwners"))
    assert not case.reservation("r")["status"].get("allocated")


def expiry(case):
    case.hold(reservation("r", "a", "16", ttl="2s"))
    case.make(pod("p", "16", None))
    case.phase("r", "Failed")
    case.lands("p", None)


def pre_allocation(case):
    def gone(name):
        case.cluster.kubectl("delete", "pod", "--now", name)

    case.make(pod("large", cpu="10", memory=None), pod("small", cpu="6", memory=None))
    case.lands("large", None)
    case.lands("small", None)
    case.make(reservation("r", "a", "8", preAllocation=True))
    status = case.phase("r", "Waiting")["status"]
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert status["nodeName"] == "node-0" and (ready["status"], ready["reason"]) == ("False", "Waiting"), status
    gone("small")
    case.make(pod("thief", cpu="6", memory=None))
    assert "Insufficient cpu" in case.refused("thief")
    assert case.reservation("r")["status"]["phase"] == "Waiting"
    gone("large")
    case.phase("r", "Available")
    case.make(owner("p", "8"))
    case.lands("p", "r")
    case.lands("thief", None)


def room_for_a_preempting_pod(case):
    case.make({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000})
    case.make(pod("low", cpu="12", memory=None))
    case.lands("low", None)
    case.make(pod("high", cpu="8", memory=None, priorityClassName="urgent"))
    case.bound("high")
    room = "preemption-" + case.pod("high")["metadata"]["uid"]
    assert case.reservation_of("high") == room, case.reservation_of("high")
    assert case.cluster.kubectl("get", "pod", "low", "--ignore-not-found") == "", "the victim is still there"
    case.phase(room, "Succeeded")


def broken_annotation(case):
    case.hold(reservation("r", "a", "4"))
    case.make(owner("p", "1", annotations={"scheduling.koordinator.sh/reservation-affinity": "{"}))
    assert "reservation-affinity" in case.refused("p")


def must_use_a_reservation(case):
    case.make(owner("p", "1", annotations={"scheduling.koordinator.sh/reservation-affinity": "{}"}))
    case.refused("p")
    case.make(reservation("r", "a", "4"))
    case.lands("p", "r")


# -- NodePorts

def ports_of_one(case):
    case.hold(reservation("r", "a", "1", template={"ports": [7777, 8888, 9999]}, allocateOnce=False))
    case.make(owner("p", "100m", ports=[7777]), owner("q", "100m", ports=[8888]))
    case.lands("p", "r"), case.lands("q", "r")


def ports_of_two(case):
    case.hold(reservation("r1", "a", "1", template={"ports": [7777]}), reservation("r2", "a", "1", template={"ports": [8888]}))
    case.make(owner("p", "1", ports=[7777]))
    case.lands("p", "r1")
    case.make(owner("q", "1", ports=[8888]))
    case.lands("q", "r2")


def ports_of_strangers(case):
    case.hold(reservation("r", "a", "1", template={"ports": [7777, 8888, 9999]}, allocateOnce=False))
    case.make(pod("p", "100m", None, ports=[7777]))
    assert "free ports" in case.refused("p")


# -- InterPodAffinity: three nodes, an anchor on one of them

def near(kind, app):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def labelled(name, app, labels=None, **more):
    return pod(name, "1", None, labels={"app": app, **(labels or {})}, **more)


def affinity_of_owners(case, count):
    case.make(labelled("anchor", "anchor"))
    node = case.bound("anchor")
    held = case.hold(reservation("r", "a", "4", template=near("podAffinity", "anchor"), allocateOnce=count == 1))
    assert held[0]["status"]["nodeName"] == node
    for i in range(count):
        case.make(pod(f"p{i}", "1", None, labels={"owner": "a"}, **near("podAffinity", "anchor")))
        case.lands(f"p{i}", "r", node)


def affinity(case):
    affinity_of_owners(case, 1)


def affinity_of_several(case):
    affinity_of_owners(case, 3)


def anti_affinity_of_owners(case, count):
    apart = near("podAntiAffinity", "web")
    held = case.hold(reservation("r", "a", "4", template={**apart, "labels": {"app": "web"}}, allocateOnce=count == 1))
    node = held[0]["status"]["nodeName"]
    case.make(labelled("p0", "web", {"owner": "a"}, **apart))
    case.lands("p0", "r", node)
    for i in range(1, count):
        case.make(labelled(f"p{i}", "web", {"owner": "a"}, **apart))
        assert case.lands(f"p{i}", None) != node


def anti_affinity(case):
    anti_affinity_of_owners(case, 1)


def anti_affinity_of_several(case):
    anti_affinity_of_owners(case, 2)


def affinity_of_strangers(case):
    case.make(labelled("anchor", "anchor"))
    node = case.bound("anchor")
    case.hold(reservation("r", "a", "4", template=near("podAffinity", "anchor")))
    case.make(pod("p", "1", None, **near("podAffinity", "anchor")))
    case.lands("p", None, node)


def anti_affinity_of_strangers(case):
    apart = near("podAntiAffinity", "web")
    node = case.hold(reservation("r", "a", "1", template={**apart, "labels": {"app": "web"}}))[0]["status"]["nodeName"]
    case.make(labelled("p", "web", nodeSelector={HOST: node}, **apart))
    assert "anti-affinity" in case.refused("p")


# -- PodTopologySpread

def spread(case):
    constraint = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule",
                                                 "labelSelector": {"matchLabels": {"app": "web"}}}]}
    case.hold(*[reservation(f"r{i}", "a", "1", template={**constraint, "labels": {"app": "web"}}) for i in range(3)])
    nodes = set()
    for i in range(3):
        case.make(labelled(f"p{i}", "web", {"owner": "a"}, **constraint))
        nodes.add(case.bound(f"p{i}"))
        assert case.reservation_of(f"p{i}"), f"p{i} is in no reservation"
    assert len(nodes) == 3, nodes


# -- Volumes

def storage(name, mode):
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
              "spec": {"capacity": {"storage": "1Gi"}, "accessModes": [mode], "storageClassName": "fixed",
                       "csi": {"driver": "csi.example.com", "volumeHandle": name},
                       "claimRef": {"namespace": "default", "name": name}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
             "spec": {"storageClassName": "fixed", "volumeName": name, "accessModes": [mode],
                      "resources": {"requests": {"storage": "1Gi"}}}}
    return volume, claim, {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


def claim_of_one_pod(case):
    volume, claim, use = storage("only", "ReadWriteOncePod")
    case.make(volume, claim)
    wait_for("the claim is bound", lambda: case.cluster.get(
        "/api/v1/namespaces/default/persistentvolumeclaims/only")["status"].get("phase") == "Bound")
    case.hold(reservation("r", "a", "1", template=use))
    case.make(owner("p", "1", **use))
    case.lands("p", "r")
    case.make(owner("q", "1", **use))
    case.refused("q")


def place_of_a_volume(case):
    """A node that can attach one volume: R holds that place for a claim whose volume is made when the owner comes."""
    (node,) = [item["metadata"]["name"] for item in case.cluster.get("/api/v1/nodes")["items"]]
    driver = "disks.example.com"
    case.make({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
               "spec": {"drivers": [{"name": driver, "nodeID": node, "allocatable": {"count": 1}}]}},
              {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
               "provisioner": driver, "volumeBindingMode": "WaitForFirstConsumer"},
              *[{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
                 "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"],
                          "resources": {"requests": {"storage": "1Gi"}}}} for name in ("data", "other")])

    def use(name):
        return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}

    def claim():
        return case.cluster.get("/api/v1/namespaces/default/persistentvolumeclaims/data")

    try:
        case.hold(reservation("r", "a", "1", template=use("data"), allocateOnce=False))
        assert "volume.kubernetes.io/selected-node" not in claim()["metadata"].get("annotations", {}), claim()
        case.make(pod("stranger", "1", None, **use("other")))
        assert "max volume count" in case.refused("stranger")
        case.make(owner("p", "1", **use("data")))
        wait_for("a volume is asked for", lambda: claim()["metadata"].get("annotations", {}).get(
            "volume.kubernetes.io/selected-node") == node)
        case.make({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "made"},
                   "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                            "csi": {"driver": driver, "volumeHandle": "made"},
                            "claimRef": {"namespace": "default", "name": "data", "uid": claim()["metadata"]["uid"]}}})
        case.lands("p", "r", node)
        assert claim()["spec"]["volumeName"] == "made", claim()
        assert "max volume count" in case.refused("stranger")
    finally:
        case.cluster.kubectl("delete", f"csinode/{node}", "storageclass/late")


ONE_NODE = [same_size, owner_without_memory, owner_of_less_memory, memory_from_the_node, more_than_reserved,
            two_owners_fit, two_owners_of_six, stranger, stranger_after_a_small_owner, returned_charge, expiry,
            pre_allocation, room_for_a_preempting_pod, broken_annotation, must_use_a_reservation, ports_of_one,
            ports_of_two, ports_of_strangers, claim_of_one_pod, place_of_a_volume]
THREE_NODES = [affinity, affinity_of_several, anti_affinity, anti_affinity_of_several, affinity_of_strangers,
               anti_affinity_of_strangers, spread]


def play(stage, cases, nodes):
    failed = []
    with stage.cluster() as cluster:
        scheduler, controllers = start_both(cluster)
        cluster.nodes(nodes, NODE)
        for case in cases:
            try:
                case(Case(cluster))
            except AssertionError as trouble:
                failed.append(f"{case.__name__}: {trouble}")
                stage.say(f"{case.__name__}: {trouble}")
            cluster.clear()
        assert scheduler.alive() and controllers.alive(), "Berth ended"
        assert not failed, f"{len(failed)} of {len(cases)} cases failed"
        stage.say(f"{len(cases)} cases")


def reservations_one_node(stage):
    """The seed's list on one node: resources, ports, volumes, expiry"""
    play(stage, ONE_NODE, 1)


def reservations_three_nodes(stage):
    """The seed's list on three nodes: affinity, anti-affinity, spreading"""
    play(stage, THREE_NODES, 3)


def node_reservations(stage):
    """What a node keeps for others: lowers its room, both policies; bad input keeps the last valid value and is told"""
    with stage.cluster() as cluster:
        start_both(cluster)
        cluster.nodes(1, NODE)
        case = Case(cluster)

        def keep(value):
            cluster.kubectl("annotate", "--overwrite", "node/node-0", f"{NODE_RESERVATION}={value}")

        def node():
            return cluster.get("/api/v1/nodes/node-0")

        def complaint():
            told = [c for c in node()["status"]["conditions"] if c["type"] == "BerthReservationInvalid"]
            return told[0]["message"] if told and told[0]["status"] == "True" else ""

        def applied(part):
            return part in node()["metadata"]["annotations"].get("berth.dev/reservation-applied", "")

        keep('{"resources":{"cpu":"10","memory":"2Gi"}}')
        wait_for("it is applied", lambda: applied("10"))
        case.room(6, 30)
        keep('{"resources":{"cpu":"-1","memory":"2Gi"}}')
        wait_for("the condition names the value", lambda: "-1" in complaint())
        case.room(6, 30)
        wait_for("its event", lambda: any(
            event["involvedObject"]["kind"] == "Node" and event["type"] == "Warning" and "-1" in event["message"]
            for event in cluster.items("/api/v1/events")))
        keep('{"reservedCPUs":"0-3","resources":{"cpu":"10"}}')
        wait_for("the complaint is over", lambda: not complaint() and applied("0-3"))
        case.room(12)
        keep('{"reservedCPUs":"0-3","applyPolicy":"ReservedCPUsOnly"}')
        wait_for("it is applied", lambda: applied("ReservedCPUsOnly"))
        case.room(16)
        keep('{"resources":{"cpu":"15"}}')
        wait_for("it is applied", lambda: applied("15"))
        case.make(pod("waits", cpu="2", memory=None))
        assert "Insufficient cpu" in case.refused("waits")
        cluster.kubectl("annotate", "node/node-0", NODE_RESERVATION + "-")
        case.lands("waits", None)


def commands(stage):
    """berth reserve and berth migrate against a real API server, with its own controllers"""
    with stage.cluster() as cluster:
        start_both(cluster)
        cluster.nodes(2, NODE)

        def berth(*words):
            return subprocess.run([cluster.berth, *words, "--kubeconfig", cluster.admin], capture_output=True, text=True,
                                  timeout=120)

        done = berth("reserve", "batch", "--per-node", "-r", "cpu=2", "--owner", "team=batch", "--reusable", "--wait")
        lines = sorted(done.stdout.splitlines())
        assert done.returncode == 0 and lines == [
            "reservation/batch-node-0 Available on node-0", "reservation/batch-node-0 created",
            "reservation/batch-node-1 Available on node-1", "reservation/batch-node-1 created"], done
        template = {"metadata": {"labels": {"app": "web"}}, "spec": dict(pod("unused", cpu="4")["spec"])}
        template["spec"]["terminationGracePeriodSeconds"] = 1
        cluster.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default"},
                       "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}})

        def ready():
            return [p for p in cluster.items(PODS) if "deletionTimestamp" not in p["metadata"] and any(
                c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", []))]

        (first,) = wait_for("the pod is ready", ready)
        name, node = first["metadata"]["name"], first["spec"]["nodeName"]
        done = berth("migrate", "pod", name)
        assert done.returncode == 0, done
        (second,) = wait_for("its replacement is ready", ready)
        assert second["metadata"]["name"] != name and second["spec"]["nodeName"] != node, (first, second)
        drawn_from = Watcher(cluster).reservation_of(second["metadata"]["name"])
        assert f"reservation/{drawn_from} created" in done.stdout, (done, drawn_from)


TESTS = [reservations_one_node, reservations_three_nodes, node_reservations, commands]
