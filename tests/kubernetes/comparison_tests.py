"""Berth's decisions beside those of kube-scheduler's own plugins."""
import os
import subprocess


def same_as_kube_scheduler(stage):
    """Random clusters: feasible nodes, scores and reasons are kube-scheduler's, all plugins, volumes included"""
    words = [os.path.join(stage.programs, "compare"), "-berth", stage.berth, "-decisions", str(stage.decisions),
             "-seed", str(stage.seed * 100000)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=3600)
    for line in done.stdout.splitlines()[-30:]:
        stage.say(line)
    assert done.returncode == 0, "there are differences"


TESTS = [same_as_kube_scheduler]
