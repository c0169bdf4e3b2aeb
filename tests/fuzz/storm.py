#!/usr/bin/env python3
"""storm.py BERTH STORM COUNT [SEED [AT_ONCE]]: so many hostile requests over the wire to `berth up` on loopback, a third of them with an
administrator's token, from so many clients at once (seeds SEED, SEED + 1, ...), and a tenth as many to the health port of a scheduler and of controllers attached to it. Nobody ends, nothing
is a 5xx, and memory grows by 64 MiB at most."""
import os
import random
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from server import Server  # noqa: E402

MOST_KB = 64 << 10


class Attached:
    """A component with its health port."""

    def __init__(self, server, component):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([server.berth, component, "--kubeconfig", server.dir + "/kubeconfig",
                                         "--metrics-bind-address", "127.0.0.1:%d" % self.port])
        end = time.monotonic() + 20
        while socket.socket().connect_ex(("127.0.0.1", self.port)) != 0:
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("FAILED: %s does not listen" % component)
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        return self.process.wait(20)


def main():
    berth, storm, count = sys.argv[1:4]
    seed = sys.argv[4] if len(sys.argv) > 4 else os.environ.get("SEED", str(random.randrange(1 << 32)))
    at_once = int(sys.argv[5]) if len(sys.argv) > 5 else 1
    print("SEED=" + seed, flush=True)
    server = Server(berth, "--plain-http", command="up")  # the time goes into requests and not into handshakes
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
    for component in ("scheduler", "controllers"):
        attached = Attached(server, component)
        failed |= run(attached.port, int(count) // 10, int(seed)) | attached.stop()
    return failed | server.stop()


sys.exit(main())
