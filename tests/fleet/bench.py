#!/usr/bin/env python3
"""bench.py BERTH [--zones 10 --hosts 20 --machines 400 --at-once 20]: a tree of real processes over gRPC, a root, zones, and hosts
in them; how long Machines take from created to Running, and how many get there in a second.

Each part is a process of its own, as it would be on machines of their own; the servers of the layers keep objects in memory."""
import argparse
import json
import threading
import time

from pools import Tree, until


def read_arguments():
    parser = argparse.ArgumentParser(description="machines through a tree of real processes")
    parser.add_argument("berth")
    parser.add_argument("--zones", type=int, default=10)
    parser.add_argument("--hosts", type=int, default=20, help="of each zone")
    parser.add_argument("--machines", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=20, help="machines under way at a time")
    parser.add_argument("--cpu", type=int, default=16, help="of each host")
    return parser.parse_args()


def layers(arguments):
    return {f"z{zone}": {f"z{zone}h{host}": {"cpu": arguments.cpu, "memory": "64Gi"} for host in range(arguments.hosts)}
            for zone in range(arguments.zones)}


def follow(tree, seen, stop):
    """When each Machine was first seen Running; by asking, every few milliseconds."""
    while not stop.is_set():
        now = time.monotonic()
        for name in tree.running():
            seen.setdefault(name, now)
        time.sleep(0.005)


def main():
    arguments = read_arguments()
    spec = layers(arguments)
    leaves = arguments.zones * arguments.hosts
    began = time.monotonic()
    with Tree(arguments.berth, spec) as tree:
        print(f"{leaves} leaves, {len(tree.layers)} servers, {len(tree.parts)} other processes: ready after "
              f"{time.monotonic() - began:.0f} s", flush=True)
        seen, made, stop = {}, {}, threading.Event()
        tree.machine("warm", 1)
        tree.lands("warm", 120)
        follower = threading.Thread(target=follow, args=(tree, seen, stop))
        follower.start()
        began = time.monotonic()
        for i in range(arguments.machines):
            until("others are there", lambda: len(made) - len(set(made) & set(seen)) < arguments.at_once, 300)
            made[f"m{i}"] = time.monotonic()
            tree.machine(f"m{i}", 1)
        until("all are there", lambda: set(made) <= set(seen), 300)
        took = max(seen[name] for name in made) - began
        stop.set()
        follower.join()
        tree.judge()
        waited = sorted(seen[name] - made[name] for name in made)
        out = {"leaves": leaves, "machines": arguments.machines, "at_once": arguments.at_once,
               "machines_per_second": round(arguments.machines / took, 1),
               "p50_ms": round(waited[len(waited) // 2] * 1000), "p99_ms": round(waited[len(waited) * 99 // 100] * 1000)}
        print(json.dumps(out))


if __name__ == "__main__":
    main()
