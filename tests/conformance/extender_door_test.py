#!/usr/bin/env python3
"""extender_door_test.py BERTH: who may ask the arbitrator's port, and what a question may cost."""
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time

from server import Server

WORD = "k3yForSchedulers"
MOST_GROWN = 160 << 10  # KiB; a question may have 16 MiB


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def pod(uid, ns="default", **more):
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1m", **more}}}]}
    return {"Pod": {"metadata": {"name": "p-" + uid, "namespace": ns, "uid": uid}, "spec": spec}, "NodeNames": ["node-0"]}


class Arbitrator:
    def __init__(self, server):
        self.port = free_port()
        word = server.dir + "/word"
        with open(os.open(word, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(WORD + "\n")
        self.process = subprocess.Popen([server.berth, "arbitrator", "--kubeconfig", server.dir + "/kubeconfig", "--metrics-bind-address",
                                         "0", "--extender", "127.0.0.1:%d" % self.port, "--extender-secret-file", word])

    def ask(self, path, question, **headers):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            body = question if isinstance(question, (bytes, str)) else json.dumps(question)
            line.request("POST", path, body, {"Content-Type": "application/json", **headers})
            answer = line.getresponse()
            return answer.status, answer.read()
        except ConnectionRefusedError:
            return 0, b""
        finally:
            line.close()

    def memory_kb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit("FAILED: %s: %s instead of %s" % (what, got, wanted))


def main():
    server = Server(sys.argv[1], "--nodes", "1", command="up")
    arbitrator = Arbitrator(server)
    known = "/%s/filter" % WORD
    try:
        end = time.monotonic() + 60
        while arbitrator.ask(known, pod("first"))[0] != 200:
            if time.monotonic() > end or arbitrator.process.poll() is not None:
                raise SystemExit("FAILED: nobody is answered")
            time.sleep(0.05)
        for path in ("/filter", "/x/filter", "/%s" % WORD, known[:-1], "/", "//"):
            expect("who asks " + path, arbitrator.ask(path, pod("a"))[0], 404)
        expect("a page in a browser", arbitrator.ask(known, pod("a"), Origin="https://evil.example")[0], 403)
        before = arbitrator.memory_kb()
        hostile = {"depth": "[" * 10_000_000, "nothing": "", "no JSON": b"\xff" * 1000, "a million nodes": {**pod("b"), "NodeNames": ["n"] * 1_000_000},
                   "a number": "1e999", "no pod": {}}
        for what, question in hostile.items():
            for verb in ("filter", "preempt"):
                code, said = arbitrator.ask("/%s/%s" % (WORD, verb), question)
                if code not in (200, 400) or len(said) > 1 << 20:
                    raise SystemExit("FAILED: %s: %s with %d bytes" % (what, code, len(said)))
        expect("more than a question may be", arbitrator.ask(known, b" " * (17 << 20))[0], 413)
        for i in range(500):
            arbitrator.ask(known, pod("new-%d" % i, ns="ns-%d" % i))
        names = {"x.io/r%d" % i: "1" for i in range(60000)}
        expect("names that nobody has", arbitrator.ask(known, pod("names", **names))[0], 400)
        expect("who asks afterwards", arbitrator.ask(known, pod("last", ns="kube-system"))[0], 200)
        grown = arbitrator.memory_kb() - before
        print("memory at most %+d MiB" % (grown >> 10))
        if grown > MOST_GROWN:
            raise SystemExit("FAILED: memory grew by %d MiB" % (grown >> 10))
        arbitrator.process.terminate()
        expect("SIGTERM", arbitrator.process.wait(20), 0)
    finally:
        arbitrator.process.kill()
        code = server.stop()
    expect("the server's end", code, 0)
    print("extender door: passed")


main()
