"""A `berth up` for one story, and the newest kubectl that talks to it."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from kubectl_test import find_kubectls  # noqa: E402
from server import environment, fresh_home  # noqa: E402


class Cluster:
    def __init__(self, berth, build, *flags, directory=None):
        """In memory, unless there is a directory that keeps what is stored."""
        found = find_kubectls(build)
        if not found:
            raise SystemExit("no kubectl is installed")
        self.kubectl = found[-1][1]
        self.keeps = directory is not None
        self.dir = directory or tempfile.mkdtemp(prefix="berth-live-")
        words = [berth, "up", "--data-dir", self.dir, "--listen", "127.0.0.1:0", *flags]
        self.process = subprocess.Popen(words if self.keeps else words + ["--in-memory"], stdout=subprocess.PIPE, text=True)
        ready = re.match(r"berth: ready (https://\S+) kubeconfig=(\S+)", self.process.stdout.readline())
        if not ready:
            raise SystemExit("berth up did not start")
        self.env = environment(fresh_home(), ready.group(2))

    def __enter__(self):
        return self

    def __exit__(self, *trouble):
        self.process.terminate()
        code = self.process.wait(30)
        if not self.keeps:
            shutil.rmtree(self.dir, ignore_errors=True)
        if code != 0 and trouble[0] is None:
            raise SystemExit(f"berth up ended with {code}")

    def run(self, *words, stdin=None):
        done = subprocess.run([self.kubectl, *words], input=stdin, capture_output=True, text=True, env=self.env,
                              timeout=120)
        if done.returncode != 0:
            raise SystemExit(f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def apply(self, text):
        return self.run("apply", "-f", "-", stdin=text)

    def get(self, *words):
        return json.loads(self.run("get", *words, "-o", "json"))

    def wait(self, what, until, seconds=30):
        """Until a condition ("condition=Ready"), a value ("jsonpath={.status.phase}=Running") or "delete" holds."""
        if until.startswith("jsonpath="):
            return self.wait_for_value(what, *until[len("jsonpath="):].rsplit("=", 1), seconds)
        try:
            return self.run("wait", what, f"--for={until}", f"--timeout={seconds}s")
        except SystemExit:
            # Older kubectls take an object that is gone for a mistake.
            if until != "delete" or self.run("get", what, "--ignore-not-found"):
                raise

    def wait_for_value(self, what, path, wanted, seconds):
        """`kubectl wait` knows values since 1.23 only; a watch that prints them does it with every kubectl."""
        watch = subprocess.Popen(
            ["timeout", str(seconds), self.kubectl, "get", what, "--watch", "-o", "jsonpath=" + path + r'{"\n"}'],
            stdout=subprocess.PIPE, text=True, env=self.env)
        seen = []
        with watch:
            for line in watch.stdout:
                seen.append(line.strip())
                if seen[-1] == wanted:
                    watch.terminate()
                    return
        raise SystemExit(f"{what}: {path} was not {wanted} within {seconds} s, but {seen}; the watch ended with {watch.returncode}")

    def names(self, kind, *words):
        return sorted(item["metadata"]["name"] for item in self.get(kind, *words)["items"])

    def events(self, reason):
        return [item for item in self.get("events", "-A")["items"] if item["reason"] == reason]


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what}: expected {wanted!r}, got {got!r}")


def pod(name, cpu, more="", labels="{}"):
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {labels}}}
spec:
  terminationGracePeriodSeconds: 1
  {more}
  containers: [{{name: main, image: app, resources: {{requests: {{cpu: "{cpu}"}}}}}}]
"""
