#!/usr/bin/env python3
"""The demo of `make run`: the commands that it prints are run as they stand, and show what it says they do."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import expect, find_kubectls

berth, build = (os.path.abspath(word) for word in sys.argv[1:3])
root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def start(place, home):
    kubectl = os.path.dirname(find_kubectls(build)[-1][1])
    env = {**os.environ, "BERTH": berth, "BERTH_DATA": os.path.join(place, "data"), "BERTH_LISTEN": "127.0.0.1:0",
           "HOME": home, "PATH": f"{kubectl}:{os.environ['PATH']}"}
    demo = subprocess.Popen([os.path.join(root, "tools", "run")], stdout=subprocess.PIPE, text=True, env=env,
                            start_new_session=True)
    commands = []
    for line in demo.stdout:
        if line.startswith("  "):
            commands.append(line.split("#")[0].strip().replace("build/berth", berth))
        if line.startswith("Ctrl-C stops it"):
            return demo, env, commands
    raise SystemExit("the demo did not start")


def wait_for(shell, wanted):
    """Until the pods are (running, pending) as wanted: a watch of them says when to look again."""
    watch = subprocess.Popen(["bash", "-c", shell + "\nexec timeout 60 kubectl get pods --watch -o name"],
                             stdout=subprocess.PIPE, text=True, env=env)
    with watch:
        for _ in watch.stdout:
            pods = json.loads(run(shell, "kubectl get pods -o json"))["items"]
            phases = [pod["status"]["phase"] for pod in pods]
            if (phases.count("Running"), phases.count("Pending")) == wanted:
                watch.terminate()
                return {pod["metadata"]["name"]: pod for pod in pods}
    raise SystemExit(f"the pods did not come to {wanted}")


def run(shell, command):
    return subprocess.run(["bash", "-c", f"{shell}\n{command}"], cwd=root, env=env, check=True, capture_output=True,
                          text=True, timeout=60).stdout


place = tempfile.mkdtemp(prefix="berth-demo-")
demo, env, commands = start(place, place)
try:
    expect("commands", len(commands), 5)
    export, first, arrive, second, explain = commands
    wait_for(export, (9, 3))
    expect("the reservation", "for-checkout" in run(export, first), True)
    run(export, arrive)
    pods = wait_for(export, (11, 4))
    expect("the latecomer", pods["latecomer"]["status"]["phase"], "Pending")
    expect("those who run", "checkout" in run(export, second), True)
    expect("why", "Insufficient cpu" in run(export, explain), True)
finally:
    os.killpg(demo.pid, signal.SIGTERM)
    demo.wait(30)
    shutil.rmtree(place)
