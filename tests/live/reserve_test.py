#!/usr/bin/env python3
"""What a person types: reservations are listed, extended and released; what cannot be meant is refused at once, with what
may have been meant; `berth up` says what of its flags has no effect."""
import json
import re
import subprocess
import sys
import tempfile

from cluster import Cluster, expect, pod

BERTH, BUILD = sys.argv[1:3]


def ran(*words, env=None):
    """The exit code, and what was said."""
    done = subprocess.run([BERTH, *words], capture_output=True, text=True, env=env, timeout=60)
    return done.returncode, (done.stdout + done.stderr).strip()


def refusals(cluster):
    def reserve(*words):
        return ran("reserve", "r", "--owner", "app=web", *words, env=cluster.env)
    expect("a resource that is none", reserve("-r", "cpus=4"),
           (2, 'berth reserve: --resource: there is no resource "cpus": did you mean cpu?'))
    expect("one far from all", reserve("-r", "gpu=1"),
           (2, 'berth reserve: --resource: there is no resource "gpu": did you mean cpu?'))
    expect("another", reserve("-r", "fpga-slots=1"),
           (2, 'berth reserve: --resource: there is no resource "fpga-slots"; resources of your own have a domain, as in example.com/gpu'))
    expect("nothing of it", reserve("-r", "cpu=0"), (2, "berth reserve: --resource cpu: 0 would hold nothing"))
    expect("less than nothing", reserve("-r", "memory=-1Gi"), (2, "berth reserve: --resource memory: -1Gi would hold nothing"))
    cluster.run("patch", "node", "node-0", "--subresource=status", "--type=merge", "-p",
                '{"status":{"capacity":{"nvidia.com/gpu":"2"},"allocatable":{"nvidia.com/gpu":"2"}}}')
    expect("nearly one of a node's", reserve("-r", "nvidia.com/gpus=1"),
           (1, 'berth reserve: --resource: no node has "nvidia.com/gpus", and some have nvidia.com/gpu: did you mean that?'))
    expect("one that may still come", reserve("-r", "example.com/fpga=1", "--dry-run"),
           (0, "reservation/r created (server dry run)"))
    expect("none was made", cluster.names("reservations"), [])


def life(cluster):
    def reserve(*words):
        return ran("reserve", *words, env=cluster.env)
    expect("none", reserve("list"), (0, "there are no reservations"))
    expect("made", reserve("kept", "-r", "cpu=2", "--owner", "app=web", "--reusable", "--ttl", "2h", "--label", "team=a", "--wait")[0], 0)
    expect("called as a command", reserve("create", "list", "-r", "cpu=100", "--owner", "app=none", "--ttl", "0")[0], 0)
    cluster.apply(pod("web", "500m", labels="{app: web}"))
    cluster.wait("pod/web", "condition=Ready")
    cluster.wait("reservation/kept", "jsonpath={.status.allocated.cpu}=500m")

    code, said = reserve("list")
    rows = [line.split() for line in said.splitlines()]
    expect("the columns", (code, rows[0]), (0, ["NAME", "PHASE", "NODE", "RESERVED", "DRAWN", "IDLE", "FOR", "ENDS"]))
    node = cluster.get("reservation", "kept")["status"]["nodeName"]
    expect("what is kept", rows[1][:8], ["kept", "Available", node, "cpu=2", "cpu=500m", "cpu=1500m", "app=web", "in"])
    expect("until when", bool(re.fullmatch(r"1h5\dm", rows[1][8])), True)
    expect("what waits", rows[2], ["list", "Pending", "-", "cpu=100", "-", "-", "app=none", "never"])
    expect("by labels", reserve("list", "-l", "team=a", "-o", "name"), (0, "reservation.scheduling.koordinator.sh/kept"))
    expect("one that is not there", reserve("list", "other")[0], 1)

    code, said = ran("explain", "node", node, "-o", "json", env=cluster.env)
    cpu = json.loads(said)["resources"]["cpu"]
    expect("the node's side of it", (code, cpu), (0, {"allocatable": "4", "keptOutside": "0", "pods": "0", "reserved": "2",
                                                      "drawn": "500m", "idle": "1500m", "free": "2"}))
    code, said = ran("explain", "node", node, env=cluster.env)
    expect("in words", (code, said.splitlines()[0], "default/web   cpu=500m   cpu=500m from kept" in said),
           (0, f"Node {node}: it takes pods", True))
    expect("no such node", ran("explain", "node", "n9", env=cluster.env), (1, 'berth explain: nodes "n9" not found'))

    expect("until when?", reserve("extend", "kept"), (2, "berth reserve extend: until when? Give one of --by, --ttl and --expires"))
    expect("which?", reserve("extend", "--by", "1h"), (2, "berth reserve extend: which? Give names, or --selector with labels"))
    before = cluster.get("reservation", "kept")["metadata"]["creationTimestamp"]
    code, said = reserve("extend", "kept", "--by", "1h")
    expires = cluster.get("reservation", "kept")["spec"]["expires"]
    expect("extended", (code, said.startswith(f"reservation/kept ends at {expires}; it would have ended ")), (0, True))
    expect("by an hour, after two", hours_between(before, expires), 3)
    code, said = reserve("extend", "kept", "--ttl", "1h")
    expect("shorter is no extension", (code, f"ends at {expires}, and would end no later" in said), (1, True))
    expect("for ever", reserve("extend", "-l", "team=a", "--ttl", "0")[0], 0)
    expect("more than for ever", reserve("extend", "kept", "--by", "1h"),
           (1, 'berth reserve extend: reservation "kept" never ends: there is nothing to extend'))

    expect("all of them, by silence", reserve("release"), (2, "berth reserve release: which? Give names, or --selector with labels"))
    said = f"reservation/kept released: cpu=1500m on {node} is for everybody; 1 pod of it goes on"
    expect("tried", reserve("release", "kept", "--dry-run"), (0, said + " (server dry run)"))
    expect("released", reserve("release", "kept", "list"), (0, said + "\nreservation/list released: it held nothing"))
    expect("none is left", cluster.names("reservations"), [])
    expect("its owner stays", cluster.get("pod", "web")["spec"]["nodeName"], node)


def hours_between(first, second):
    def seconds(text):
        return int(subprocess.run(["date", "-d", text, "+%s"], capture_output=True, text=True, check=True).stdout)
    return (seconds(second) - seconds(first)) // 3600


def flags_of_up():
    with tempfile.TemporaryDirectory() as folder:
        def up(*flags):
            return ran("up", "--data-dir", folder + "/data", "--listen", "127.0.0.1:0", *flags)
        code, said = up("--nodes", "-1")
        expect("fewer than none", (code, "--nodes" in said and "-1" in said), (2, True))
        code, said = up("--in-memory", "--controllers=-jobs")
        expect("unknown controller", (code, 'berth up: --controllers: there is no controller "jobs", did you mean job?' in said), (1, True))
        with Cluster(BERTH, BUILD, "--nodes", "5", directory=folder + "/kept"):
            pass
        with open(folder + "/log", "w") as log:
            again = subprocess.Popen([BERTH, "up", "--data-dir", folder + "/kept", "--listen", "127.0.0.1:0", "--nodes", "3"],
                                     stdout=subprocess.PIPE, stderr=log, text=True)
            again.stdout.readline()
            again.terminate()
            expect("it ends", again.wait(30), 0)
        with open(folder + "/log") as log:
            said = log.read()
        expect("fewer than there are", "The store has more nodes than --nodes asks for; none is removed" in said and "asked=3" in said, True)


with Cluster(BERTH, BUILD, "--nodes", "2", "--node-cpu", "4") as berth_up:
    refusals(berth_up)
    life(berth_up)
flags_of_up()
print("reserve: passed")
