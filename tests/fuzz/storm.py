#!/usr/bin/env python3
"""storm.py BERTH STORM COUNT [SEED [AT_ONCE]]: so many hostile requests over the wire to `berth up` on loopback, a third of them with an
administrator's token, from so many clients at once (seeds SEED, SEED + 1, ...), and a tenth as many to each other door: the health ports of a scheduler, of controllers,
of an arbitrator, of an agent and of a scheduler of machines that are attached to it, the arbitrator's extender port, and where a provider of machines speaks gRPC. Nobody
ends, nothing is a 5xx, and memory grows by 64 MiB at most."""
import os
import random
import re
import socket
import subprocess
import sys
import time

for folder in ("conformance", "live"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
from agent_test_parts import Tree  # noqa: E402
from frames import Line  # noqa: E402
from server import Server  # noqa: E402

MOST_KB = 64 << 10


HEALTH = ["--metrics-bind-address"]
# What is started, and the flag that says where it listens.
DOORS = [(["scheduler"], HEALTH), (["controllers"], HEALTH), (["arbitrator"], HEALTH), (["arbitrator", "--metrics-bind-address", "0"], ["--extender"]),
         (["fleet", "scheduler"], HEALTH), (["agent", "--node", "node-0", "--any-files", "--topology", "synthetic:socket:1 numa:1 core:4 pu:1"], HEALTH),
         (["fleet", "provider", "--capacity", "cpu=4"], ["--listen"])]


class Door:
    """A process beside the server, and one of its ports."""

    def __init__(self, server, words, flag):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.what = " ".join(words[:2] + flag)
        self.provides = "provider" in words
        own = ["--data-dir", server.dir + "/provider"] if self.provides else ["--kubeconfig", server.dir + "/kubeconfig"]
        if "agent" in words:
            Tree(server.dir + "/cgroup")
            own += ["--cgroup-root", server.dir + "/cgroup"]
        self.process = subprocess.Popen([server.berth, *words, *own, *flag, "127.0.0.1:%d" % self.port], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while socket.socket().connect_ex(("127.0.0.1", self.port)) != 0:
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("FAILED: %s does not listen" % self.what)
            time.sleep(0.05)

    def memory_kb(self):
        with open("/proc/%d/status" % self.process.pid) as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def answers(self):
        """A provider, in gRPC: what the storm sends is nothing to it."""
        if self.provides:
            with Line(self.port) as line:
                assert b"berth" in line.call()[0]

    def stop(self):
        self.process.terminate()
        return self.process.wait(20)


def main():
    berth, storm, count = sys.argv[1:4]
    seed = sys.argv[4] if len(sys.argv) > 4 else os.environ.get("SEED", str(random.randrange(1 << 32)))
    at_once = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    print("SEED=" + seed, flush=True)
    server = Server(berth, "--plain-http", "--shares", "--fleet", "a: {cpu: 4}", command="up")  # the time goes into requests and not into handshakes
    with open(server.dir + "/pki/admin.token") as file:
        token = file.read().strip()

    def run(port, number, from_seed):
        clients = [subprocess.Popen([storm, str(port), str(number // at_once), str(from_seed + i), "Bearer " + token])
                   for i in range(at_once)]
        return max([client.wait() for client in clients])

    # What every server needs once (tables, threads' heaps) is not growth.
    failed = run(server.port, 2000, int(seed) + 1000)
    before = server.memory_kb()
    failed |= run(server.port, int(count), int(seed))
    if server.process.poll() is not None:
        print("FAILED: the server ended with %d" % server.process.returncode)
        return 1
    grown = server.memory_kb() - before
    print("%s requests, memory %d -> %d KiB" % (count, before, before + grown))
    if grown > MOST_KB * int(os.environ.get("MEMORY_FACTOR", "1")):
        print("FAILED: memory grew by %d KiB" % grown)
        failed = 1
    for words, flag in DOORS:
        door = Door(server, words, flag)
        failed |= run(door.port, max(500, int(count) // 1000), int(seed) + 2000)
        before = door.memory_kb()
        failed |= run(door.port, int(count) // 10, int(seed))
        door.answers()
        print("%s: memory %d -> %d KiB" % (door.what, before, door.memory_kb()), flush=True)
        if door.process.poll() is not None or door.memory_kb() - before > MOST_KB * int(os.environ.get("MEMORY_FACTOR", "1")):
            print("FAILED: %s ended, or its memory grew too much" % door.what)
            failed = 1
        failed |= door.stop()
    return failed | server.stop()


sys.exit(main())
