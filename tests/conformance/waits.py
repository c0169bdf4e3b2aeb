"""How long others wait: /livez, and a plain pod until it has a node."""
import http.client
import json
import time

PODS = "/api/v1/namespaces/default/pods"


def percentiles(times):
    """The median and the 99th of a hundred."""
    times = sorted(times)
    return times[len(times) // 2], times[max(0, len(times) * 99 // 100 - 1)]


def livez(server, count=100, context=None):
    """Milliseconds of requests, each on a connection of its own."""
    times = []
    for _ in range(count):
        begin = time.monotonic()
        line = http.client.HTTPSConnection("localhost", server.port, timeout=120, context=context or server.tls)
        try:
            line.request("GET", "/livez")
            if line.getresponse().read() != b"ok":
                raise SystemExit("FAILED: /livez is not ok")
        finally:
            line.close()
        times.append((time.monotonic() - begin) * 1000)
    return percentiles(times)


def pod(name, **spec):
    return {"metadata": {"name": name, "labels": {"turn": "0"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}], **spec}}


class PlainPods:
    """Plain pods, made one after the other on one connection, with a watch on another."""

    def __init__(self, server):
        self.made = 0
        self.watch, self.line = (http.client.HTTPSConnection("localhost", server.port, timeout=120, context=server.tls) for _ in range(2))
        self.watch.request("GET", PODS + "?watch=1&labelSelector=plain")
        self.events = self.watch.getresponse()

    def waits(self, count):
        """Milliseconds from the creation of each to the event that says where it is."""
        times = []
        for _ in range(count):
            self.made += 1
            made = pod("plain%d" % self.made)
            made["metadata"]["labels"]["plain"] = "yes"
            begin = time.monotonic()
            self.line.request("POST", PODS, json.dumps(made), {"Content-Type": "application/json"})
            answer = self.line.getresponse()
            text = answer.read()
            if answer.status != 201:
                raise SystemExit("FAILED: a plain pod is refused: %s" % text[:500])
            while True:
                event = json.loads(self.events.readline())
                if event["object"]["metadata"]["name"] == made["metadata"]["name"] and event["object"]["spec"].get("nodeName"):
                    break
            times.append((time.monotonic() - begin) * 1000)
        return times

    def close(self):
        self.watch.close()
        self.line.close()


class Others:
    """What others wait, alone and meanwhile, in milliseconds."""

    def __init__(self, server, context=None):
        self.server, self.context, self.pods = server, context, PlainPods(server)
        self.pods.waits(20)
        self.alone = self.look()

    def look(self, count=100):
        return livez(self.server, count, self.context), percentiles(self.pods.waits(count))

    def told(self, count=100):
        """Looks again; a line of a table."""
        (livez_alone, pod_alone), (livez_now, pod_now) = self.alone, self.look(count)
        self.pods.close()
        return "ms p50 p99: /livez alone %.1f %.1f, meanwhile %.1f %.1f; a plain pod alone %.1f %.1f, meanwhile %.1f %.1f" % (
            *livez_alone, *livez_now, *pod_alone, *pod_now)
