"""What kubectl may do with the credentials of a node, in a `berth up` whose simulated nodes go on working.

node_identity_test.py BERTH BUILD_DIR
"""
import json
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from cluster import Cluster  # noqa: E402

MANIFESTS = """
apiVersion: v1
kind: Secret
metadata: {name: %(name)s-secret}
---
apiVersion: v1
kind: Pod
metadata: {name: %(name)s}
spec:
  nodeSelector: {kubernetes.io/hostname: %(node)s}
  containers: [{name: main, image: i, envFrom: [{secretRef: {name: %(name)s-secret}}]}]
"""
RUNNING = b'{"status":{"message":"seen by its node"}}'

with tempfile.TemporaryDirectory(prefix="berth-node-") as place:
    token = subprocess.run([sys.argv[1], "token", "create", "--data-dir", place, "--user", "system:node:node-0", "--groups",
                            "system:nodes"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    with Cluster(sys.argv[1], sys.argv[2], "--nodes", "2", "--in-memory", directory=place) as cluster:
        for name, node in ("mine", "node-0"), ("theirs", "node-1"):
            cluster.apply(MANIFESTS % {"name": name, "node": node})
            cluster.wait("pod/" + name, "jsonpath={.status.phase}=Running")

        url = cluster.run("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")

        def as_node(*words, stdin=None):
            done = subprocess.run(
                [cluster.kubectl, "--kubeconfig", "/dev/null", "--server", url, "--certificate-authority",
                 place + "/pki/ca.crt", "--token", token, *words],
                input=stdin, capture_output=True, text=True, timeout=60, env=cluster.env)
            return done.returncode == 0, done.stdout + done.stderr

        def may(*words, stdin=None):
            done, said = as_node(*words, stdin=stdin)
            if not done:
                sys.exit(f"a node may not {' '.join(words)}: {said}")
            return said

        def may_not(*words, stdin=None):
            done, said = as_node(*words, stdin=stdin)
            if done or "Forbidden" not in said:
                sys.exit(f"a node may {' '.join(words)}: {said}")

        def patch_status(pod):
            """The answer's code; kubectl patches subresources since 1.24 only."""
            request = urllib.request.Request(
                f"{url}/api/v1/namespaces/default/pods/{pod}/status", RUNNING, method="PATCH",
                headers={"Authorization": "Bearer " + token, "Content-Type": "application/merge-patch+json"})
            try:
                with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=place + "/pki/ca.crt"),
                                            timeout=20) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code

        may("get", "node", "node-0")
        listed = json.loads(may("get", "pods", "-A", "--field-selector", "spec.nodeName=node-0", "-o", "json"))
        assert [pod["metadata"]["name"] for pod in listed["items"]] == ["mine"], listed
        may("get", "pod", "mine")
        may("get", "secret", "mine-secret")
        assert (patch_status("mine"), patch_status("theirs")) == (200, 403)
        may("label", "node", "node-0", "example.com/disk=fast")
        for refused in (
                ["get", "secrets", "-A"], ["get", "secrets"], ["get", "secret", "theirs-secret"], ["get", "nodes"],
                ["get", "pods", "-A"], ["get", "pod", "theirs"], ["delete", "pod", "theirs", "--force"],
                ["label", "node", "node-1", "a=b"], ["label", "node", "node-0", "node-role.kubernetes.io/control-plane="],
                ["taint", "node", "node-0", "a=b:NoSchedule"],
                ["annotate", "node", "node-0", 'node.koordinator.sh/reservation={"resources":{"cpu":"1"}}'],
                ["delete", "node", "node-0"], ["create", "namespace", "x"]):
            may_not(*refused)
        may_not("create", "-f", "-", stdin="apiVersion: v1\nkind: Node\nmetadata: {name: node-7}\n")
        may("delete", "pod", "mine", "--wait=false")
        cluster.wait("pod/mine", "delete")
        cluster.run("get", "pod", "theirs")
print("node identity: passed")
