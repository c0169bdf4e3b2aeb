"""A restart on a full disk serves reads, and refuses writes when the log has no room; with room again, everything acknowledged is there and writes go on.
People are told: an event while little is left; once in the log, in /readyz and in the metrics when writes are refused; an event at the next start.
Runs in a mount namespace of its own, with a small file system in memory; exit code 77 where that is not allowed."""
import os
import re
import subprocess
import sys
import tempfile
import time

from server import Server, must

MAPS = "/api/v1/namespaces/default/configmaps"


def wait_for(what, true):
    end = time.monotonic() + 20
    while not true():
        must(time.monotonic() < end, "never " + what)
        time.sleep(0.05)


def fill_but(path, left):
    """Until so many bytes have a place."""
    room = os.statvfs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(b"x" * max(0, room.f_bavail * room.f_frsize - left))


def reasons(server):
    code, document = server.ask("GET", "/api/v1/namespaces/default/events")
    must(code == 200, "events were answered with %d %s" % (code, document))
    return [event["reason"] for event in document["items"] if event["involvedObject"]["kind"] == "Namespace"]


def metric(server, name):
    code, text = server.ask("GET", "/metrics")
    must(code == 200, "metrics were answered with %d" % code)
    return float(re.search("^%s (.*)$" % name, text, re.M).group(1))


def log_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def people_are_told(berth):
    flags = ("--nodes", "2", "--listen", "127.0.0.1:0")
    with tempfile.NamedTemporaryFile("w", dir="/tmp") as stderr:  # not on the disk that fills up
        log = stderr.name
        server = Server(berth, "--nodes", "2", command="up", stderr=stderr)
        must(metric(server, "berth_store_failed") == 0 and reasons(server) == [], "there is trouble at the beginning")
        fill_but(server.dir + "/ballast", 1 << 20)
        wait_for("an event while little is left", lambda: reasons(server) == ["DiskNearlyFull"])
        must(metric(server, "berth_store_disk_free_bytes") < 2 << 20, "the metric knows how much is left")
        fill(server.dir + "/ballast2")
        write_until_refused(server)
        wait_for("a line in the log", lambda: "Every write is refused" in log_of(log))
        code, text = server.ask("GET", "/readyz")
        must(code == 500 and "[-]store failed: every write is refused" in text, "/readyz says %d %s" % (code, text))
        must(metric(server, "berth_store_failed") == 1, "the metric knows it")
        # Pods that cannot be placed, leases that cannot be renewed: nobody repeats it.
        for number in range(20):
            server.ask("POST", MAPS, {"metadata": {"name": "more%d" % number}})
        time.sleep(3)
        lines = log_of(log).splitlines()
        told = [line for line in lines if "Every write is refused" in line]
        must(len(told) == 1 and told[0].startswith("E"), "the log tells it once, loudly: %s" % told)
        after = lines[lines.index(told[0]) + 1:]
        must(len(after) <= 5, "the log is flooded:\n" + "\n".join(after[:20]))
        server.process.kill()
        server.process.wait()
        os.remove(server.dir + "/ballast")
        os.remove(server.dir + "/ballast2")
        server.start(*flags, stderr=stderr)
        wait_for("an event about the last time", lambda: reasons(server).count("StoreFailed") == 1)
        server.process.terminate()
        must(server.process.wait(20) == 0, "it ended badly")
        server.start(*flags, stderr=stderr)
        must(reasons(server).count("StoreFailed") == 1, "it is told again")
    server.stop()


def fill(path):
    """Until not one more byte has a place."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def names(server):
    code, document = server.ask("GET", MAPS)
    must(code == 200, "a list was answered with %d %s" % (code, document))
    return {item["metadata"]["name"] for item in document["items"]}


def write_until_refused(server):
    """What was acknowledged: some room was set aside for the log."""
    made = set()
    for number in range(400):
        code, answer = server.ask("POST", MAPS, {"metadata": {"name": "full%d" % number}, "data": {"v": "x" * 100000}})
        if code != 201:
            must(code >= 500 and "takes no more writes" in str(answer), "a write was answered with %d %s" % (code, answer))
            return made
        made.add("full%d" % number)
    must(False, "the disk is never full")


def scene(berth, stop):
    server = Server(berth, "--nodes", "2", command="up")
    again = ("--listen", "127.0.0.1:%d" % server.port, "--nodes", "2")
    try:
        for number in range(50):
            must(server.ask("POST", MAPS, {"metadata": {"name": "m%d" % number}})[0] == 201, "no room at the beginning")
        known = names(server)
        stop(server)
        fill(server.dir + "/ballast")
        print(stop.__name__, flush=True)
        server.start(*again)
        must(names(server) == known, "not all is served")
        known |= write_until_refused(server)
        must(names(server) == known, "not all is served after a write was refused")
        server.process.kill()
        server.process.wait()
        os.remove(server.dir + "/ballast")
        server.start(*again)
        must(names(server) == known, "not all is there with room again")
        must(server.ask("POST", MAPS, {"metadata": {"name": "more"}})[0] == 201, "no write with room again")
    finally:
        server.stop()


def clean(server):
    server.process.terminate()
    server.process.wait()


def killed(server):
    server.process.kill()
    server.process.wait()


def copied(server):
    """Without what processes share while they run: a copy of the directory has it not, and there is no room for another."""
    clean(server)
    os.remove(server.dir + "/store.db-shm")


def unfilled(server):
    """The log as it is in a directory that no Berth has set room aside in."""
    clean(server)
    with open(server.dir + "/store.db-wal", "rb+") as log:
        log.truncate(len(log.read().rstrip(b"\0")) // 4096 * 4096 + 8192)


def main():
    if os.environ.get("BERTH_FULL_DISK") is None:
        place = "mount -t tmpfs -o size=24m none /mnt && exec \"$@\""
        words = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
        if subprocess.run([*words, "sh", "-c", place, "sh", "true"], capture_output=True).returncode != 0:
            print("full disk: no file system of one's own may be mounted here")
            return 77
        return subprocess.run([*words, "sh", "-c", place, "sh", sys.executable, *sys.argv],
                              env={**os.environ, "BERTH_FULL_DISK": "1", "TMPDIR": "/mnt"}).returncode
    for stop in (clean, killed, copied, unfilled):
        scene(sys.argv[1], stop)
    people_are_told(sys.argv[1])
    print("full disk: passed")
    return 0


sys.exit(main())
