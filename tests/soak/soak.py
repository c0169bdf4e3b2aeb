#!/usr/bin/env python3
"""soak.py BERTH [--minutes M] [--rate R] [--csv FILE]: `berth up` under a steady churn of objects, and what memory it holds.

R times a second an object comes, is changed and is placed, and the oldest of WINDOW goes: pods that are scheduled and run,
ConfigMaps, Reservations, Machines that are made two layers below, Consumers, and what agents write about nodes. Every 30 s a line of the csv: seconds, RSS in KiB, revision. At the end everything is deleted and
looked at once more. Flat means: after the warm-up (the first third) the median of the last third is at most 5 % and 8 MiB
above the median of the second. Exit code 1 when it is not."""
import argparse
import http.client
import itertools
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
from server import Server  # noqa: E402

SAMPLE_SECONDS, WINDOW = 30, 150
CORE, OURS = "/api/v1/namespaces/default/", "/apis/scheduling.koordinator.sh/v1alpha1/"
MACHINES, CONSUMERS = "/apis/compute.ironcore.dev/v1alpha1/", "/apis/kuabe-arbitrator.incubator.k8s.io/v1/consumers"
USAGE, DEVICES = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics", OURS + "devices"
FLEET = "a: {cpu: 40, memory: 64Gi}, z: {b: {cpu: 40, memory: 64Gi}, c: {cpu: 1, memory: 1Gi}}"


def pod(name):
    return CORE + "pods", {
        "metadata": {"name": name, "labels": {"app": name[-1], "note": "n" * 40},
                     "annotations": {"story": "s" * 400}},
        "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "E%d" % i, "value": "v" * 30} for i in range(8)],
                                 "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}}


def config_map(name):
    return CORE + "configmaps", {"metadata": {"name": name}, "data": {"text": name * 200}}


def reservation(name):
    return OURS + "reservations", {
        "metadata": {"name": name},
        "spec": {"owners": [{"labelSelector": {"matchLabels": {"app": "nobody"}}}], "ttl": "1h",
                 "template": {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}]}}}}


def machine(name):
    return MACHINES + "namespaces/default/machines", {"metadata": {"name": name}, "spec": {"machineClassRef": {"name": "small"}}}


def consumer(name):
    return CONSUMERS, {"metadata": {"name": name}, "spec": {"reserved": {"cpu": "1"}, "hard": {"cpu": "2"}}}


def usage(name):
    amounts = {"resources": {"cpu": "3", "memory": "5Gi"}}
    return USAGE, {"metadata": {"name": name}, "spec": {}, "status": {"nodeMetric": {"nodeUsage": amounts, "systemUsage": amounts}}}


def device(name):
    amounts = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"}
    return DEVICES, {"metadata": {"name": name}, "spec": {"devices": [
        {"type": "gpu", "minor": i, "health": True, "id": "g%d" % i, "resources": amounts} for i in range(4)]}}


MAKE = (pod, config_map, pod, reservation, pod, machine, pod, consumer, pod, usage, pod, device)


class Client:
    """One connection; a refusal ends the soak, except where what is to be deleted or changed has gone already."""

    def __init__(self, server):
        self.server, self.connection = server, None

    def ask(self, method, path, body=None, kind="application/json", fine=()):
        if self.connection is None:
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=600, context=self.server.tls)
        self.connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 and answer.status not in fine:
            raise SystemExit("%s %s: %d %s" % (method, path, answer.status, text[:300]))
        if answer.will_close:
            self.connection.close()
            self.connection = None
        return text


def turn(client, number, live):
    name = "soak-%d" % number
    path, body = MAKE[number % len(MAKE)](name)
    client.ask("POST", path, body)
    client.ask("PATCH", path + "/" + name, {"metadata": {"annotations": {"changed": "c" * 100}}},
               "application/merge-patch+json", fine=(404,))
    live.append(path + "/" + name)
    if len(live) > WINDOW:
        drop(client, live.pop(0))


def drop(client, path):
    client.ask("DELETE", path, {"gracePeriodSeconds": 0}, fine=(404,))


def revision(client):
    return int(json.loads(client.ask("GET", CORE + "configmaps?limit=1"))["metadata"]["resourceVersion"])


def churn(client, seconds, rate, sample):
    live, begun = [], time.monotonic()
    next_sample = due = 0
    for number in itertools.count():
        passed = time.monotonic() - begun
        if passed >= next_sample:
            sample(passed)
            next_sample += SAMPLE_SECONDS
        if passed >= seconds:
            return live
        time.sleep(max(0.0, due - passed))  # the rate, not a wait for anything
        turn(client, number, live)
        due = max(due, passed) + 1 / rate  # what a busy machine missed is not made up for: a burst is another load


def judge(samples):
    third = len(samples) // 3
    if third == 0:
        raise SystemExit("too short to say anything: there must be three samples, one every %d s" % SAMPLE_SECONDS)
    middle, last = (statistics.median(rss for _, rss, _ in part) for part in (samples[third:2 * third], samples[2 * third:]))
    print("RSS: first %.1f MiB, most %.1f MiB, median of the second third %.1f MiB, of the last %.1f MiB" % tuple(
        kib / 1024 for kib in (samples[0][1], max(rss for _, rss, _ in samples), middle, last)))
    return last <= middle * 1.05 and last <= middle + (8 << 10)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("berth")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--rate", type=float, default=20)
    parser.add_argument("--csv", default=os.devnull)
    options = parser.parse_args()
    server = Server(options.berth, "--nodes", "20", "--shares", "--fleet", FLEET, command="up")
    client, samples = Client(server), []
    client.ask("POST", MACHINES + "machineclasses", {"metadata": {"name": "small"}, "capabilities": {"cpu": "1", "memory": "1Gi"}})
    try:
        with open(options.csv, "w") as table:
            def sample(passed):
                samples.append((int(passed), server.memory_kb(), revision(client)))
                print("%d,%d,%d" % samples[-1], file=table, flush=True)

            print("seconds,rss_kib,revision", file=table, flush=True)
            for path in churn(client, options.minutes * 60, options.rate, sample):
                drop(client, path)
            time.sleep(min(SAMPLE_SECONDS, options.minutes))  # what it gives back when nothing is asked of it
            print("%d samples in %d s, revision %d, %.1f MiB after everything was deleted"
                  % (len(samples), samples[-1][0], samples[-1][2], server.memory_kb() / 1024))
        flat = judge(samples)
    finally:
        code = server.stop()
    print("flat" if flat else "NOT flat")
    return code or (0 if flat else 1)


if __name__ == "__main__":
    sys.exit(main())
