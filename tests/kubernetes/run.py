#!/usr/bin/env python3
"""run.py --berth BERTH --programs FOLDER [--rounds N] [NAME...]: Berth on a real Kubernetes, one cluster per test.

A test is a function that takes a Stage and raises when something is wrong. The last line is "N passed, N failed".
"""
import argparse
import re
import sys
import time
import traceback

import beside_tests
import comparison_tests
import credential_tests
import deploy_tests
import draw_tests
import election_tests
import fleet_tests
import node_tests
import parts_tests
import promise_tests
import reservation_tests
import scheduler_tests
import share_tests
import together_tests
import webhook_tests
from cluster import Cluster

TESTS = [*deploy_tests.TESTS, *comparison_tests.TESTS, *reservation_tests.TESTS, *parts_tests.TESTS, *draw_tests.TESTS, *promise_tests.TESTS,
         *scheduler_tests.TESTS, *together_tests.TESTS, *election_tests.TESTS, *beside_tests.TESTS,
         *webhook_tests.TESTS, *share_tests.TESTS, *credential_tests.TESTS, *node_tests.TESTS,
         *fleet_tests.TESTS]


class Stage:
    """What a test gets."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.rounds = arguments.rounds
        self.lease = arguments.lease
        self.seed = arguments.seed
        self.decisions = arguments.decisions
        self.berth = arguments.berth
        self.programs = arguments.programs

    def cluster(self, **more):
        return Cluster(self.arguments.programs, self.arguments.berth, keep=self.arguments.keep, **more)

    def say(self, text):
        print(f"  {text}", flush=True)


def read_arguments():
    parser = argparse.ArgumentParser(description="Berth on a real Kubernetes")
    parser.add_argument("--berth", required=True)
    parser.add_argument("--programs", required=True, help="the folder with kube-apiserver and the others")
    parser.add_argument("--rounds", type=int, default=5, help="how often the tests that kill something do so")
    parser.add_argument("--lease", type=int, default=3, help="seconds that a leader's lease lasts")
    parser.add_argument("--decisions", type=int, default=2000, help="placements to compare with kube-scheduler's plugins")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--keep", action="store_true", help="leave logs and data behind")
    parser.add_argument("names", nargs="*", help="parts of the names of the tests to run; all of them when empty")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    stage = Stage(arguments)
    chosen = [test for test in TESTS if not arguments.names or any(re.search(n, test.__name__) for n in arguments.names)]
    passed = failed = 0
    print(f"seed {arguments.seed}, {arguments.rounds} rounds, lease {arguments.lease} s", flush=True)
    for test in chosen:
        start = time.monotonic()
        print(f"{test.__name__}: {(test.__doc__ or '').strip()}", flush=True)
        try:
            test(stage)
            passed += 1
            verdict = "ok"
        except Exception:  # noqa: BLE001  whatever a test raises is its failure, and the next one is run
            traceback.print_exc(file=sys.stdout)
            failed += 1
            verdict = "FAILED"
        print(f"{test.__name__}: {verdict} ({time.monotonic() - start:.1f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
