"""Objects that tests make."""


def pod(name, cpu="100m", memory="500Mi", labels=None, scheduler="berth", annotations=None, **spec):
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container = {"name": "c", "image": "pause:3.10", "resources": {"requests": requests}}
    ports = spec.pop("ports", None)
    if ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": labels or {}, "annotations": annotations or {}},
            "spec": {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0, "containers": [container], **spec}}


def reservation(name, owner, cpu="100m", memory=None, labels=None, template=None, annotations=None, **spec):
    """A reservation for pods with the label owner: OWNER, whose template is a pod of that size."""
    made = pod("unused", cpu, memory, **(template or {}))
    body = {"metadata": {"namespace": "default", "labels": made["metadata"]["labels"]}, "spec": made["spec"]}
    del body["spec"]["schedulerName"], body["spec"]["terminationGracePeriodSeconds"]
    owners = spec.pop("owners", [{"labelSelector": {"matchLabels": {"owner": owner}}}])
    return {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
            "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
            "spec": {"template": body, "owners": owners, **spec}}


def milli(quantity):
    """A cpu quantity in thousandths."""
    text = str(quantity)
    return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)


def cpu_of(entry):
    return sum(milli(c.get("resources", {}).get("requests", {}).get("cpu", "0")) for c in entry["spec"]["containers"])
