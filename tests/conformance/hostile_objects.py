"""Objects of the kinds that fleets, shares and nodes bring, hostile ones: good ones with something else in some places, and what
follows the server's schemas blindly."""
import copy
import json

MACHINES, OURS, SLO = "compute.ironcore.dev/v1alpha1", "scheduling.koordinator.sh/v1alpha1", "slo.koordinator.sh/v1alpha1"
SHARES, TOPOLOGY = "kuabe-arbitrator.incubator.k8s.io/v1", "topology.node.k8s.io/v1alpha1"
NAMES, NODES = ["h0", "h1", "h2", "h3"], ["node-0", "node-1"]
TIME = "2026-11-15T22:00:00Z"
USAGE = {"resources": {"cpu": "3", "memory": "5Gi"}, "devices": []}
CONDITION = {"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": TIME}
GPU = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"}
CPUS = {"detail": [{"id": i, "core": i // 2, "node": i // 4, "socket": 0} for i in range(8)]}
HOLD = {"spec": {"pools": [{"name": "a"}], "resources": {"cpu": "1", "memory": "1Gi"}, "machineClassRef": {"name": "h0"}, "poolSelector": {"app": "x"},
                 "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], "priority": 5, "group": "g", "duration": "30s"},
        "status": {"pools": [{"name": "a", "state": "Accepted", "reason": "R", "score": 7, "lease": "30s", "committed": False}], "state": "Accepted",
                   "score": 7, "lease": "30s", "committed": True, "conditions": [CONDITION]}}
# A good object of each kind. Group and version, resource, kind, whether it is in a namespace, the names its objects have, the object.
KINDS = [
    (SLO, "nodeslos", "NodeSLO", False, NODES, {
        "spec": {"resourceUsedThresholdWithBE": {
            "enable": True, "cpuSuppressThresholdPercent": 65, "cpuSuppressMinPercent": 10, "cpuSuppressPolicy": "cpuset",
            "memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 60, "cpuEvictBESatisfactionUpperPercent": 80,
            "cpuEvictBESatisfactionLowerPercent": 40, "cpuEvictBEUsageThresholdPercent": 90, "cpuEvictTimeWindowSeconds": 60,
            "cpuEvictPolicy": "evictByRealLimit"},
            "resourceQOSStrategy": {"beClass": {"cpuQOS": {"enable": True}}}, "cpuBurstStrategy": {"policy": "none"},
            "systemStrategy": {"minFreeKbytesFactor": 100}, "extensions": {"a": "b"}, "hostApplications": [{"name": "x"}]}}),
    (OURS, "podmigrationjobs", "PodMigrationJob", False, NAMES, {
        "spec": {"paused": False, "ttl": "5m", "mode": "ReservationFirst", "podRef": {"namespace": "default", "name": "busy", "uid": "u"},
                 "reservationOptions": {"reservationRef": {"name": "h0"}, "template": {"spec": {"ttl": "1h", "owners": [{"object": {"name": "busy"}}]}}},
                 "deleteOptions": {"gracePeriodSeconds": 0}},
        "status": {"phase": "Running", "status": "S", "nodeName": "node-0", "podRef": {"name": "busy"}, "conditions": [CONDITION]}}),
    (MACHINES, "machines", "Machine", True, NAMES, {
        "spec": {"machineClassRef": {"name": "h0"}, "machinePoolSelector": {}, "machinePoolRef": {"name": "a"}, "power": "On",
                 "networkInterfaces": [{"name": "n", "networkInterfaceRef": {"name": "x"}}], "efiVars": [{"name": "e", "uuid": "u", "value": "v"}],
                 "volumes": [{"name": "v", "device": "oda", "localDisk": {"sizeLimit": "1Gi"}}], "tolerations": [{"key": "k", "operator": "Exists"}],
                 "ignitionRef": {"name": "s", "key": "k"}, "guestConfig": {"hostname": "h"}},
        "status": {"machineID": "berth://h0.1", "observedGeneration": 1, "state": "Running", "conditions": [CONDITION],
                   "networkInterfaces": [{"name": "n", "handle": "h", "state": "Attached"}]}}),
    (MACHINES, "machinepools", "MachinePool", False, NAMES + ["a"], {
        "spec": {"providerID": "iri://x", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        "status": {"state": "Ready", "conditions": [CONDITION], "availableMachineClasses": [{"name": "h0"}], "capacity": {"class/machine.h0": "3"},
                   "allocatable": {"class/machine.h0": "3"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}),
    (MACHINES, "machineclasses", "MachineClass", False, NAMES, {"capabilities": {"cpu": "1", "memory": "1Gi", "x.io/y": "3"}}),
    (MACHINES, "reservations", "Reservation", True, NAMES, HOLD),
    ("core.ironcore.dev/v1alpha1", "reservations", "Reservation", True, NAMES, HOLD),
    (SHARES, "consumers", "Consumer", False, NAMES + ["default"], {
        "spec": {"hard": {"cpu": "10", "memory": "50%"}, "reserved": {"cpu": "40%"}, "weight": 3, "parent": "h1", "lendingLimit": {"cpu": "2"},
                 "borrowingLimit": {"cpu": "2"}, "gracePeriod": "30s", "reclaimable": True, "request": {"cpu": "3"}}}),
    (SHARES, "allocations", "Allocation", False, NAMES + ["default"], {
        "spec": {"deserved": {"cpu": "1"}, "hard": {"cpu": "2"}, "reserved": {"cpu": "1"}},
        "status": {"used": {"cpu": "1"}, "demand": {"cpu": "1"}, "overused": True, "overusedSince": TIME,
                   "reclaim": {"amounts": {"cpu": "1"}, "deadline": TIME}, "conditions": [CONDITION]}}),
    (TOPOLOGY, "noderesourcetopologies", "NodeResourceTopology", False, NODES, {
        "metadata": {"annotations": {"node.koordinator.sh/cpu-topology": json.dumps(CPUS),
                                     "node.koordinator.sh/pod-cpu-allocs": '[{"namespace":"default","name":"x","uid":"u","cpuset":"0-1"}]',
                                     "node.koordinator.sh/reservation": '{"reservedCPUs":"7"}', "kubelet.koordinator.sh/cpu-manager-policy": '{"policy":"static"}'}},
        "topologyPolicies": ["None"], "zones": [{"name": "node-0", "type": "Node", "costs": [{"name": "node-0", "value": 10}], "resources": [
            {"name": "cpu", "capacity": "4", "allocatable": "4", "available": "4"}]}]}),
    (OURS, "devices", "Device", False, NODES, {
        "metadata": {"annotations": {"scheduling.koordinator.sh/gpu-partitions": '{"2":[{"minors":[0,1]}]}'}},
        "spec": {"devices": [{"type": "gpu", "id": "g%d" % i, "minor": i, "moduleID": i, "health": True, "resources": GPU, "labels": {"a": "b"},
                              "topology": {"socketID": 0, "nodeID": 0, "pcieID": "0", "busID": "0000:00:0%d.0" % i},
                              "vfGroups": [{"vfs": [{"minor": 0, "busID": "b"}]}]} for i in range(2)]},
        "status": {"allocations": [{"type": "gpu", "entries": [{"name": "x", "namespace": "default", "uuid": "u", "minors": [0]}]}]}}),
    (SLO, "nodemetrics", "NodeMetric", False, NODES, {
        "spec": {"metricCollectPolicy": {"aggregateDurationSeconds": 300, "reportIntervalSeconds": 60, "nodeAggregatePolicy": {"durations": ["5m"]}}},
        "status": {"updateTime": TIME, "nodeMetric": {"nodeUsage": USAGE, "systemUsage": USAGE, "aggregatedNodeUsages": [
            {"usage": {"p95": USAGE}, "duration": "5m"}]}, "podsMetric": [{"name": "busy", "namespace": "default", "podUsage": USAGE, "qos": "BE"}],
            "prodReclaimableMetric": {"resource": USAGE}}})]
KEYS = ["cpu", "memory", "pods", "nvidia.com/gpu", "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "kubernetes.io/batch-cpu", "nics",
        "localStorage", "class/machine.h0", "app", "kubernetes.io/hostname", "berth.dev/lineage", "berth.dev/attempt", "x" * 400, "", "a/b/c",
        "node.koordinator.sh/cpu-topology", "node.koordinator.sh/pod-cpu-allocs", "node.koordinator.sh/reservation",
        "scheduling.koordinator.sh/gpu-partitions"]
WORDS = ["", "h0", "h1", "h2", "default", "kube-system", "node-0", "node-1", "a", "a/b", "On", "Off", "Ready", "Pending", "Running", "Succeed",
         "Failed", "Accepted", "Rejected", "Bound", "NoReply", "ReservationFirst", "EvictDirectly", "Node", "Socket", "gpu", "rdma", "fpga", "None",
         "SingleNUMANodeContainerLevel", "node-0,node-1", "NoExecute", "Exists", "Equal", "In", "1h", "-1h", "0s", "2562047h47m16s", "1e9h",
         "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T25:61:00Z", "1", "-1", "0", "100m", "1Ei", "9223372036854775807",
         "-9223372036854775808", "1e30", "1e-30", "0.0000000001", "100%", "-5%", "1000000%", "NaN", "0-8191", "4294967295", "[]", "{}", "null",
         '{"detail":[{"id":-1,"core":2147483647,"node":4294967296,"socket":-1}]}', '[{"managedByKubelet":true,"cpuset":"0-8191,0-8191"}]',
         '{"2":[{"minors":[-1,99999999999]}]}', "\u0000", "\u202egnp", "\ud83d\ude00" * 50, "x" * 5000, "../../etc/passwd", "${jndi}", "%n%s", "\n\r\t"]
NUMBERS = [0, 1, -1, 2, 100, 101, 65536, 2147483647, -2147483648, 4294967296, 9223372036854775807, -9223372036854775808, 1.5, -0.0, 1e308, 1e-300]


def deep(levels):
    out = 1
    for i in range(levels):
        out = [out] if i % 2 else {"a": out}
    return out


class Generator:
    """Objects that follow the server's own schemas, but for what is hostile in them."""

    def __init__(self, dice, schemas):
        self.dice, self.schemas, self.rate, self.left = dice, schemas, 0.0, 0

    def hostile(self):
        return self.dice.choice([
            lambda: None, lambda: self.dice.choice(NUMBERS), lambda: self.dice.choice(WORDS), lambda: [], lambda: {}, lambda: True,
            lambda: deep(self.dice.choice([10, 127, 200])), lambda: ["x"] * self.dice.choice([100, 20000]), lambda: [{}] * 3000,
            lambda: {"k%d" % i: "v" for i in range(self.dice.choice([100, 5000]))}, lambda: "y" * self.dice.choice([70000, 300000])])()

    def amount(self, few, many):
        out = self.dice.choice([0, 1, 1, 2, few]) if self.dice.random() > self.rate / 8 else many
        self.left -= out
        return out if self.left > 0 else 0

    def value(self, schema, depth=0):
        while "$ref" in schema or "allOf" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema["allOf"][0]
        if self.dice.random() < self.rate / 6 or depth > 12:
            return self.hostile()
        if "properties" in schema:
            return {name: self.value(each, depth + 1) for name, each in schema["properties"].items() if self.dice.random() < 0.55}
        kind = schema.get("type") or ("string" if "oneOf" in schema else "object")
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.amount(4, 400))]
        if kind == "object":
            each = schema.get("additionalProperties") or {"type": "string"}
            each = each if isinstance(each, dict) else {"type": "string"}
            return {self.dice.choice(KEYS) + ("" if i < 8 else str(i)): self.value(each, depth + 1) for i in range(self.amount(4, 400))}
        if kind in ("integer", "number"):
            return self.dice.choice(NUMBERS)
        return self.dice.random() < 0.5 if kind == "boolean" else self.dice.choice(WORDS)

    def places(self, value, at=()):
        """The ways to all of its parts."""
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in inner:
            yield (*at, key)
            yield from self.places(each, (*at, key))

    def other(self, was):
        """What is not what was there, most often of its kind."""
        if self.dice.random() < 0.15:
            return self.hostile()
        if isinstance(was, bool):
            return not was
        if isinstance(was, int):
            return self.dice.choice([number for number in NUMBERS if isinstance(number, int)])
        if isinstance(was, list):
            return self.dice.choice([was * self.dice.choice([2, 300]), was[:0], was[::-1]])
        if isinstance(was, dict):
            more = {key + str(i): each for i in range(self.dice.choice([1, 500])) for key, each in was.items()}
            return self.dice.choice([{}, {**was, **more}, {key: self.other(each) for key, each in list(was.items())[:3]}])
        return self.dice.choice(WORDS)

    def bent(self, kind):
        """A good object, other in some places."""
        out = copy.deepcopy(kind[5])
        for section in [key for key in out if self.dice.random() < 0.15]:
            del out[section]
        for _ in range(self.dice.choice([0, 1, 1, 2, 3])):
            ways = list(self.places(out))
            if not ways:
                break
            way, inner = self.dice.choice(ways), out
            for key in way[:-1]:
                inner = inner[key]
            if self.dice.random() < 0.2:
                del inner[way[-1]]
            else:
                inner[way[-1]] = self.other(inner[way[-1]])
        if not isinstance(out.get("metadata", {}), dict):
            del out["metadata"]
        out.setdefault("metadata", {})["name"] = self.dice.choice(kind[4])
        return out

    def object(self, kind, name):
        version, _, word, in_namespace = kind[:4]
        schema = next(each for each in self.schemas.values() if {"group": version.split("/")[0], "version": version.split("/")[1], "kind": word} in
                      each.get("x-kubernetes-group-version-kind", []))
        self.rate, self.left = self.dice.choice([0.0, 0.1, 0.3, 1.0]), 2000
        out = {key: self.value(each) for key, each in schema["properties"].items()
               if key not in ("apiVersion", "kind", "metadata") and self.dice.random() < 0.9}
        out["metadata"] = {"name": name}
        if self.dice.random() < 0.4:
            out["metadata"]["annotations"] = {self.dice.choice(KEYS): self.dice.choice(WORDS) for _ in range(3)}
            out["metadata"]["labels"] = {self.dice.choice(KEYS): self.dice.choice(WORDS) for _ in range(2)}
        if self.dice.random() < 0.1:
            out["metadata"].update(self.dice.choice([
                {"finalizers": ["x.io/y"]}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "h0", "uid": "h0"}]},
                {"deletionTimestamp": "2020-01-01T00:00:00Z"}, {"uid": "h0"}, {"generateName": "h"}, {"resourceVersion": "-1"}]))
        if in_namespace and self.dice.random() < 0.05:
            out["metadata"]["namespace"] = self.dice.choice(WORDS)
        return out

    def steps(self, thing):
        """A JSON patch."""
        paths = ["/spec", "/status", "/metadata/labels", "/metadata/name", "", "/spec/-", "/metadata/annotations/" + "~1" * 40]
        paths += ["/" + section + "/" + key for section in ("spec", "status") if isinstance(thing.get(section), dict) for key in thing[section]]
        parts = [thing.get("spec"), thing.get("status"), self.hostile()]
        return [{"op": self.dice.choice(["add", "replace", "remove", "test", "copy", "move"]), "path": self.dice.choice(paths),
                 "from": self.dice.choice(paths), "value": self.dice.choice(parts)} for _ in range(self.amount(6, 2000))]


def mangled(dice, data):
    """Bytes of it that are others, gone, or twice there."""
    at = dice.randrange(len(data) + 1)
    return dice.choice([lambda: data[:at], lambda: data[:at] + bytes([dice.randrange(256)]) + data[at + 1:], lambda: data[:at] + data,
                        lambda: data.replace(b'"spec":', b'"spec":{},"spec":'), lambda: data.replace(b"}", b",}", 1)])()
