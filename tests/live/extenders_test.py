#!/usr/bin/env python3
"""Extenders over HTTP: filter, prioritize, bind and preempt, by names and by whole objects; too large and too slow
replies are refused."""
import http.server
import json
import os
import sys
import tempfile
import threading

from cluster import Cluster, expect, pod

asked = []
released = threading.Event()


class Extender(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        args = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.rsplit("/", 1)[1]
        asked.append((self.path, args))
        name = args.get("PodName") or args["Pod"]["metadata"]["name"]
        if name == "slow":
            released.wait(30)
        body = json.dumps(getattr(self, verb)(args)).encode()
        if name == "huge":
            body = b'{"NodeNames":["' + b"x" * (2 << 20) + b'"]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    # All but the first, if there are others.
    def filter(self, args):
        names = args["NodeNames"]
        if len(names) == 1:
            return {"NodeNames": names}
        return {"NodeNames": names[1:], "FailedNodes": {names[0]: "is the first"}}

    def prioritize(self, args):
        return [{"Host": node["metadata"]["name"], "Score": 10 if node["metadata"]["name"] == "node-2" else 0}
                for node in args["Nodes"]["items"]]

    def bind(self, args):
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": args["PodName"], "uid": args["PodUID"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": args["Node"]}}
        cluster.run("create", "--raw", f"/api/v1/namespaces/{args['PodNamespace']}/pods/{args['PodName']}/binding", "-f",
                    "-", stdin=json.dumps(body))
        return {"Error": ""}

    def preempt(self, args):
        return {"NodeNameToMetaVictims": args["NodeNameToMetaVictims"]}


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: "http://127.0.0.1:PORT/names", filterVerb: filter, preemptVerb: preempt, bindVerb: bind, nodeCacheCapable: true, httpTimeout: 1s}
- {urlPrefix: "http://127.0.0.1:PORT/objects", prioritizeVerb: prioritize, weight: 5}
"""

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Extender)
threading.Thread(target=server.serve_forever, daemon=True).start()
with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as config:
    config.write(CONFIG.replace("PORT", str(server.server_port)))


def condition(name):
    cluster.wait("pod/" + name, "condition=PodScheduled=False")
    return [c for c in cluster.get("pod", name)["status"]["conditions"] if c["type"] == "PodScheduled"][0]


with Cluster(sys.argv[1], sys.argv[2], "--nodes", "3", "--scheduler-config", config.name) as cluster:
    cluster.apply(pod("web", 1))
    cluster.wait("pod/web", "condition=Ready")
    expect("where it went", cluster.get("pod", "web")["spec"]["nodeName"], "node-2")
    expect("what was asked", [path for path, _ in asked], ["/names/filter", "/objects/prioritize", "/names/bind"])
    expect("names", asked[0][1]["NodeNames"], ["node-0", "node-1", "node-2"])
    expect("objects", [node["status"]["allocatable"]["cpu"] for node in asked[1][1]["Nodes"]["items"]], ["4", "4"])
    expect("the pod", asked[1][1]["Pod"]["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1")

    cluster.apply(pod("huge", 1))
    said = condition("huge")
    expect("too large", (said["reason"], "larger than 1048576 bytes" in said["message"]), ("SchedulerError", True))
    cluster.apply(pod("slow", 1))
    said = condition("slow")
    expect("too slow", (said["reason"], said["message"].startswith("extender http://127.0.0.1:")), ("SchedulerError", True))
    released.set()
    cluster.run("delete", "pod", "huge", "slow", "--grace-period=0", "--force")

    for name in ("low-1", "low-2"):
        cluster.apply(pod(name, 4))
        cluster.wait("pod/" + name, "condition=Ready")
    cluster.apply("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: large}\nvalue: 1000\n")
    cluster.apply(pod("urgent", 4, "priorityClassName: large"))
    cluster.wait("pod/urgent", "condition=Ready", 60)
    expect("preempt was asked", "/names/preempt" in [path for path, _ in asked], True)
os.unlink(config.name)
server.shutdown()
print("extenders: passed")
