"""The seed's cases of NUMANodeResources and DeviceShare, and Koordinator's manifests, on a real API server."""
import json

from berths import start
from cluster import PODS
from deploy_tests import install
from objects import pod, reservation
from processes import wait_for
from reservation_tests import Case

CORES = "scheduling.koordinator.sh/resource-status"
DEVICES = "scheduling.koordinator.sh/device-allocated"
GPU = "koordinator.sh/gpu"
LSR = {"koordinator.sh/qosClass": "LSR"}


def ids(text):
    out = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out


def machine(name, cpus=16, gpus=2):
    """A node's CPUs, two threads a core and two NUMA nodes, and its GPUs."""
    half = cpus // 2
    detail = [{"id": i, "core": i % half, "socket": 0, "node": i % half * 2 // half} for i in range(cpus)]
    notes = {"node.koordinator.sh/cpu-topology": json.dumps({"detail": detail})}
    devices = [{"type": "gpu", "minor": i, "id": f"gpu-{i}", "health": True,
                "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100",
                              "koordinator.sh/gpu-memory": "32Gi"},
                "topology": {"socketID": 0, "nodeID": 0, "pcieID": "0", "busID": f"0000:0{i}:00.0"}} for i in range(gpus)]
    return [{"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
             "metadata": {"name": name, "annotations": notes}, "topologyPolicies": ["None"], "zones": []},
            {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": name},
             "spec": {"devices": devices}}]


class Parts(Case):
    def cores(self, name):
        self.bound(name)
        return ids(json.loads(self.pod(name)["metadata"]["annotations"][CORES])["cpuset"])

    def gpus(self, name):
        self.bound(name)
        record = json.loads(self.pod(name)["metadata"]["annotations"][DEVICES])
        return {entry["minor"]: int(entry["resources"]["koordinator.sh/gpu-memory-ratio"]) for entry in record["gpu"]}

    def hold_cores(self, count, **more):
        (held,) = self.hold(reservation("r", "a", str(count), labels=LSR, **more))
        return ids(held["status"]["resourceStatus"]["cpuset"])

    def hold_gpu(self, **more):
        made = reservation("r", "a", "1", **more)
        made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"][GPU] = "100"
        (held,) = self.hold(made)
        return {entry["minor"] for entry in held["status"]["deviceAllocated"]["gpu"]}


def lsr(name, cpus, owner="a"):
    made = pod(name, str(cpus), "1Gi", labels={"owner": owner, **LSR})
    made["spec"]["containers"][0]["resources"]["limits"] = {"cpu": str(cpus), "memory": "1Gi"}
    return made


def with_gpu(name, percent, owner="a", resource=GPU):
    made = pod(name, "1", "1Gi", labels={"owner": owner})
    made["spec"]["containers"][0]["resources"]["requests"][resource] = str(percent)
    made["spec"]["containers"][0]["resources"]["limits"] = {resource: str(percent)}
    return made


def four_cores(case):
    held = case.hold_cores(4)
    case.make(lsr("s", 4, "other"))
    assert not case.cores("s") & held, "a stranger has what is held"
    case.make(lsr("p", 4))
    assert case.cores("p") == held, (case.cores("p"), held)


def six_of_four(case):
    held = case.hold_cores(4)
    case.make(lsr("p", 6))
    assert held < case.cores("p") and len(case.cores("p")) == 6, (case.cores("p"), held)


def twos(case):
    held = case.hold_cores(4, allocateOnce=False)
    case.make(lsr("p", 2), lsr("q", 2))
    first, second = case.cores("p"), case.cores("q")
    assert first | second == held and not first & second, (first, second, held)


def threes(case):
    held = case.hold_cores(4, allocateOnce=False)
    case.make(lsr("p", 3))
    first = case.cores("p")
    case.make(lsr("q", 3))
    second = case.cores("q")
    assert first < held < first | second and not first & second, (first, second, held)


def one_gpu(case):
    held = case.hold_gpu()
    case.make(with_gpu("s", 100, "other"))
    assert not case.gpus("s").keys() & held, "a stranger has what is held"
    case.make(with_gpu("p", 100))
    assert case.gpus("p").keys() == held, (case.gpus("p"), held)


def halves(case):
    held = case.hold_gpu(allocateOnce=False)
    case.make(with_gpu("p", 50), with_gpu("q", 50))
    for name in ("p", "q"):
        assert case.gpus(name) == {minor: 50 for minor in held}, (name, case.gpus(name), held)


def sixty_and_fifty(case):
    held = case.hold_gpu(allocateOnce=False)
    case.make(with_gpu("s", 100, "other"))
    case.bound("s")
    case.make(with_gpu("p", 60))
    assert case.gpus("p") == {minor: 60 for minor in held}, (case.gpus("p"), held)
    case.make(with_gpu("q", 50))
    assert "Insufficient" in case.refused("q")


def nginx(policy):
    """The Deployment of its guide to fine-grained CPU orchestration."""
    notes = {"scheduling.koordinator.sh/resource-spec": json.dumps({"preferredCPUBindPolicy": policy})}
    labels = {"app": "nginx-lsr"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nginx-lsr", "namespace": "default", "labels": labels},
            "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"name": "nginx-lsr", "labels": {**labels, **LSR}, "annotations": notes},
                "spec": {"schedulerName": "koord-scheduler", "priorityClassName": "koord-prod", "containers": [
                    {"name": "nginx", "image": "nginx", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}}]}}}}


def curl_image(name, **amounts):
    """The pod of its guides to devices."""
    sizes = {"cpu": "40m", "memory": "40Mi", **amounts}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default",
                                                            "labels": {"koordinator.sh/gpu-isolation-provider": "hami-core"}},
            "spec": {"schedulerName": "koord-scheduler", "restartPolicy": "Always", "containers": [
                {"name": "curlimage", "image": "busybox", "command": ["sleep", "365d"], "imagePullPolicy": "IfNotPresent",
                 "resources": {"limits": sizes, "requests": sizes}}]}}


def koordinator_manifests(case):
    """As its documentation has them, unchanged: for its scheduler, of its priority class."""
    code, answer = case.cluster.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "koord-prod"}, "value": 9000})
    assert code == 201, answer
    for policy, cores in (("FullPCPUs", 1), ("SpreadByPCPUs", 2)):
        case.make(nginx(policy))

        def bound(policy=policy):
            pods = [p for p in case.cluster.items(PODS) if policy in p["metadata"]["annotations"].get(
                "scheduling.koordinator.sh/resource-spec", "") and p["spec"].get("nodeName")]
            return pods if len(pods) == 3 else None
        pods = wait_for(f"3 pods are bound by {policy}", bound)
        sets = [ids(json.loads(p["metadata"]["annotations"][CORES])["cpuset"]) for p in pods]
        assert len(set.union(*sets)) == 6, sets
        assert all(len({cpu % 8 for cpu in cpus}) == cores for cpus in sets), (policy, sets)
    case.cluster.kubectl("delete", "deployment", "nginx-lsr", "--wait=true")
    share = {"koordinator.sh/gpu.shared": 1, "koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50}
    case.make(curl_image("share", **share), curl_image("whole", **{GPU: "100"}))
    assert list(case.gpus("share").values()) == [50]
    assert list(case.gpus("whole").values()) == [100]
    assert case.gpus("share").keys() != case.gpus("whole").keys()
    case.cluster.clear(PODS)
    case.make(curl_image("vendor", **{"nvidia.com/gpu": "1"}),
              curl_image("memory", **{"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Mi"}))
    assert list(case.gpus("vendor").values()) == [100]
    assert case.gpus("vendor").keys() != case.gpus("memory").keys()


CASES = [four_cores, six_of_four, twos, threes, one_gpu, halves, sixty_and_fifty, koordinator_manifests]


def cores_and_devices(stage):
    """The seed's seven cases of cores and devices, and Koordinator's manifests"""
    failed = []
    with stage.cluster() as cluster:
        install(cluster)
        scheduler = start(cluster, flags=["--scheduler-name", "berth", "--scheduler-name", "koord-scheduler",
                                          "--metrics-bind-address", "0"])
        controllers = start(cluster, "controllers")
        cluster.nodes(1, "cpu=16,memory=32Gi,pods=110,nvidia.com/gpu=2")
        cluster.apply(*machine("node-0"))
        for case in CASES:
            try:
                case(Parts(cluster))
            except (AssertionError, KeyError) as trouble:
                failed.append(f"{case.__name__}: {trouble!r}")
                stage.say(failed[-1])
            cluster.clear()
        assert scheduler.alive() and controllers.alive(), "Berth ended"
        assert not failed, f"{len(failed)} of {len(CASES)} cases failed"
        stage.say(f"{len(CASES)} cases")


TESTS = [cores_and_devices]
