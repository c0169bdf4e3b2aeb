#!/usr/bin/env python3
"""node_objects_test.py BERTH: what a node that was taken over writes about itself, as large and as odd as may be: everybody else's pods
are placed as before, the process lives, and memory stays bounded. It may not write about another node."""
import json
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

from server import Server

TOPOLOGIES = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"
DEVICES = "/apis/scheduling.koordinator.sh/v1alpha1/devices"
METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
OWN = "/api/v1/nodes/node-0"
PODS = "/api/v1/namespaces/default/pods"
KEY = "node.koordinator.sh/"
EVERY_CPU = ",".join(["0-8191"] * 30000)
MOST_MEMORY = 256 << 10  # KiB
TURNS, NAMES = 240, 256  # of its Node's status: enough for every name that a process knows
MOST_CPU = 5.0           # seconds for one object and a pod; one took nine and 2 GiB


def lines(count, numas):
    detail = [{"id": i, "core": i // 2, "node": i // 2 * numas // (count // 2), "socket": 0} for i in range(count)]
    return json.dumps({"detail": detail}, separators=(",", ":"))


def topology(annotations, zones=()):
    return {"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", "metadata": {"annotations": annotations},
            "topologyPolicies": ["None"], "zones": list(zones)}


def zone(name, resources):
    return {"name": name, "type": "Node", "resources": [
        {"name": each, "capacity": "1", "allocatable": "9223372036854775807", "available": "1"} for each in resources]}


def device(units, annotations=None):
    return {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"annotations": annotations or {}},
            "spec": {"devices": units}}


def gpu(minor, **more):
    amounts = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"}
    return {"type": "gpu", "minor": minor, "health": True, "id": "g%d" % minor, "resources": amounts, **more}


def metric(amount):
    usage = {"resources": {"cpu": amount, "memory": amount}}
    return {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {},
            "status": {"updateTime": "9999-12-31T23:59:59Z", "nodeMetric": {"nodeUsage": usage, "systemUsage": usage},
                       "podsMetric": [{"name": "x", "namespace": "default", "podUsage": usage}]}}


small = lines(4, 1)
pairs = json.dumps({"2": [{"minors": [2 * (i % 4), 2 * (i % 4) + 1]} for i in range(4096)]}, separators=(",", ":"))
HOSTILE = [
    ("every CPU 30,000 times, as kept by the kubelet", TOPOLOGIES, topology({
        KEY + "cpu-topology": small, KEY + "pod-cpu-allocs": json.dumps([{"managedByKubelet": True, "cpuset": EVERY_CPU}])})),
    ("every CPU by 4,500 pods", TOPOLOGIES, topology({KEY + "cpu-topology": small, KEY + "pod-cpu-allocs": json.dumps(
        [{"managedByKubelet": True, "cpuset": "0-8191"}] * 4500, separators=(",", ":"))})),
    ("every CPU 30,000 times, as reserved", TOPOLOGIES, topology({
        KEY + "cpu-topology": small, KEY + "reservation": json.dumps({"reservedCPUs": EVERY_CPU})})),
    ("CPUs that no machine has", TOPOLOGIES, topology({
        KEY + "cpu-topology": small, KEY + "reservation": '{"reservedCPUs":"0-4294967295,0-2147483647"}'})),
    ("6,000 CPUs in eight NUMA nodes", TOPOLOGIES, topology({KEY + "cpu-topology": lines(6000, 8)})),
    ("6,000 NUMA nodes", TOPOLOGIES, topology({KEY + "cpu-topology": lines(6000, 3000)})),
    ("9,000 zones", TOPOLOGIES, topology({KEY + "cpu-topology": lines(5000, 100)}, [zone("node-%d" % i, ["cpu"]) for i in range(9000)])),
    ("10,000 resources", TOPOLOGIES, topology({KEY + "cpu-topology": small}, [zone("node-0", ["x.io/r%d" % i for i in range(10000)])])),
    ("depth", TOPOLOGIES, topology({KEY + "cpu-topology": "[" * 100000})),
    ("4,096 partitions", DEVICES, device([gpu(i) for i in range(8)], {
        KEY + "gpu-partitions": pairs, "scheduling.koordinator.sh/gpu-partitions": pairs})),
    ("4,000 devices", DEVICES, device([gpu(i) for i in range(4000)])),
    ("devices at the edge", DEVICES, device([
        gpu(0), gpu(2147483647), gpu(1, resources={"koordinator.sh/gpu-core": "9223372036854775807", "koordinator.sh/gpu-memory": "1e30"})])),
    ("usage at the edge", METRICS, metric("9223372036854775807")),
    ("negative usage", METRICS, metric("-9223372036854775808")),
]


class Taken(Server):
    """A server, and the credentials of its node-0."""

    def __init__(self, berth):
        super().__init__(berth, "--nodes", "2", command="up")
        self.token = subprocess.run([berth, "token", "create", "--data-dir", self.dir, "--user", "system:node:node-0", "--groups",
                                     "system:nodes"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def as_node(self, method, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {
            "Content-Type": "application/json", "Authorization": "Bearer " + self.token}, method=method)
        context = ssl.create_default_context(cafile=self.dir + "/pki/ca.crt")
        try:
            with urllib.request.urlopen(request, context=context, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def put_own(self, path, body, name="node-0"):
        body = dict(body, metadata=dict(body["metadata"], name=name))
        code = self.as_node("POST", path, body)
        if code != 409:
            return code
        body["metadata"]["resourceVersion"] = self.ask("GET", "%s/%s" % (path, name))[1]["metadata"]["resourceVersion"]
        return self.as_node("PUT", "%s/%s" % (path, name), body)

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def peak_kb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))

    def place(self, name, **more):
        """A pod of the other node, and whether it gets there."""
        spec = {"nodeSelector": {"kubernetes.io/hostname": "node-1"},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}]}
        code, said = self.ask("POST", PODS, {"metadata": {"name": name, **more}, "spec": spec})
        assert code == 201, said
        end = time.monotonic() + 60
        while not self.ask("GET", PODS + "/" + name)[1]["spec"].get("nodeName"):
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("FAILED: %s is not placed" % name)
            time.sleep(0.02)


def names(berth):
    """Its Node has ever other resources, in a server that was asked for nothing yet. Whether others are placed as before."""
    server = Taken(berth)
    before = server.cpu()
    told = {}
    for turn in range(TURNS):
        node = server.ask("GET", OWN)[1]
        made_up = {"x.io/r%d-%d" % (turn, i): "1" for i in range(NAMES - 20 if turn else 20000)}
        node["status"]["capacity"] = {**{key: node["status"]["capacity"][key] for key in ("cpu", "memory", "pods")}, **made_up}
        node["status"]["allocatable"] = node["status"]["capacity"]
        code = server.as_node("PUT", OWN + "/status", node)
        told[code] = told.get(code, 0) + 1
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "20m", "memory": "1Gi"}}}]}
    asked = server.ask("POST", PODS, {"metadata": {"name": "limited"}, "spec": spec})[0]
    server.place("last")
    print("%-48s %s, %.2f s of CPU, at most %d MiB" % ("%d resources, ever others" % NAMES, told, server.cpu() - before, server.peak_kb() >> 10))
    well = not set(told) - {200, 422} and told[422] > 0 and asked == 201 and server.peak_kb() < MOST_MEMORY
    return server.stop() == 0 and well


def main():
    server = Taken(sys.argv[1])
    cores = {"labels": {"koordinator.sh/qosClass": "LSR"},
             "annotations": {"scheduling.koordinator.sh/numa-topology-spec": '{"numaTopologyPolicy":"BestEffort"}'}}

    def asking(amounts, **more):
        return {"metadata": {"name": "asks", **more}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}]}}

    asks = {TOPOLOGIES: asking({"cpu": "4"}, **cores), DEVICES: asking({"koordinator.sh/gpu": "200"}), METRICS: asking({"cpu": "1"})}
    failed = 0
    try:
        server.place("first")
        for number, (what, path, body) in enumerate(HOSTILE):
            before = server.cpu()
            told = server.put_own(path, body)
            server.ask("POST", PODS, asks[path])  # somebody asks for what it says it has
            server.place("pod-%d" % number)
            server.ask("DELETE", PODS + "/asks?gracePeriodSeconds=0")
            took = server.cpu() - before
            print("%-48s %d, %.2f s of CPU, at most %d MiB" % (what, told, took, server.peak_kb() >> 10), flush=True)
            if told not in (200, 201, 400, 413, 422) or took > MOST_CPU or server.peak_kb() > MOST_MEMORY:
                failed += 1
                print("FAILED:", what, flush=True)
            others = server.put_own(path, body, "node-1")
            if others != 403:
                failed += 1
                print("FAILED: it writes about another node: %d" % others, flush=True)
    finally:
        code = server.stop()
    if not names(sys.argv[1]):
        failed += 1
        print("FAILED: resources of ever other names", flush=True)
    print("node objects: %s" % ("passed" if not failed and code == 0 else "failed, exit %d" % code))
    return 1 if failed or code != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
