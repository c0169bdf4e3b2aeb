#!/usr/bin/env python3
"""bench.py BERTH [--zones 10 --hosts 20 --machines 200 --rate 5 | --at-once 20]: a tree of real processes over gRPC, a root, zones,
and hosts in them; how long Machines take from created to Running (then their Reservation is Bound), and how many get there in a
second. With --rate they are made at that rate, whatever becomes of them; with --at-once so many are under way at a time.

Each part is a process of its own, as it would be on machines of their own; the servers of the layers keep objects in memory. The
Machines are made through one connection and seen through one watch, so that measuring takes little of the processors."""
import argparse
import http.client
import json
import os
import threading
import time

from pools import COMPUTE, Tree

MACHINES = f"{COMPUTE}/namespaces/default/machines"


def read_arguments():
    parser = argparse.ArgumentParser(description="machines through a tree of real processes")
    parser.add_argument("berth")
    parser.add_argument("--zones", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=20, help="of each zone")
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--rate", type=float, nargs="*", default=[], help="machines made in a second; several: one run after another")
    parser.add_argument("--at-once", type=int, nargs="*", default=[], help="machines under way at a time")
    parser.add_argument("--cpu", type=int, default=32, help="of each host")
    parser.add_argument("--wait", type=int, default=0, help="seconds to wait before the first run, for a look at the processes")
    return parser.parse_args()


def layers(arguments):
    return {f"z{zone}": {f"z{zone}h{host}": {"cpu": arguments.cpu, "memory": "64Gi"} for host in range(arguments.hosts)}
            for zone in range(arguments.zones)}


def processor_seconds(tree):
    """Of all processes of the tree until now."""
    pids = [part.process.pid for part in tree.parts.values()] + [layer.server.process.pid for layer in tree.layers.values()]
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Door:
    """One connection to the root's server."""

    def __init__(self, server):
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=server.tls, timeout=300)

    def make(self, name):
        body = {"apiVersion": "compute.ironcore.dev/v1alpha1", "kind": "Machine", "metadata": {"name": name},
                "spec": {"machineClassRef": {"name": "c1"}}}
        self.connection.request("POST", MACHINES, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        answer.read()
        if answer.status != 201:
            raise AssertionError(f"making {name}: {answer.status}")

    def watch(self):
        self.connection.request("GET", f"{MACHINES}?watch=1&timeoutSeconds=280")
        answer = self.connection.getresponse()
        while line := answer.readline():
            yield json.loads(line)


class Seen:
    """When each Machine was first seen Running."""

    def __init__(self, server):
        self.at, self.changed = {}, threading.Condition()
        threading.Thread(target=self.follow, args=(server,), daemon=True).start()

    def follow(self, server):
        for event in Door(server).watch():
            machine = event["object"]
            if machine.get("status", {}).get("state") == "Running":
                with self.changed:
                    self.at.setdefault(machine["metadata"]["name"], time.monotonic())
                    self.changed.notify_all()

    def wait(self, what, check):
        with self.changed:
            if not self.changed.wait_for(check, 120):
                raise AssertionError(f"{what}: not within 120 s")


def run(tree, seen, door, prefix, arguments, rate, at_once):
    made = {}
    began, used = time.monotonic(), processor_seconds(tree)
    for i in range(arguments.machines):
        name = f"{prefix}{i}"
        if rate:
            time.sleep(max(0, began + i / rate - time.monotonic()))
        else:
            seen.wait("others are there", lambda: sum(1 for each in made if each not in seen.at) < at_once)
        made[name] = time.monotonic()
        door.make(name)
    seen.wait("all are there", lambda: all(name in seen.at for name in made))
    took = max(seen.at[name] for name in made) - began
    used = processor_seconds(tree) - used
    waited = sorted(seen.at[name] - made[name] for name in made)
    out = {"leaves": len(tree.leaves), "machines": len(made), **({"rate": rate} if rate else {"at_once": at_once}),
           "machines_per_second": round(len(made) / took, 1), "p50_ms": round(waited[len(waited) // 2] * 1000),
           "p99_ms": round(waited[len(waited) * 99 // 100] * 1000), "most_ms": round(waited[-1] * 1000),
           "processor_ms_per_machine": round(used / len(made) * 1000), "load": round(os.getloadavg()[0], 1)}
    print(json.dumps(out), flush=True)


def at_rest(tree, seconds=10):
    """What the processes take while nothing is asked of them."""
    used = processor_seconds(tree)
    time.sleep(seconds)
    print(json.dumps({"at_rest_processor_ms_per_second": round((processor_seconds(tree) - used) / seconds * 1000)}), flush=True)


def main():
    arguments = read_arguments()
    began = time.monotonic()
    with Tree(arguments.berth, layers(arguments)) as tree:
        print(f"{len(tree.leaves)} leaves, {len(tree.layers)} servers, {len(tree.parts)} other processes: ready after "
              f"{time.monotonic() - began:.0f} s", flush=True)
        tree.machine("warm", 1)
        tree.lands("warm", 120)
        at_rest(tree)
        time.sleep(arguments.wait)
        seen, door = Seen(tree.root.server), Door(tree.root.server)
        for i, rate in enumerate(arguments.rate):
            run(tree, seen, door, f"r{i}-", arguments, rate, None)
        for i, at_once in enumerate(arguments.at_once if arguments.rate else arguments.at_once or [20]):
            run(tree, seen, door, f"m{i}-", arguments, None, at_once)
        tree.judge()


if __name__ == "__main__":
    main()
