"""Berth's components on a cluster, as the service accounts of deploy/ have them, and what they did."""
import json

from cluster import PODS, RESERVATIONS
from deploy_tests import install
from processes import wait_for

ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"


def account(cluster, component):
    """A kubeconfig with the rights of deploy/'s service account, and no others."""
    path = cluster.dir / f"berth-{component}.kubeconfig"
    if not path.exists():
        cluster.kubeconfig(f"berth-{component}", f"system:serviceaccount:berth-system:berth-{component}")
    return path


def start(cluster, component="scheduler", name=None, flags=()):
    flags = flags or ["--metrics-bind-address", "0"]
    words = [cluster.berth, component, "--kubeconfig", account(cluster, component), *flags]
    return cluster.run(name or f"berth-{component}", *words)


def start_both(cluster):
    install(cluster)
    return start(cluster, "scheduler"), start(cluster, "controllers")


class Watcher:
    """What tests ask of a cluster where Berth runs."""

    def __init__(self, cluster):
        self.cluster = cluster

    def pod(self, name):
        return self.cluster.get(f"{PODS}/{name}")

    def bound(self, name):
        """The node of a pod, once it has one."""
        return wait_for(f"pod {name} is bound", lambda: self.pod(name)["spec"].get("nodeName"))

    def refused(self, name):
        """Why a pod has no node, once that is said."""
        def why():
            document = self.pod(name)
            assert not document["spec"].get("nodeName"), f"{name} is on {document['spec'].get('nodeName')}"
            for condition in document["status"].get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return condition["message"]
            return None
        return wait_for(f"pod {name} is refused", why)

    def reservation_of(self, name):
        text = self.pod(name)["metadata"].get("annotations", {}).get(ALLOCATED)
        return json.loads(text)["name"] if text else None

    def reservation(self, name):
        return self.cluster.get(f"{RESERVATIONS}/{name}")

    def phase(self, name, wanted):
        """The reservation, once it has the phase."""
        def look():
            document = self.reservation(name)
            return document if document.get("status", {}).get("phase") == wanted else None
        return wait_for(f"reservation {name} is {wanted}", look)


def election(seconds):
    """Flags of a scheduler that stands for election with a short lease."""
    return ["--leader-elect", f"--leader-elect-lease-duration={seconds}s",
            f"--leader-elect-renew-deadline={seconds * 600}ms", f"--leader-elect-retry-period={seconds * 100}ms",
            "--leader-elect-resource-namespace=berth-system", "--metrics-bind-address=0"]


def leader(cluster, component="scheduler"):
    code, lease = cluster.ask("GET", f"/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/berth-{component}")
    return lease["spec"].get("holderIdentity") if code == 200 else None
