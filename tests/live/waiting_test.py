#!/usr/bin/env python3
"""Pre-allocation as its user sees it: what waits says what is missing, and `berth reserve --wait` follows it to its end."""
import subprocess
import sys

from cluster import Cluster, expect, pod


def test(berth, build):
    with Cluster(berth, build, "--nodes", "1", "--node-cpu", "4") as cluster:
        def reserve(name, *flags):
            words = [berth, "reserve", name, "-r", "cpu=3", "--owner", "app=" + name, "--wait", *flags]
            return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=cluster.env)

        def end_of(process):
            said, trouble = process.communicate(timeout=60)
            return process.returncode, said.splitlines(), trouble.strip()

        def told(name):
            return [(event["type"], event["reason"], event["message"]) for event in cluster.get("events", "-A")["items"]
                    if event["involvedObject"]["name"] == name]

        cluster.apply(pod("large", 2) + pod("small", 1))
        for name in ("large", "small"):
            cluster.wait("pod/" + name, "condition=Ready")

        held = reserve("held", "--pre-allocate")
        expect("created", held.stdout.readline(), "reservation/held created\n")
        expect("waits, and says so", held.stdout.readline(), "reservation/held Waiting on node-0\n")
        ready = [c for c in cluster.get("reservation", "held")["status"]["conditions"] if c["type"] == "Ready"]
        why = 'waits for {cpu: "2"} on node node-0'
        expect("why", [(c["status"], c["reason"], c["message"]) for c in ready], [("False", "Waiting", why)])
        cluster.wait("events", "jsonpath={.reason} {.involvedObject.name}=Waiting held")
        expect("its event", ("Normal", "Waiting", why) in told("held"), True)
        cluster.run("delete", "pod", "small", "--now")
        expect("still short, by less", held.stdout.readline(), "reservation/held Waiting on node-0\n")
        cluster.run("delete", "pod", "large", "--now")
        expect("available", end_of(held), (0, ["reservation/held Available on node-0"], ""))
        cluster.wait("events", "jsonpath={.reason} {.involvedObject.name}=Available held")

        code, said, trouble = end_of(reserve("brief", "--ttl", "1s"))
        expect("one that fails", (code, said), (1, ["reservation/brief created", "reservation/brief Failed"]))
        expect("why", trouble, "berth reserve: reservation brief: has failed: ttl 1s has passed")

        lost = reserve("lost")
        expect("created", lost.stdout.readline(), "reservation/lost created\n")
        cluster.wait("reservation/lost", "condition=Scheduled=False")
        cluster.run("delete", "reservation", "lost")
        expect("one that is deleted", end_of(lost), (1, [], "berth reserve: reservation lost: was deleted"))

        code, said, trouble = end_of(reserve("never", "--timeout", "1"))
        expect("one that finds no room", (code, said), (1, ["reservation/never created"]))
        expect("why", trouble, "berth reserve: 1 of 1 are not available after 1 s: 0/1 nodes are available: 1 Insufficient cpu.")


test(*sys.argv[1:3])
print("waiting: passed")
