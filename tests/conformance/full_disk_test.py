"""A restart on a full disk serves reads, and refuses writes when the log has no room; with room again, everything acknowledged is there and writes go on.
Runs in a mount namespace of its own, with a small file system in memory; exit code 77 where that is not allowed."""
import os
import subprocess
import sys

from server import Server

MAPS = "/api/v1/namespaces/default/configmaps"


def expect(condition, sentence):
    if not condition:
        raise SystemExit("full disk: " + sentence)


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
    expect(code == 200, "a list was answered with %d %s" % (code, document))
    return {item["metadata"]["name"] for item in document["items"]}


def write_until_refused(server):
    """What was acknowledged: some room was set aside for the log."""
    made = set()
    for number in range(400):
        code, answer = server.ask("POST", MAPS, {"metadata": {"name": "full%d" % number}, "data": {"v": "x" * 100000}})
        if code != 201:
            expect(code >= 500 and "takes no more writes" in str(answer), "a write was answered with %d %s" % (code, answer))
            return made
        made.add("full%d" % number)
    expect(False, "the disk is never full")


def scene(berth, stop):
    server = Server(berth, "--nodes", "2", command="up")
    again = ("--listen", "127.0.0.1:%d" % server.port, "--nodes", "2")
    try:
        for number in range(50):
            expect(server.ask("POST", MAPS, {"metadata": {"name": "m%d" % number}})[0] == 201, "no room at the beginning")
        known = names(server)
        stop(server)
        fill(server.dir + "/ballast")
        server.start(*again)
        expect(names(server) == known, "not all is served")
        known |= write_until_refused(server)
        expect(names(server) == known, "not all is served after a write was refused")
        server.process.kill()
        server.process.wait()
        os.remove(server.dir + "/ballast")
        server.start(*again)
        expect(names(server) == known, "not all is there with room again")
        expect(server.ask("POST", MAPS, {"metadata": {"name": "more"}})[0] == 201, "no write with room again")
    finally:
        server.stop()


def clean(server):
    server.process.terminate()
    server.process.wait()


def killed(server):
    server.process.kill()
    server.process.wait()


def main():
    if os.environ.get("BERTH_FULL_DISK") is None:
        place = "mount -t tmpfs -o size=24m none /mnt && exec \"$@\""
        words = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
        if subprocess.run([*words, "sh", "-c", place, "sh", "true"], capture_output=True).returncode != 0:
            print("full disk: no file system of one's own may be mounted here")
            return 77
        return subprocess.run([*words, "sh", "-c", place, "sh", sys.executable, *sys.argv],
                              env={**os.environ, "BERTH_FULL_DISK": "1", "TMPDIR": "/mnt"}).returncode
    for stop in (clean, killed):
        scene(sys.argv[1], stop)
    print("full disk: passed")
    return 0


sys.exit(main())
