#!/usr/bin/env python3
"""`berth bench` says what its documents promise: every figure is there, and none that must be something is nothing."""
import json
import subprocess
import sys

FIGURES = ("decisions_per_s", "p50_us", "p99_us", "cpu_us_per_pod", "bytes_per_node", "bytes_per_pod", "rss_mb")


def main(berth):
    small = ("--nodes", "200", "--initial", "100", "--pods", "400")
    for mode in ("core", "embedded"):
        said = subprocess.run([berth, "bench", "SchedulingBasic", "--mode", mode, *small, "-o", "json"], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=240).stdout
        found = json.loads(said)
        assert (found["workload"], found["mode"], found["nodes"]) == ("SchedulingBasic", mode, 200), found
        for figure in FIGURES:
            # Of a whole control plane they are differences of resident memory, too rough for so few.
            if mode == "embedded" and figure.startswith("bytes_"):
                continue
            assert found[figure] > 0, f"{mode}: {figure} is {found[figure]}"
    print("2 passed, 0 failed")


main(sys.argv[1])
