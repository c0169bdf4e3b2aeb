#!/usr/bin/env python3
"""choose_victims.py NAMESPACE: a workload controller that keeps to its share by its own choice.

When others are due something that this namespace has, its Allocation says how much and until when (status.reclaim). Within
that grace this program deletes the pods that lose least by it: those with the least annotation `example.com/progress`. What it
does not give in time the arbitrator takes. It needs kubectl (KUBECTL) and Python's standard library."""
import json
import os
import subprocess
import sys

KUBECTL = os.environ.get("KUBECTL", "kubectl")
# Decimal and binary suffixes of quantities.
SUFFIXES = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def amount(text):
    text = str(text)
    for length in (2, 1):
        if text[-length:] in SUFFIXES:
            return float(text[:-length]) * SUFFIXES[text[-length:]]
    return float(text)


def requests(pod):
    total = {}
    for container in pod["spec"]["containers"]:
        for name, text in container.get("resources", {}).get("requests", {}).items():
            total[name] = total.get(name, 0) + amount(text)
    return total


def progress(pod):
    return float(pod["metadata"].get("annotations", {}).get("example.com/progress", 0))


def chosen(pods, wanted):
    """Those with the least progress, until all that is wanted is on its way back."""
    missing = {name: amount(text) for name, text in wanted.items()}
    placed = [pod for pod in pods if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed")]
    for pod in placed:
        if "deletionTimestamp" in pod["metadata"]:
            for name, size in requests(pod).items():
                missing[name] = missing.get(name, 0) - size
    out = []
    for pod in sorted((pod for pod in placed if "deletionTimestamp" not in pod["metadata"]), key=progress):
        if not any(left > 0 for left in missing.values()):
            break
        size = requests(pod)
        if any(missing.get(name, 0) > 0 for name in size):
            out.append(pod["metadata"]["name"])
            missing = {name: left - size.get(name, 0) for name, left in missing.items()}
    return out


def documents(stream):
    """The JSON documents that a watch prints, one after the other."""
    decoder, text = json.JSONDecoder(), ""
    for line in stream:
        text += line
        try:
            document, end = decoder.raw_decode(text)
        except ValueError:
            continue
        text = text[end:].lstrip()
        yield document


def give_back(namespace, allocation):
    wanted = allocation.get("status", {}).get("reclaim", {}).get("amounts")
    if not wanted:
        return
    listed = json.loads(subprocess.run([KUBECTL, "get", "pods", "-n", namespace, "-o", "json"], check=True,
                                       capture_output=True, text=True).stdout)
    for name in chosen(listed["items"], wanted):
        print(f"{name} goes: others are due {wanted}", flush=True)
        subprocess.run([KUBECTL, "delete", "pod", name, "-n", namespace, "--wait=false"], check=True)


def main(namespace):
    while True:  # a watch ends now and then
        watch = subprocess.Popen([KUBECTL, "get", "allocation", namespace, "--watch", "-o", "json"], stdout=subprocess.PIPE,
                                 text=True)
        with watch:
            for allocation in documents(watch.stdout):
                give_back(namespace, allocation)


if __name__ == "__main__":
    main(*sys.argv[1:])
