#!/usr/bin/env python3
"""A workload's own controller (deploy/examples/choose_victims.py) chooses within the grace who goes; the arbitrator then takes
nobody."""
import os
import pathlib
import subprocess
import sys

from cluster import Cluster, expect, pod

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "deploy/examples/choose_victims.py"


def test(berth, build):
    with Cluster(berth, build, "--shares", "--grace", "60s", "--nodes", "1", "--node-cpu", "3") as cluster:
        cluster.run("create", "namespace", "work")
        for name, progress in (("far", 90), ("begun", 10), ("newest", 50)):
            cluster.run("apply", "-n", "work", "-f", "-", stdin=pod(name, 1).replace(
                "labels: {}", f"labels: {{}}, annotations: {{example.com/progress: '{progress}'}}"))
            cluster.run("wait", f"pod/{name}", "-n", "work", "--for=condition=Ready", "--timeout=30s")
        controller = subprocess.Popen([sys.executable, EXAMPLE, "work"], env=dict(cluster.env, KUBECTL=cluster.kubectl))
        try:
            cluster.run("create", "namespace", "other")
            cluster.run("apply", "-n", "other", "-f", "-", stdin=pod("claim", 1))
            cluster.run("wait", "pod/claim", "-n", "other", "--for=condition=Ready", "--timeout=45s")
            expect("who stays", cluster.names("pods", "-n", "work"), ["far", "newest"])
            expect("whom the arbitrator took", cluster.events("Reclaimed"), [])
            expect("the controller runs", controller.poll(), None)
        finally:
            controller.terminate()
            controller.wait(10)


os.environ.pop("KUBECONFIG", None)
test(*sys.argv[1:3])
print("choice: passed")
