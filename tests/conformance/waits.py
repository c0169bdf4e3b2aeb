"""How long others wait: /livez, and a plain pod until it has a node."""
import http.client
import json
import os
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


class Wall:
    """Milliseconds since begin()."""

    def begin(self):
        self.wall = time.monotonic()

    def ms(self):
        return (time.monotonic() - self.wall) * 1000


def queued(pid):
    """Milliseconds for which the threads of a process were ready and others had the processors."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, task)) as text:
                total += int(text.read().split()[1])
        except OSError:
            pass  # it ended meanwhile
    return total / 1e6


class OwnTime(Wall):
    """What a server makes somebody wait, whatever else runs on the machine: the milliseconds in which neither its threads nor
    ours stood in line for a processor, and at least what it computed."""

    def __init__(self, server):
        self.pid = server.process.pid

    def seen(self):
        return time.clock_gettime((~self.pid << 3) | 2) * 1000, queued(self.pid) + queued(os.getpid())  # CPUCLOCK_SCHED of a process

    def begin(self):
        self.cpu, self.queued = self.seen()
        super().begin()

    def ms(self):
        passed = super().ms()
        cpu, in_line = self.seen()
        return max(cpu - self.cpu, passed - (in_line - self.queued))


class PlainPods:
    """Plain pods, made one after the other on one connection, with a watch on another."""

    def __init__(self, server):
        self.made = 0
        self.watch, self.line = (http.client.HTTPSConnection("localhost", server.port, timeout=120, context=server.tls) for _ in range(2))
        self.watch.request("GET", PODS + "?watch=1&labelSelector=plain")
        self.events = self.watch.getresponse()

    def waits(self, count, by=Wall()):
        """Milliseconds from the creation of each to the event that says where it is."""
        times = []
        for _ in range(count):
            self.made += 1
            made = pod("plain%d" % self.made)
            made["metadata"]["labels"]["plain"] = "yes"
            by.begin()
            self.line.request("POST", PODS, json.dumps(made), {"Content-Type": "application/json"})
            answer = self.line.getresponse()
            text = answer.read()
            if answer.status != 201:
                raise SystemExit("FAILED: a plain pod is refused: %s" % text[:500])
            while True:
                event = json.loads(self.events.readline())
                if event["object"]["metadata"]["name"] == made["metadata"]["name"] and event["object"]["spec"].get("nodeName"):
                    break
            times.append(by.ms())
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
