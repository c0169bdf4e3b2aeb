#!/usr/bin/env python3
"""Two arbitrators attached to a server: one leads, the other says so; the leader is killed while it takes back, again and again.
Nobody goes who need not. BERTH_KILLS says how often."""
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from cluster import Cluster, expect, pod

LEASE = ("--leader-elect-lease-duration", "6s", "--leader-elect-renew-deadline", "5s", "--leader-elect-retry-period", "500ms")
KILLS = int(os.environ.get("BERTH_KILLS", "3"))


class Arbitrator:
    """Attached, with a port for schedulers that the system chose."""

    def __init__(self, berth, cluster, *flags):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [berth, "arbitrator", "--kubeconfig", cluster.env["KUBECONFIG"], "--metrics-bind-address", "0", "--extender", "127.0.0.1:0",
             "--grace", "1s", *LEASE, *flags], stderr=self.log)
        until("its port is open", lambda: self.said(r"Schedulers may ask.*port=(\d+)"))
        self.port = int(self.said(r"Schedulers may ask.*port=(\d+)"))

    def said(self, pattern):
        self.log.seek(0)
        found = re.search(pattern, self.log.read())
        return found and found.group(1)

    def ask(self, document):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("POST", "/filter", json.dumps(document), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def leads(self):
        return self.ask({"Pod": {"metadata": {"name": "x", "namespace": "kube-system", "uid": "x"}, "spec": {"containers": []}}})[0] == 200

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: not within {seconds} s: {what}")
        time.sleep(0.05)


def staying(cluster, ns):
    return [p for p in cluster.get("pods", "-n", ns)["items"] if p["spec"].get("nodeName") and "deletionTimestamp" not in p["metadata"]]


def test(berth, build):
    with Cluster(berth, build, "--nodes", "1", "--node-cpu", "10") as cluster, contextlib.ExitStack() as all_of_them:
        def another():
            return all_of_them.enter_context(Arbitrator(berth, cluster))

        both = [another(), another()]
        until("one leads", lambda: any(one.leads() for one in both))
        expect("who leads", sorted(one.leads() for one in both), [False, True])
        for ns in ("a", "b"):
            cluster.run("create", "namespace", ns)
            cluster.wait_for_value("consumers", "{.metadata.name}", ns, 30)
        cluster.run("patch", "consumer", "a", "--type=merge", "-p", '{"spec":{"reserved":{"cpu":"4"}}}')
        cluster.run("apply", "-n", "a", "-f", "-", stdin="".join(pod(f"p{i}", 1) for i in range(10)))
        until("a has all", lambda: len(staying(cluster, "a")) == 10)
        cluster.run("apply", "-n", "b", "-f", "-", stdin="".join(pod(f"p{i}", 1) for i in range(10)))
        for i in range(KILLS):
            leader = next(one for one in both if one.leads())
            both.remove(leader)
            leader.kill()
            expect(f"a keeps its guarantee, and what nobody needs, after {i} kills", len(staying(cluster, "a")) >= 7, True)
            both.append(another())
            until("another one leads", lambda: any(one.leads() for one in both))
        until("b has what it is due", lambda: len(staying(cluster, "b")) == 3)
        expect("a", len(staying(cluster, "a")), 7)
        events = cluster.events("Reclaimed")
        expect("nobody was evicted twice", len({e["involvedObject"]["uid"] for e in events}), len(events))
        # What a scheduler asks: of a share that is used up nothing is granted. The leader has seen that it is used up.
        cluster.wait_for_value("allocations/b", "{.status.used.cpu}", "3", 60)
        leader = next(one for one in both if one.leads())
        one_more = cluster.get("pods", "-n", "b")["items"]
        refused = next(p for p in one_more if not p["spec"].get("nodeName"))
        code, said = leader.ask({"Pod": refused, "NodeNames": ["node-0"]})
        expect("the code", code, 200)
        expect("no node", json.loads(said)["NodeNames"], [])
        expect("the reason", "its share of the cluster" in json.loads(said)["FailedAndUnresolvableNodes"]["node-0"], True)
        for one in both:
            one.process.terminate()
        expect("SIGTERM", [one.process.wait(30) for one in both], [0, 0])


test(*sys.argv[1:3])
print("arbitrators: passed")
