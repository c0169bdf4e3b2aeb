#!/usr/bin/env python3
"""A name that is not allowed is refused in Kubernetes' words, by each kind's own rule."""
import sys

from person import Person, expect, expect_in

SUBDOMAIN = ("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
             "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
             r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
LABEL = ("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
         "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")
SERVICE = ("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
           "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')")
KEY = ("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
       "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")
VALUE = ("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
         "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
         "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")

POD = "apiVersion: v1\nkind: Pod\nmetadata: {%s}\nspec: {containers: [{name: a, image: b}]}\n"
SET = ("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a.b}\nspec: {serviceName: a, selector: {matchLabels: {a: b}}, "
       "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}\n")
CRON = ("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: %s}\nspec: {schedule: '* * * * *', jobTemplate: {spec: {template: "
        "{spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}}\n")


def test(berth, build):
    with Person(berth, build, "--nodes", "1") as person:
        def refused(what, said_of, fault, *words, stdin=None):
            code, said = person.kubectl_says(*words, stdin=stdin)
            expect(what, code, 1)
            expect_in(what, said, said_of, fault)

        refused("a pod", 'Pod "Web_1" is invalid: metadata.name: Invalid value: "Web_1": ', SUBDOMAIN,
                "create", "-f", "-", stdin=POD % "name: Web_1")
        refused("kubectl run", 'metadata.name: Invalid value: "Web": ', SUBDOMAIN, "run", "Web", "--image=nginx", "--labels=a=b")
        refused("a configmap", 'ConfigMap "a_b" is invalid: metadata.name: Invalid value: "a_b": ', SUBDOMAIN,
                "create", "configmap", "a_b")
        refused("a namespace", 'Namespace "A" is invalid: metadata.name: Invalid value: "A": ', LABEL, "create", "namespace", "A")
        refused("a dot in one", 'metadata.name: Invalid value: "a.b": ', "must not contain dots", "create", "namespace", "a.b")
        refused("a service", 'Service "1st" is invalid: metadata.name: Invalid value: "1st": ', SERVICE,
                "create", "service", "clusterip", "1st", "--tcp=80")
        refused("a stateful set", 'metadata.name: Invalid value: "a.b": ', "must not contain dots", "create", "-f", "-", stdin=SET)
        refused("a long cron job", "metadata.name: Invalid value: ", "must be no more than 52 characters", "create", "-f", "-",
                stdin=CRON % ("c" * 53))
        refused("a role", 'metadata.name: Invalid value: "a%b": ', "may not contain '%'", "create", "clusterrole", "a%b",
                "--verb=get", "--resource=pods")
        expect("a role may have a colon", person.kubectl_says("create", "clusterrole", "team:Reader", "--verb=get", "--resource=pods")[0], 0)
        refused("the beginning of a name", 'metadata.generateName: Invalid value: "Web-": ', SUBDOMAIN, "create", "-f", "-",
                stdin=POD % "generateName: Web-")
        refused("a label", 'metadata.labels: Invalid value: "a b": ', VALUE, "create", "-f", "-", stdin=POD % "name: a, labels: {a: a b}")
        refused("a key", 'metadata.labels: Invalid value: "-a": ', KEY, "create", "-f", "-", stdin=POD % "name: a, labels: {-a: b}")
        refused("a container", 'spec.containers[0].name: Invalid value: "A": ', LABEL, "create", "-f", "-",
                stdin="apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: A, image: b}]}\n")


test(*sys.argv[1:3])
print("names: passed")
