#!/usr/bin/env python3
"""costs_test.py BERTH [hellos|requests|readers|poison ...]: what cheap requests cost others: CPU of a TLS hello, /livez beside patches and faults that repeat, memory of slow
readers of a large list, and how long a plain pod waits beside these and beside pods that are dear to decide about."""
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

from server import Server, expect, failed
from waits import PODS, Others, OwnTime, PlainPods, percentiles, pod

MAPS = "/api/v1/namespaces/default/configmaps"
POISON, CONSTRAINTS, NODES, PLAIN, BLOCK, MOST_ROUNDS = 100, 1000, 50, 200, 40, 9
READERS, LARGE = 20, 40
OWN_REQUEST = 10  # ms: a change of a poison pod is a request of 90 KB, and others' requests are behind it on the same threads


def told(what, *numbers):
    print(what % numbers, flush=True)


def line_to(server):
    return http.client.HTTPSConnection("localhost", server.port, timeout=120, context=server.tls)


def ask(line, method, path, body=None, kind="application/json"):
    line.request(method, path, body, {"Content-Type": kind})
    answer = line.getresponse()
    return answer.status, answer.read(), answer


def cpu_ms(server):
    with open("/proc/%d/stat" % server.process.pid) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 10


def hello(server, group):
    """Whether a client that offers this group alone gets in, and the CPU of ten such hellos."""
    before = cpu_ms(server)
    for _ in range(10):
        done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % server.port, "-groups", group], input=b"",
                              capture_output=True, timeout=30)
    return done.returncode == 0, (cpu_ms(server) - before) / 10


def hellos(berth):
    server = Server(berth)
    dear, dear_cost = hello(server, "ffdhe8192")
    cheap, cheap_cost = hello(server, "X25519")
    told("a TLS hello: ffdhe8192 %s, %.1f ms of CPU; X25519 %s, %.1f ms", "served" if dear else "refused", dear_cost,
         "served" if cheap else "refused", cheap_cost)
    expect("dear groups are refused, cheap ones served", cheap and not dear)
    server.stop()


def moves(server):
    data = {"k%d" % i: "v" for i in range(60_000)}
    server.ask("POST", MAPS, {"metadata": {"name": "moved"}, "data": data})
    there, back = {"op": "move", "from": "/data", "path": "/x"}, {"op": "move", "from": "/x", "path": "/data"}
    return MAPS + "/moved", json.dumps([there, back] * 500), "application/json-patch+json"


def merges(server):
    names = ["example.com/n%d" % i for i in range(1500)]
    server.ask("POST", MAPS, {"metadata": {"name": "merged", "finalizers": names}})
    change = {"metadata": {"finalizers": ["example.com/m%d" % i for i in range(1500)], "$deleteFromPrimitiveList/finalizers": names,
                           "annotations": {"turn": "1"}}}
    return MAPS + "/merged?dryRun=All", json.dumps(change), "application/strategic-merge-patch+json"


def bad_labels(server):
    server.ask("POST", MAPS, {"metadata": {"name": "labelled"}})
    labels = {"-bad-%d" % i: "-" for i in range(60_000)}
    return MAPS + "/labelled", json.dumps({"metadata": {"labels": labels}}), "application/merge-patch+json"


def unknown_fields(server):
    server.ask("POST", MAPS, {"metadata": {"name": "odd"}})
    return MAPS + "/odd", json.dumps({"unknown%d" % i: 1 for i in range(60_000)}), "application/merge-patch+json"


def beside_requests(berth, name, prepare):
    """/livez and a plain pod while four clients repeat one request."""
    server = Server(berth, "--nodes", "20", command="up")
    path, body, kind = prepare(server)
    others = Others(server)
    stop, took, sizes = threading.Event(), [], []

    def repeat():
        line = line_to(server)
        while not stop.is_set():
            begin = time.monotonic()
            http.client._MAXHEADERS = 100_000
            _, text, answer = ask(line, "PATCH", path, body, kind)
            took.append((time.monotonic() - begin) * 1000)
            sizes.append(len(text) + sum(len(k) + len(v) for k, v in answer.getheaders()))
        line.close()

    clients = [threading.Thread(target=repeat) for _ in range(4)]
    for client in clients:
        client.start()
    while not took and any(client.is_alive() for client in clients):
        time.sleep(0.01)
    beside = others.told(30)
    stop.set()
    for client in clients:
        client.join()
    told("%-28s %4d KiB sent, %6d KiB answered, p50 %.0f ms; %s", name, len(body) >> 10, max(sizes) >> 10, percentiles(took)[0], beside)
    if path != MAPS + "/moved":
        expect("%s: the answer is small" % name, max(sizes) < 256 << 10)
    server.stop()


def slow_readers(berth):
    server = Server(berth, "--nodes", "20", command="up")
    for i in range(LARGE):
        server.ask("POST", MAPS, {"metadata": {"name": "m%d" % i}, "data": {"v": "x" * (1 << 20)}})
    others, before = Others(server), server.memory_kb()
    lines = []
    for _ in range(READERS):
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.connect(("127.0.0.1", server.port))
        line = server.tls.wrap_socket(plain, server_hostname="127.0.0.1")
        line.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % MAPS).encode())
        line.recv(1)
        lines.append(line)
    grown = (server.memory_kb() - before) >> 10
    told("%d slow readers of a list of %d MiB hold %d MiB; %s", READERS, LARGE, grown, others.told())
    expect("slow readers share what they read: %d MiB" % grown, grown < 4 * READERS)
    line = line_to(server)
    status, text, _ = ask(line, "GET", MAPS)
    expect("another one reads the list", status == 200 and len(json.loads(text)["items"]) >= LARGE)
    for line in lines:
        line.close()
    server.stop()


class Beside(OwnTime):
    """On a machine that others keep busy more of somebody else's requests come within a wait: what each but one of them may take is
    taken off it."""

    answered = 0

    def begin(self):
        self.before = self.answered
        super().begin()

    def ms(self):
        passed = super().ms()
        return passed - OWN_REQUEST * max(0, self.answered - self.before - 1)


class Cluster:
    """A server with nodes, and plain pods."""

    def __init__(self, berth):
        self.server = Server(berth, command="up")
        for i in range(NODES):
            node = {"metadata": {"name": "n%d" % i, "labels": {"kubernetes.io/hostname": "n%d" % i}},
                    "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}}}
            self.server.ask("POST", "/api/v1/nodes", node)
        self.pods, self.own_time = PlainPods(self.server), Beside(self.server)

    def waits(self, count):
        return self.pods.waits(count, self.own_time)

    def stop(self):
        self.pods.close()
        self.server.stop()


class Changes:
    """Labels of the poison pods change twenty times a second, until it ends."""

    def __init__(self, cluster):
        self.server, self.own_time, self.ended = cluster.server, cluster.own_time, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        line, turn, due = line_to(self.server), 0, time.monotonic()
        while not self.ended.is_set():
            turn += 1
            body = json.dumps({"metadata": {"labels": {"turn": str(turn)}}})
            ask(line, "PATCH", "%s/poison%d" % (PODS, turn % POISON), body, "application/merge-patch+json")
            self.own_time.answered += 1
            due += 0.05
            time.sleep(max(0, due - time.monotonic()))

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def poison(berth, name, spec_of):
    """Two clusters in turns, one of them poisoned, each by its own time, so that what else runs on the machine counts for neither. As
    often as it takes to be sure."""
    plain, poisoned = Cluster(berth), Cluster(berth)
    for cluster in (plain, poisoned):
        cluster.waits(2 * NODES)  # somebody is on every node, so that who shuns everybody fits nowhere
    for i in range(POISON):
        code, text = poisoned.server.ask("POST", PODS, pod("poison%d" % i, **spec_of(i)))
        expect("poison is let in: %s" % text, code == 201)
    ratios, beyond = [], []
    while len(ratios) < 3 or (len(ratios) < MOST_ROUNDS and percentiles(beyond)[0] > OWN_REQUEST):
        alone, beside = [], []
        for _ in range(PLAIN // BLOCK):
            poisoned.server.process.send_signal(signal.SIGSTOP)
            alone += plain.waits(BLOCK)
            poisoned.server.process.send_signal(signal.SIGCONT)
            with Changes(poisoned):
                beside += poisoned.waits(BLOCK)
        ratios.append(percentiles(beside)[1] / percentiles(alone)[1])
        beyond.append(percentiles(beside)[1] - 2 * percentiles(alone)[1])
        told("%-44s a plain pod waits, ms of the server's own: alone p50 %.1f p99 %.1f, beside them p50 %.1f p99 %.1f", name, *percentiles(alone),
             *percentiles(beside))
    told("%-44s the p99 is %.2f times as long, the median of %d", name, percentiles(ratios)[0], len(ratios))
    expect("%s: others wait %.1f times as long" % (name, percentiles(ratios)[0]), percentiles(beyond)[0] <= OWN_REQUEST)
    plain.stop()
    poisoned.stop()


def absent_keys(i):
    return {"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "k%d-%d" % (i, j), "whenUnsatisfiable": "DoNotSchedule",
         "labelSelector": {"matchLabels": {"a": "b"}}} for j in range(CONSTRAINTS)]}


def terms(i):
    return {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"n%d" % i: "v%d" % j}}} for j in range(CONSTRAINTS)]}


def crowded_terms(i):
    return {"affinity": {"podAffinity": terms(i)}}


def shunning_terms(i):
    """They shun who is on every node; that is seen last."""
    all_of = terms(i)
    everybody = {"matchExpressions": [{"key": "turn", "operator": "Exists"}]}
    all_of["requiredDuringSchedulingIgnoredDuringExecution"].append({"topologyKey": "kubernetes.io/hostname", "labelSelector": everybody})
    return {"affinity": {"podAntiAffinity": all_of}}


def poisons(berth):
    poison(berth, "%d pods, %d spread constraints each:" % (POISON, CONSTRAINTS), absent_keys)
    poison(berth, "%d pods, %d affinity terms each:" % (POISON, CONSTRAINTS), crowded_terms)
    poison(berth, "%d pods, %d anti-affinity terms each:" % (POISON, CONSTRAINTS), shunning_terms)


def requests(berth):
    beside_requests(berth, "JSON patch of 1,000 moves", moves)
    beside_requests(berth, "strategic merge patch", merges)
    beside_requests(berth, "60,000 bad labels", bad_labels)
    beside_requests(berth, "60,000 unknown fields", unknown_fields)


def main():
    parts = {"hellos": hellos, "requests": requests, "readers": slow_readers, "poison": poisons}
    for name, part in parts.items():
        if len(sys.argv) < 3 or name in sys.argv[2:]:
            part(sys.argv[1])
    return 1 if failed else 0


sys.exit(main())
