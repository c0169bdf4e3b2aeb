#!/usr/bin/env python3
"""What is deleted takes along what belongs to it, whatever kind and version that is: the contents of a namespace, and the dependents
of an owner."""
import json
import subprocess
import sys

from person import Person, expect
from warnings_test import BODIES, NAMES, manifest

# Nobody owns a Namespace or a Node, an event ends by itself, and a CSINode needs its node.
LEFT_OUT = {"Namespace", "Node", "Event", "CSINode"}


def kinds(person):
    """Every kind that can be made, watched and deleted: (kind, apiVersion, resource, namespaced)."""
    for version in person.run("api-versions").split():
        path = "/api/" + version if "/" not in version else "/apis/" + version
        group = version.split("/")[0] if "/" in version else ""
        for row in json.loads(person.run("get", "--raw", path))["resources"]:
            if {"create", "watch", "delete"} <= set(row["verbs"]) and "/" not in row["name"] and row["kind"] not in LEFT_OUT:
                yield row["kind"], version, (row["name"] + "." + group).rstrip("."), row["namespaced"]


def make(person, rows, more):
    """One of each kind."""
    made = []
    for kind, version, resource, namespaced in rows:
        name = NAMES.get(kind, "a-" + version.replace("/", "-").replace(".", "-"))
        person.run("create", "-f", "-", stdin=manifest(version, kind, name, BODIES.get(f"{kind} {version}", BODIES.get(kind)), more))
        made.append((resource, name))
    return made


def wait_until_gone(person, what, *words):
    """Names what keeps it from going."""
    done = subprocess.run([person.kubectl, "wait", what, "--for=delete", "--timeout=30s"], capture_output=True, text=True,
                          env=person.env, timeout=60)
    if done.returncode != 0 and person.run("get", what, "--ignore-not-found"):
        left = [f"{resource}/{name}" for resource, name in words if person.run("get", resource, name, "-n", "full", "--ignore-not-found")]
        raise SystemExit(f"{what} is still there, with {left}")


def a_namespace_goes_with_all_that_is_in_it(person):
    person.run("create", "namespace", "full")
    made = make(person, [row for row in kinds(person) if row[3]], ", namespace: full")
    person.run("delete", "namespace", "full", "--wait=false")
    wait_until_gone(person, "namespace/full", *made)


def what_is_owned_goes_with_its_owner(person):
    person.run("create", "priorityclass", "owner", "--value=1")
    uid = person.get("priorityclass", "owner")["metadata"]["uid"]
    owners = f"ownerReferences: [{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, name: owner, uid: {uid}}}]"
    made = make(person, kinds(person), ", " + owners)
    person.run("delete", "priorityclass", "owner")
    for resource, name in made:
        wait_until_gone(person, f"{resource}/{name}")


def test(berth, build):
    with Person(berth, build, "--nodes", "1") as person:
        a_namespace_goes_with_all_that_is_in_it(person)
        what_is_owned_goes_with_its_owner(person)
        expect("who is left", person.names("namespaces"), ["default", "kube-node-lease", "kube-public", "kube-system"])


test(*sys.argv[1:3])
print("deletion: passed")
