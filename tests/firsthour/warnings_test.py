#!/usr/bin/env python3
"""What is accepted and not acted on says so at once: every kind of the server is created once with kubectl, and
docs/reference/embedded.md is the judge of what has to be said."""
import json
import re
import sys

from person import ROOT, Person, expect, expect_in

POD_SPEC = "containers: [{name: main, image: nginx}]"
TEMPLATE = "selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {%s}}" % POD_SPEC
WEBHOOK = """webhooks: [{name: w.example.com, sideEffects: None, admissionReviewVersions: [v1],
  clientConfig: {url: "https://example.com/w"}, rules: []}]"""
RULES = "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"
SUBJECT = "subjects: [{kind: User, name: eve, apiGroup: rbac.authorization.k8s.io}]"

# A body for each kind, below metadata.
BODIES = {
    "Namespace": "", "ConfigMap": "data: {a: b}", "Secret": "stringData: {a: b}", "ServiceAccount": "",
    "Node": "status: {capacity: {cpu: '1', memory: 1Gi, pods: '10'}}",
    "Pod": "spec: {%s}" % POD_SPEC,
    "PodTemplate": "template: {spec: {%s}}" % POD_SPEC,
    "ReplicationController": "spec: {selector: {app: a}, template: {metadata: {labels: {app: a}}, spec: {%s}}}" % POD_SPEC,
    "Service": "spec: {ports: [{port: 80}]}",
    "Endpoints": "subsets: []",
    "Event v1": "involvedObject: {kind: Pod, name: a, namespace: default}\nreason: Seen\nmessage: m",
    "Event events.k8s.io/v1": "regarding: {kind: Pod, name: a, namespace: default}\nreason: Seen\naction: Look\n"
                              "reportingController: me\nreportingInstance: me\ntype: Normal\n"
                              "eventTime: '2026-01-01T00:00:00.000000Z'",
    "LimitRange": "spec: {limits: [{type: Container, max: {cpu: '1'}}]}",
    "ResourceQuota": "spec: {hard: {pods: '1'}}",
    "PersistentVolume": "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp}}",
    "PersistentVolumeClaim": "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
    "Deployment": "spec: {%s}" % TEMPLATE, "ReplicaSet": "spec: {%s}" % TEMPLATE,
    "StatefulSet": "spec: {serviceName: a, %s}" % TEMPLATE, "DaemonSet": "spec: {%s}" % TEMPLATE,
    "ControllerRevision": "revision: 1\ndata: {}",
    "Job": "spec: {template: {spec: {restartPolicy: Never, %s}}}" % POD_SPEC,
    "CronJob": "spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, %s}}}}}" % POD_SPEC,
    "PodDisruptionBudget": "spec: {minAvailable: 1, selector: {matchLabels: {app: none}}}",
    "Lease": "spec: {holderIdentity: me}",
    "StorageClass": "provisioner: berth.dev/simulated",
    "CSINode": "spec: {drivers: []}", "CSIDriver": "spec: {}",
    "CSIStorageCapacity": "storageClassName: none\ncapacity: 1Gi",
    "VolumeAttachment": "spec: {attacher: a, nodeName: node-0, source: {persistentVolumeName: a}}",
    "VolumeAttributesClass": "driverName: a\nparameters: {a: b}",
    "PriorityClass": "value: 5",
    "ResourceClaim": "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}",
    "ResourceClaimTemplate": "spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}",
    "ResourceSlice": "spec: {driver: d, pool: {name: p, generation: 1, resourceSliceCount: 1}, allNodes: true, devices: []}",
    "DeviceClass": "spec: {}",
    "Role": RULES, "ClusterRole": RULES,
    "RoleBinding": "roleRef: {kind: Role, name: a, apiGroup: rbac.authorization.k8s.io}\n" + SUBJECT,
    "ClusterRoleBinding": "roleRef: {kind: ClusterRole, name: a, apiGroup: rbac.authorization.k8s.io}\n" + SUBJECT,
    "CustomResourceDefinition": "spec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: "
                                "[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}",
    "APIService": "spec: {group: example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1}",
    "HorizontalPodAutoscaler": "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}",
    "Ingress": "spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}",
    "IngressClass": "spec: {controller: example.com/c}",
    "NetworkPolicy": "spec: {podSelector: {}}",
    "EndpointSlice": "addressType: IPv4\nendpoints: []",
    "ValidatingWebhookConfiguration": WEBHOOK, "MutatingWebhookConfiguration": WEBHOOK,
    "ValidatingAdmissionPolicy": "spec: {validations: [{expression: 'true'}], matchConstraints: {resourceRules: []}}",
    "ValidatingAdmissionPolicyBinding": "spec: {policyName: a, validationActions: [Deny]}",
    "Reservation": "spec: {owners: [{labelSelector: {matchLabels: {app: r}}}], template: {spec: {%s}}}" % POD_SPEC,
}
BODIES["Consumer"] = BODIES["Allocation"] = BODIES["Device"] = "spec: {}"
BODIES["NodeMetric"] = BODIES["NodeSLO"] = "spec: {}"
BODIES["PodMigrationJob"] = "spec: {podRef: {namespace: default, name: p}}"
BODIES["Reservation core.ironcore.dev/v1alpha1"] = BODIES["Reservation compute.ironcore.dev/v1alpha1"] = \
    "spec: {resources: {cpu: '1'}}"
BODIES["Machine"] = "spec: {machineClassRef: {name: small}}"
BODIES["MachineClass"] = "capabilities: {cpu: '1', memory: 1Gi}"
BODIES["MachinePool"] = "spec: {}"
BODIES["NodeResourceTopology"] = "topologyPolicies: [None]\nzones: [{name: node-0, type: Node}]"
NAMES = {"CustomResourceDefinition": "widgets.example.com", "APIService": "v1.example.com"}

# Fields that nothing acts on, and policy that people would trust, as they stand in manifests.
FIELDS = {
    "command": ("Pod", "spec: {containers: [{name: a, image: b, command: [sleep, infinity]}]}"),
    "livenessProbe": ("Pod", "spec: {containers: [{name: a, image: b, livenessProbe: {tcpSocket: {port: 80}}}]}"),
    "securityContext": ("Pod", "spec: {securityContext: {runAsNonRoot: true}, containers: [{name: a, image: b}]}"),
    "env, readinessProbe": ("Deployment", "spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: "
                            "{containers: [{name: a, image: b, env: [{name: A, value: b}], readinessProbe: {tcpSocket: {port: 80}}}]}}}"),
    "completionMode=Indexed": ("Job", "spec: {completions: 2, completionMode: Indexed, template: {spec: {restartPolicy: Never, %s}}}"
                               % POD_SPEC),
    "type=LoadBalancer": ("Service", "spec: {type: LoadBalancer, ports: [{port: 80}]}"),
    "scheduling.koordinator.sh/reservation-affinity": (
        "Deployment", "spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}, annotations: "
        "{scheduling.koordinator.sh/reservation-affinity: '{\"reservationSelektor\": {}}'}}, spec: {%s}}}" % POD_SPEC),
    "effect=NoExecute": ("Node", "spec: {taints: [{key: a, effect: NoExecute}]}"),
    "efiVars": ("Machine", "spec: {machineClassRef: {name: small}, efiVars: [{name: a, uuid: b}]}"),
    "volumeRef": ("Machine", "spec: {machineClassRef: {name: small}, volumes: [{name: a, volumeRef: {name: b}}]}"),
    "provisioner": ("StorageClass", "provisioner: ebs.csi.aws.com"),
}


def manifest(version, kind, name, body, more=""):
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}{more}}}\n{body}\n"


def documented():
    """What the document says becomes of a kind: (kind, apiVersion) -> words."""
    with open(ROOT + "/docs/reference/embedded.md") as text:
        rows = re.findall(r"^\| (\w+) \(([^)]+)\) \| (.*) \|$", text.read(), re.M)
    return {(kind, version): words for kind, version, words in rows}


def served(person):
    """Every kind of discovery that can be created and stays: (kind, apiVersion)."""
    out = []
    for version in person.run("api-versions").split():
        path = "/api/" + version if "/" not in version else "/apis/" + version
        for row in json.loads(person.run("get", "--raw", path))["resources"]:
            if "/" not in row["name"] and {"create", "get"} <= set(row["verbs"]):
                out.append((row["kind"], version))
    return out


def every_kind_says_what_becomes_of_it(person):
    judge = documented()
    for kind, version in served(person):
        words = judge[(kind, version)]
        body = BODIES.get(f"{kind} {version}", BODIES.get(kind))
        if body is None:
            raise SystemExit(f"{kind} {version}: give this test a body for it")
        name = NAMES.get(kind, "a-" + version.replace("/", "-").replace(".", "-"))
        said = person.warnings("create", "-f", "-", stdin=manifest(version, kind, name, body))
        if words.startswith("**policy, not enforced**"):
            expect(kind, len(said), 1)
            expect_in(kind, said[0], "stored, not enforced by this server", words.split(": ", 1)[1])
        elif words.startswith("**stored only**"):
            expect(kind, len(said), 1)
            expect_in(kind, said[0], "stored only", words.split(": ", 1)[1])
        else:
            expect(f"{kind}, which is {words}", said, [])


def fields_without_effect_are_named(person):
    versions = {kind: version for kind, version in served(person)}
    for number, (field, (kind, body)) in enumerate(FIELDS.items()):
        said = person.warnings("create", "-f", "-", stdin=manifest(versions[kind], kind, f"field-{number}", body))
        expect(field, len(said), 1)
        expect_in(field, said[0], "without effect here: " + field)
    labelled = manifest("v1", "Namespace", "trusting", "", ", labels: {pod-security.kubernetes.io/enforce: restricted}")
    said = person.warnings("create", "-f", "-", stdin=labelled)
    expect("pod security", len(said), 1)
    expect_in("pod security", said[0], "stored, not enforced by this server: pod-security.kubernetes.io/enforce")
    labelled = manifest("v1", "Pod", "in-quota", "spec: {%s}" % POD_SPEC, ", labels: {quota.scheduling.koordinator.sh/name: q}")
    expect("quota", person.warnings("create", "-f", "-", stdin=labelled),
           ["stored, not enforced by this server: quota.scheduling.koordinator.sh/name (no quota is counted)"])


def keys_that_nobody_knows_are_named(person):
    for where, key in (("labels", "koordinator.sh/gpu-isolation-provider"), ("annotations", "scheduling.koordinator.sh/resource-specs")):
        said = person.warnings("create", "-f", "-", stdin=manifest("v1", "Pod", "strange-" + where, "spec: {%s}" % POD_SPEC,
                                                                   ", %s: {%s: x}" % (where, key)))
        expect(key, said, [f"without effect here: {key} (nobody here knows it)"])


def koordinators_own_manifests_run(person):
    """Its classes of priority are there, and nothing is said of what works."""
    for name in ("prod", "mid", "batch", "free"):
        labels = ", labels: {koordinator.sh/qosClass: %s}" % ("BE" if name in ("batch", "free") else "LS")
        spec = "spec: {priorityClassName: koord-%s, schedulerName: koord-scheduler, %s}" % (name, POD_SPEC)
        expect(name, person.warnings("create", "-f", "-", stdin=manifest("v1", "Pod", "koord-" + name, spec, labels)), [])


def only_news_is_told(person):
    expect("kubectl run", person.warnings("run", "plain", "--image=nginx"), [])
    expect("a command", len(person.warnings("run", "busy", "--image=nginx", "--command", "--", "sleep", "1")), 1)
    expect("a label of it", person.warnings("label", "pod", "busy", "a=b"), [])
    expect("create deployment", person.warnings("create", "deployment", "web", "--image=nginx"), [])
    quota = person.warnings("create", "quota", "few", "--hard=pods=1")
    expect("create quota", len(quota), 1)
    expect("an update of it", person.warnings("annotate", "quota", "few", "a=b"), quota)
    grant = person.warnings("create", "clusterrolebinding", "all", "--clusterrole=admin", "--user=eve")
    expect_in("a grant", grant[0], "clusterrolebindings.rbac.authorization.k8s.io: stored, not enforced by this server")


def policy_is_refused_if_so_asked(berth, build):
    with Person(berth, build, "--nodes", "1", "--strict-policies") as person:
        for words in (["create", "quota", "few", "--hard=pods=1"], ["create", "role", "r", "--verb=get", "--resource=pods"],
                      ["create", "clusterrolebinding", "all", "--clusterrole=admin", "--user=eve"]):
            code, said = person.kubectl_says(*words)
            expect(" ".join(words), code, 1)
            expect_in("refused", said, "is forbidden: --strict-policies refuses what would only be stored")
        judge = documented()
        for kind, version in served(person):
            if not judge[(kind, version)].startswith("**policy"):
                continue
            code, said = person.kubectl_says("create", "-f", "-", stdin=manifest(version, kind, "p", BODIES[kind]))
            expect(kind, code, 1)
            expect_in(kind, said, "--strict-policies refuses")
        code, said = person.kubectl_says("label", "namespace", "default", "pod-security.kubernetes.io/enforce=restricted")
        expect_in("a label", said, "--strict-policies refuses")
        expect("others", person.warnings("create", "deployment", "web", "--image=nginx"), [])


def who_was_left_out_is_missed(berth, build):
    for flag in ("--controllers=-deployment", "--controllers=*,-deployment", "--controllers=replicaset,job"):
        with Person(berth, build, "--nodes", "1", flag) as person:
            said = person.warnings("create", "deployment", "web", "--image=nginx")
            expect(flag, said, ["deployments.apps: the controller deployment was left out"])
            expect(f"a job with {flag}", person.warnings("create", "job", "sum", "--image=b"), [])


def shares_are_kept_or_missed(berth, build):
    """A Consumer that nobody acts on is told of by the first test; here somebody does."""
    with Person(berth, build, "--nodes", "1", "--shares") as person:
        version = "kuabe-arbitrator.incubator.k8s.io/v1"
        expect("a Consumer", person.warnings("create", "-f", "-", stdin=manifest(version, "Consumer", "area", "spec: {weight: 2}")), [])
        said = person.warnings("create", "-f", "-", stdin=manifest(version, "Allocation", "mine", "spec: {deserved: {cpu: '1'}}"))
        expect("an Allocation", said, ["allocations are published by the arbitrator, which replaces what others write"])


def test(berth, build):
    with Person(berth, build, "--nodes", "1", "--fleet", "{a: {cpu: 4}}") as person:
        only_news_is_told(person)
        every_kind_says_what_becomes_of_it(person)
        fields_without_effect_are_named(person)
        keys_that_nobody_knows_are_named(person)
        koordinators_own_manifests_run(person)
    policy_is_refused_if_so_asked(berth, build)
    who_was_left_out_is_missed(berth, build)
    shares_are_kept_or_missed(berth, build)


if __name__ == "__main__":
    test(*sys.argv[1:3])
    print("warnings: passed")
