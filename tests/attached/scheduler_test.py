"""The scheduler and the controllers attached to a server of another process: pods are bound; after kill -9 of the leader the
next one takes over and nothing is bound twice; a leader that was asleep ends; the server may be killed and come back."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from attached import bound, check, create_pods, plain, until  # noqa: E402
from server import Server  # noqa: E402

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/berth-scheduler"
RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
QUICK = ["--leader-elect", "--leader-elect-lease-duration", "4s", "--leader-elect-renew-deadline", "3s",
         "--leader-elect-retry-period", "500ms", "--metrics-bind-address", "0"]


class Attached:
    def __init__(self, server, command, *flags):
        self.process = subprocess.Popen(
            [server.berth, command, "--kubeconfig", server.dir + "/scheduler.kubeconfig", *flags],
            stderr=subprocess.PIPE, text=True)

    def end(self, number):
        self.process.send_signal(number)
        errors = self.process.communicate(timeout=60)[1]
        return self.process.returncode, errors


def creations(server):
    """Pods and bindings that the server has accepted since its start."""
    _, text = server.ask("GET", "/metrics")
    found = re.findall(r'apiserver_request_total\{verb="create",resource="pods",code="201"\} (\d+)', text)
    return int(found[0]) if found else 0


def holder(server):
    code, lease = server.ask("GET", LEASE)
    return lease["spec"].get("holderIdentity", "") if code == 200 else ""


def binds_pods_and_answers(server, port):
    scheduler = Attached(server, "scheduler", "--metrics-bind-address", f"127.0.0.1:{port}")
    controllers = Attached(server, "controllers", "--metrics-bind-address", "0")
    until("the scheduler is ready", lambda: plain(f"{port}/readyz") == (200, "ok"))
    create_pods(server, "plain", 20)
    until("20 pods are bound", lambda: bound(server, "plain") == 20)
    # The last answers may still be on their way to the scheduler.
    counted = 'scheduler_schedule_attempts_total{result="scheduled",profile="berth"} 20'
    until("20 binds are counted", lambda: counted in plain(f"{port}/metrics")[1])
    code, text = plain(f"{port}/metrics")
    for line in ('scheduler_schedule_attempts_total{result="scheduled",profile="berth"} 20',
                 'scheduler_scheduling_attempt_duration_seconds_count{result="scheduled",profile="berth"} 20',
                 'scheduler_pod_scheduling_attempts_bucket{le="1"} 20', 'scheduler_pending_pods{queue="active"} 0',
                 'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 20',
                 'scheduler_cache_size{type="pods"} 20',
                 'leader_election_master_status{name="berth-scheduler"} 1', "process_resident_memory_bytes "):
        check(code == 200 and line in text, line + " is not in: " + text)
    check(plain(f"{port}/healthz") == (200, "ok") and plain(f"{port}/livez")[0] == 200, "healthz")
    check(plain(f"{port}/other")[0] == 404, "an unknown path")
    reservation = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": "short"},
        "spec": {"ttl": "1s", "owners": [{"labelSelector": {"matchLabels": {"a": "b"}}}], "template": {"spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}]}}}}
    code, answer = server.ask("POST", RESERVATIONS, reservation)
    check(code == 201, f"reservation: {answer}")
    phase = lambda: server.ask("GET", RESERVATIONS + "/short")[1].get("status", {}).get("phase")  # noqa: E731
    until("the reservation has its place", lambda: phase() in ("Available", "Failed"))
    until("the reservation expires", lambda: phase() == "Failed")
    for attached in (scheduler, controllers):
        code, errors = attached.end(signal.SIGTERM)
        check(code == 0, f"SIGTERM gave {code}: {errors}")


def whole_process_counts_too(berth):
    server = Server(berth, "--in-memory", command="up")
    try:
        create_pods(server, "up", 3)
        create_pods(server, "big", 1, "1000")
        until("3 pods are bound", lambda: bound(server, "up") == 3)
        for line in ('scheduler_schedule_attempts_total{result="scheduled",profile="berth"} 3',
                     'scheduler_schedule_attempts_total{result="unschedulable",profile="berth"} ',
                     'scheduler_pending_pods{queue="unschedulable"} 1'):
            until(line, lambda: line in server.ask("GET", "/metrics")[1])
    finally:
        server.stop()


def next_one_takes_over(server):
    before = creations(server)
    first = Attached(server, "scheduler", *QUICK)
    leader = until("the first one leads", lambda: holder(server))
    second = Attached(server, "scheduler", *QUICK)
    create_pods(server, "before", 10)
    until("10 pods are bound", lambda: bound(server, "before") == 10)
    check(holder(server) == leader, "the second took the lease of a living first")
    create_pods(server, "between", 100)
    first.end(signal.SIGKILL)
    killed = time.monotonic()
    create_pods(server, "after", 10)
    until("the second one leads", lambda: holder(server) not in ("", leader), 15)
    until("all pods are bound", lambda: bound(server, "between") + bound(server, "after") == 110, 15)
    print(f"taken over and all bound {time.monotonic() - killed:.1f} s after kill -9 (lease 4 s)")
    binds = creations(server) - before - 120
    check(binds == 120, f"{binds} binds for 120 pods")
    check(server.ask("GET", LEASE)[1]["spec"]["leaseTransitions"] == 1, "leaseTransitions")
    code, errors = second.end(signal.SIGTERM)
    check(code == 0, f"SIGTERM gave {code}: {errors}")
    check(holder(server) == "", "the lease was not given back")


def who_was_asleep_ends(server):
    first = Attached(server, "scheduler", *QUICK)
    leader = until("the first one leads", lambda: holder(server))
    second = Attached(server, "scheduler", *QUICK)
    first.process.send_signal(signal.SIGSTOP)
    until("the second one leads", lambda: holder(server) not in ("", leader), 15)
    code, errors = first.end(signal.SIGCONT)
    check(code == 1 and "the lease kube-system/berth-scheduler was lost" in errors, f"{code}: {errors}")
    create_pods(server, "asleep", 5)
    until("5 pods are bound", lambda: bound(server, "asleep") == 5)
    check(second.end(signal.SIGTERM)[0] == 0, "SIGTERM")


def server_comes_back(server, *flags):
    scheduler = Attached(server, "scheduler", "--metrics-bind-address", "0")
    create_pods(server, "first", 5)
    until("5 pods are bound", lambda: bound(server, "first") == 5)
    server.process.kill()
    server.process.wait()
    server.start("--listen", f"127.0.0.1:{server.port}", *flags)
    create_pods(server, "second", 5)
    until("5 more pods are bound", lambda: bound(server, "second") == 5, 60)
    check(scheduler.process.poll() is None, "the scheduler ended with the server")
    check(scheduler.end(signal.SIGTERM)[0] == 0, "SIGTERM")


def says_what_is_wrong(berth):
    def errors(*flags):
        ended = subprocess.run([berth, "scheduler", *flags], stderr=subprocess.PIPE, text=True, timeout=20)
        return ended.returncode, ended.stderr
    code, text = errors("--kubeconfig", "/nonexistent")
    check(code == 1 and text == "berth scheduler: cannot read /nonexistent: No such file or directory\n", text)
    code, text = errors("--no-such-flag")
    check(code == 2, text)


def main():
    berth = sys.argv[1]
    says_what_is_wrong(berth)
    whole_process_counts_too(berth)
    flags = ["--no-scheduler", "--controllers=-reservation"]
    server = Server(berth, *flags, command="up")
    try:
        binds_pods_and_answers(server, 10000 + server.port % 20000)
        next_one_takes_over(server)
        who_was_asleep_ends(server)
        server_comes_back(server, *flags)
    finally:
        server.stop()
    print("6 passed, 0 failed")


main()
