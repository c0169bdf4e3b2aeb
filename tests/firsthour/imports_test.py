#!/usr/bin/env python3
"""What `--import` and `--nodes-file` bring and nobody acts on is told at the start, each thing once; and what is said of one
object, by `berth explain`, in the cluster that was imported and in the file, is what `berth whatif` says."""
import json
import os
import subprocess
import sys
import tempfile

from person import Person, expect, expect_in

DUMP = """
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {taints: [{key: gone, effect: NoExecute}]}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "10"}, capacity: {cpu: "2", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {zone: a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}, capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: team}
spec: {hard: {pods: "1"}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: fewer, namespace: team}
spec: {hard: {pods: "0"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: team}
"""
POD = """---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: team%s}
spec: {%scontainers: [{name: main, image: app, command: [sleep], resources: {requests: {cpu: "%s"}}}]}
"""
WORDS = {
    "ResourceQuota team/few and 1 more: resourcequotas: stored, not enforced by this server",
    "Namespace team: stored, not enforced by this server: pod-security.kubernetes.io/enforce",
    "Node n1: without effect here: effect=NoExecute",
    "Pod team/there and 2 more: without effect here: command (nodes are simulated, nothing runs)",
}


def started(berth, place, *flags):
    """What is said while it starts, and the program."""
    process = subprocess.Popen([berth, "up", "--in-memory", "--data-dir", place + "/data", "--listen", "127.0.0.1:0", *flags],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    process.terminate()
    said = process.stderr.read()
    process.wait(30)
    return line, said


def what_nobody_acts_on_is_told_once(berth, place, dump):
    line, said = started(berth, place, "--nodes", "0", "--import", dump)
    expect_in("the start", line, "berth: ready")
    told = [line.split(f"berth up: warning: {dump}: ", 1)[1] for line in said.splitlines() if line.startswith("berth up: warning: ")]
    expect(f"sentences in {told}", len(told), len(WORDS))
    for words in WORDS:
        expect(f"{words} in {told}", len([sentence for sentence in told if sentence.startswith(words)]), 1)
    _, said = started(berth, place, "--nodes-file", nodes_alone(place))
    expect_in("nodes of a file", said, "Node n1: without effect here: effect=NoExecute")
    line, said = started(berth, place, "--import", dump, "--strict-policies")
    expect("with --strict-policies", line, "")
    expect_in("with --strict-policies", said, "--strict-policies refuses")


def nodes_alone(place):
    path = os.path.join(place, "nodes.yaml")
    with open(path, "w") as file:
        file.write("---".join(DUMP.split("---")[:2]))
    return path


def asked(berth, *words, env=None):
    done = subprocess.run([berth, *words], capture_output=True, text=True, timeout=60, env=env)
    expect(f"berth {' '.join(words)}: {done.stderr}", done.returncode, 0)
    return done.stdout


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
"""


def explain_says_what_whatif_says(berth, place, dump):
    """Of two that are pending only the first fits; whoever is asked about the second alone says so, too. So it is with
    every way to put the question."""
    config = os.path.join(place, "config.yaml")
    with open(config, "w") as file:
        file.write(CONFIG)
    for flags, places in (([], {"first": "n2", "second": None}), (["--no-preemption"], {"first": "n2", "second": None}),
                          (["--config", config], {"first": "n1", "second": "n2"}),
                          (["--without-nodes", "zone=a"], {"there": None, "first": None, "second": None}),
                          (["--now", "2020-06-01T00:00:00Z"], {"first": "n2", "second": None})):
        whatif = {row["name"]: row for row in json.loads(asked(berth, "whatif", "-f", dump, "-o", "json", *flags))["results"]}
        expect(f"places with {flags}", {name: row["node"] for name, row in whatif.items()}, places)
        for name, row in whatif.items():
            said = json.loads(asked(berth, "explain", "pod", name, "-n", "team", "-f", dump, "-o", "json", *flags))
            expect(f"the node of {name}", said["node"], row["node"])
            expect(f"the nodes that would do for {name} with {flags}", [n for n, v in sorted(said["nodes"].items()) if v["feasible"]],
                   row["feasible"])
            if row["node"] is None:
                expect_in(name, said["summary"], row["message"])
    for words in (["pod", "first", "--no-preemption"], ["consumer", "team", "-f", dump, "--config", config],
                  ["node", "n1", "-f", dump, "--no-preemption"]):
        done = subprocess.run([berth, "explain", *words], capture_output=True, text=True, timeout=60)
        expect(" ".join(words) + done.stderr, (done.returncode, done.stderr.startswith("berth explain: --")), (2, True))


def a_bound_pod_says_why_it_is_there(berth, build, dump):
    with Person(berth, build, "--nodes", "0", "--import", dump) as person:
        person.run("wait", "-n", "team", "pod/first", "--for=condition=Ready", "--timeout=30s")
        for where in (["-f", dump], []):
            said = asked(berth, "explain", "pod", "there", "-n", "team", *where, env=person.env)
            expect_in("a bound pod", said, "Pod team/there is Bound: it is bound to n2; no other node would do", "Insufficient cpu")
            if "It would go" in said:
                raise SystemExit(said)


def test(berth, build):
    with tempfile.TemporaryDirectory() as place:
        dump = os.path.join(place, "dump.yaml")
        with open(dump, "w") as file:
            file.write(DUMP + POD % ("there", "", "nodeName: n2, tolerations: [{operator: Exists}], ", "2500m")
                       + POD % ("first", ", creationTimestamp: '2020-01-01T00:00:00Z'", "", "1")
                       + POD % ("second", ", creationTimestamp: '2021-01-01T00:00:00Z'", "", "1"))
        what_nobody_acts_on_is_told_once(berth, place, dump)
        explain_says_what_whatif_says(berth, place, dump)
        a_bound_pod_says_why_it_is_there(berth, build, dump)


if __name__ == "__main__":
    test(*sys.argv[1:3])
    print("imports: passed")
