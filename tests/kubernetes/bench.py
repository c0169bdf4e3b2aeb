#!/usr/bin/env python3
"""bench.py --berth BERTH --programs FOLDER [-o json]: Berth and kube-scheduler through one real API server.

Each scheduler gets a cluster of its own of the same kind: pods are created while no scheduler runs, then it is started, and
the bindings are counted (burst); then pods arrive at a steady rate (paced). Client limits are lifted for all of them.

With --rates they share one API server instead and take turns: pods arrive at each of these rates (pods a second), and their
waits from being asked for to being seen bound are told.
"""
import argparse
import contextlib
import json
import subprocess
import sys

from cluster import Cluster
from deploy_tests import install

# What kube-scheduler is told; 0 means that it samples nodes as it does by default.
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
          "leaderElection": {"leaderElect": False}}


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--berth", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=5000, help="for Berth; kube-scheduler gets fewer, it takes longer")
    parser.add_argument("--workloads", nargs="+", default=["SchedulingBasic", "PodAffinity"])
    parser.add_argument("--schedulers", nargs="+", default=["berth", "default", "exact"])
    parser.add_argument("--rates", type=int, nargs="+", default=[])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    return parser.parse_args()


def start_scheduler(cluster, which):
    if which == "berth":
        return cluster.run("berth-scheduler", cluster.berth, "scheduler", "--kubeconfig", cluster.admin,
                           "--metrics-bind-address", "0")
    part = {"berth": 100, "default": 0, "exact": 100}[which]
    config = dict(CONFIG, percentageOfNodesToScore=part,
                  clientConnection={"kubeconfig": str(cluster.admin), "qps": 100000, "burst": 100000,
                                    "contentType": "application/vnd.kubernetes.protobuf"},
                  profiles=[{"schedulerName": "berth"}])
    path = cluster.dir / "kube-scheduler.json"
    path.write_text(json.dumps(config))
    return cluster.run("kube-scheduler", cluster.bin / "kube-scheduler", "--config", path, "--secure-port=0")


def load(cluster, *words, **more):
    words = [str(cluster.bin / "load"), "-kubeconfig", str(cluster.admin), *map(str, words)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **more)


def expect(process, word):
    line = process.stdout.readline()
    if line.strip() != word:
        raise SystemExit(f"load said {line!r} instead of {word}")


@contextlib.contextmanager
def prepared(arguments, workload):
    flags = ["--disable-admission-plugins=ServiceAccount", "--max-requests-inflight=3000",
             "--max-mutating-requests-inflight=1000"]
    with Cluster(arguments.programs, arguments.berth, controllers=False, server_flags=flags) as cluster:
        install(cluster)
        cluster.nodes(arguments.nodes, lease="0s", run="false", workers=16)
        load(cluster, "-placed", 1000, "-prefix", "placed-", "-nodes", arguments.nodes, "-workload", workload).wait()
        yield cluster


def pace(cluster, rate, pods, prefix, workload):
    paced = load(cluster, "-phase", "paced", "-rate", rate, "-pods", pods, "-prefix", prefix, "-workload", workload)
    expect(paced, "first")
    expect(paced, "all")
    return json.loads(paced.stdout.readline())


def measure(arguments, which, workload):
    pods = arguments.pods if which == "berth" else {"default": 2000, "exact": 1000}[which]
    with prepared(arguments, workload) as cluster:
        burst = load(cluster, "-pods", pods, "-workload", workload, stdin=subprocess.PIPE)
        expect(burst, "created")
        scheduler = start_scheduler(cluster, which)
        burst.stdin.write("go\n")
        burst.stdin.flush()
        expect(burst, "first")
        cpu = scheduler.cpu_seconds()
        expect(burst, "all")
        cpu = scheduler.cpu_seconds() - cpu
        result = json.loads(burst.stdout.readline())
        rate, paced_pods = (20, 200) if which == "exact" else (100, 1000)
        steady = pace(cluster, rate, paced_pods, "paced-", workload)
        return {"workload": workload, "mode": "kubernetes", "scheduler": which, "nodes": arguments.nodes, "pods": pods,
                "decisions_per_s": round(result["pods_per_s"], 1), "cpu_us_per_pod": round(cpu / pods * 1e6, 1),
                "p50_ms": round(steady["p50_ms"], 2), "p99_ms": round(steady["p99_ms"], 2),
                "rss_mb": round(scheduler.memory_mb(), 1)}


def take_turns(arguments, workload):
    with prepared(arguments, workload) as cluster:
        for turn in range(arguments.turns):
            for which in arguments.schedulers:
                scheduler = start_scheduler(cluster, which)
                # The first ones wait until it has read the cluster; nobody counts them.
                pace(cluster, 100, 50, f"warm-{turn}-{which}-", workload)
                for rate in arguments.rates:
                    pods = min(2000, 10 * rate)
                    cpu = scheduler.cpu_seconds()
                    waits = pace(cluster, rate, pods, f"rate-{turn}-{which}-{rate}-", workload)
                    cpu = scheduler.cpu_seconds() - cpu
                    yield {"workload": workload, "mode": "kubernetes", "scheduler": which, "nodes": arguments.nodes,
                           "turn": turn, "rate": rate, "pods": pods, "cpu_us_per_pod": round(cpu / pods * 1e6, 1),
                           "p50_ms": round(waits["p50_ms"], 2), "p99_ms": round(waits["p99_ms"], 2)}
                scheduler.stop()


def rates_table(rows):
    print(f"{'workload':16} {'pods/s':>6} {'scheduler':9} {'p50 ms':>22} {'p99 ms':>22} {'CPU us/pod':>22}")
    for key in sorted({(row["workload"], row["rate"], row["scheduler"]) for row in rows}):
        mine = [row for row in rows if (row["workload"], row["rate"], row["scheduler"]) == key]
        told = ("/".join(f"{row[name]:.0f}" if name == "cpu_us_per_pod" else f"{row[name]:.1f}" for row in mine)
                for name in ("p50_ms", "p99_ms", "cpu_us_per_pod"))
        print(f"{key[0]:16} {key[1]:6} {key[2]:9} " + " ".join(f"{text:>22}" for text in told))


def table(rows):
    print(f"{'workload':16} {'scheduler':9} {'pods/s':>8} {'ratio':>6} {'CPU us/pod':>11} {'ratio':>6} "
          f"{'p50 ms':>7} {'p99 ms':>7} {'RSS MB':>7}")
    for row in rows:
        berth = next((r for r in rows if r["scheduler"] == "berth" and r["workload"] == row["workload"]), row)
        speed = berth["decisions_per_s"] / row["decisions_per_s"]
        cpu = row["cpu_us_per_pod"] / max(berth["cpu_us_per_pod"], 0.1)
        print(f"{row['workload']:16} {row['scheduler']:9} {row['decisions_per_s']:8.0f} {speed:5.1f}x "
              f"{row['cpu_us_per_pod']:11.0f} {cpu:5.0f}x {row['p50_ms']:7.1f} {row['p99_ms']:7.1f} {row['rss_mb']:7.0f}")


def main():
    arguments = read_arguments()
    rows = []
    for workload in arguments.workloads:
        for row in (take_turns(arguments, workload) if arguments.rates else
                    (measure(arguments, which, workload) for which in arguments.schedulers)):
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    if arguments.output == "json":
        print(json.dumps(rows))
    else:
        (rates_table if arguments.rates else table)(rows)


if __name__ == "__main__":
    main()
