"""Somebody in the first hour with Berth: a `berth up` of his own, stock kubectl, and what he reads on his screen."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "live"))
from cluster import Cluster, expect  # noqa: E402, F401


class Person(Cluster):
    def types(self, *words, stdin=None):
        """The exit code and all that is printed, of a command line."""
        done = subprocess.run(words, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env,
                              timeout=120)
        return done.returncode, done.stdout

    def kubectl_says(self, *words, stdin=None):
        return self.types(self.kubectl, *words, stdin=stdin)

    def warnings(self, *words, stdin=None):
        """What kubectl warns of; the command itself succeeds."""
        code, said = self.kubectl_says(*words, stdin=stdin)
        if code != 0:
            raise SystemExit(f"kubectl {' '.join(words)}: {said}\n{stdin or ''}")
        return [line[len("Warning: "):] for line in said.splitlines() if line.startswith("Warning: ")]


def expect_in(what, text, *parts):
    for part in parts:
        if part not in text:
            raise SystemExit(f"{what}: expected {part!r} in {text!r}")
