#!/usr/bin/env python3
"""Files and directories that cannot be read, are something else, or are damaged: one sentence that names them, exit code 1,
and never a signal. Where the test runs as root the commands run as nobody, who may be kept out."""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

from person import expect, expect_in

NOBODY = 65534
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "10"}}
"""


def as_somebody_else():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


class Place:
    """Where things are in the way, and a copy of the program that everybody may run."""

    def __init__(self, berth):
        self.dir = tempfile.mkdtemp(prefix="berth-trouble-")
        os.chmod(self.dir, 0o755)
        self.berth = self.at("berth")
        shutil.copy(berth, self.berth)
        os.chmod(self.berth, 0o755)
        for name in ("locked", "store-in-locked", "dir-as-store", "pipe-as-store", "free"):
            os.mkdir(self.at(name), 0o755)
        for name in ("store.db", "ledger.db"):
            os.mkdir(self.at("dir-as-store/" + name), 0o755)
        os.mkfifo(self.at("pipe-as-store/store.db"), 0o644)
        os.mkfifo(self.at("pipe"), 0o644)
        self.write("junk", "no store and no kubeconfig\n")
        self.write("empty", "")
        self.write("node.yaml", NODE)
        self.write("locked/inside", "x")
        if os.getuid() == 0:
            for name in ("dir-as-store", "pipe-as-store", "free"):
                os.chown(self.at(name), NOBODY, NOBODY)
        os.chmod(self.at("locked"), 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.chmod(self.at("locked"), 0o755)
        shutil.rmtree(self.dir)

    def at(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.at(name), "w") as file:
            file.write(text)

    def run(self, words, stdout=subprocess.PIPE, **environment):
        """KUBECONFIG and HOME lead nowhere unless the test says where."""
        started = self.start(words, (), stdout, **environment)
        said, trouble = started.communicate(timeout=60)
        return started.returncode, said, trouble

    def start(self, words, limits, stdout=subprocess.PIPE, **environment):
        def begin():
            as_somebody_else()
            for which, value in limits:
                resource.setrlimit(which, (value, value))
        env = {"PATH": os.environ["PATH"], "HOME": self.at("free"), **environment}
        return subprocess.Popen([self.berth, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, env=env,
                                cwd=self.at("free"), stdin=subprocess.DEVNULL, preexec_fn=begin)


def fails(place, words, named, **more):
    """Exit code 1, and one sentence behind the command that names what is in the way."""
    what = "berth " + " ".join(words)
    code, said, trouble = place.run(words, **more)
    expect(f"{what}: {trouble}", code, 1)
    lines = [line for line in trouble.splitlines() if line.startswith("berth ")]
    expect(f"{what}: sentences in {trouble!r}", len(lines), 1)
    expect_in(what, lines[0], f"berth {words[0]}", named)
    for word in ("filesystem error", "terminate", "what()"):
        if word in trouble:
            raise SystemExit(f"{what}: that is no sentence: {trouble}")


def stores(place):
    for name in ("locked", "locked/inside", "dir-as-store", "pipe-as-store", "junk"):
        if name not in ("locked/inside", "junk"):
            fails(place, ["store", "check", "--data-dir", place.at(name)], place.at(name))
        fails(place, ["store", "check", place.at(name)], place.at(name))
        fails(place, ["store", "restore", place.at(name), "--data-dir", place.at("free")], place.at(name))
        fails(place, ["store", "repair", "--data-dir", place.at(name)], place.at(name))
        fails(place, ["store", "backup", "--data-dir", place.at(name), place.at("free/backup")], place.at(name))
    fails(place, ["store", "check", place.at("pipe")], place.at("pipe"))
    fails(place, ["store", "check", place.at("empty")], place.at("empty"))
    fails(place, ["store", "check", "/dev/null"], "/dev/null")
    fails(place, ["store", "check", place.at("nowhere")], place.at("nowhere"))
    expect("nothing was made", os.listdir(place.at("free")), [])


def servers(place):
    for name in ("locked", "locked/new", "junk", "dir-as-store"):
        for command in ("up", "serve"):
            fails(place, [command, "--listen", "127.0.0.1:0", "--data-dir", place.at(name)], place.at(name))
    free = ["--listen", "127.0.0.1:0", "--data-dir", place.at("free/data")]
    for flag in ("--import", "--nodes-file", "--scheduler-config"):
        for name in ("locked", "locked/inside", "nowhere"):
            fails(place, ["up", *free, flag, place.at(name)], place.at(name))
    fails(place, ["up", *free, "--node-cpu", "four"], "--node-cpu")
    fails(place, ["up", *free, "--node-memory", "-1Gi"], "--node-memory")
    expect("nothing was made", os.listdir(place.at("free")), [])


def people(place):
    for name in ("locked", "locked/inside", "nowhere", "empty"):
        for command in (["whatif"], ["explain", "pod", "p"], ["shares"]):
            fails(place, [*command, "-f", place.at(name)], place.at(name))
    asks = (["explain", "pod", "p"], ["reserve", "list"], ["migrate", "pod", "p"], ["shares"], ["scheduler"], ["controllers"],
            ["arbitrator"], ["explain", "consumer", "c"], ["explain", "machine", "m"], ["fleet", "tree"], ["fleet", "scheduler"],
            ["fleet", "poollet", "--pool", "a", "--runtime", "unix:///nowhere"],
            ["fleet", "broker", "--listen", "unix://" + place.at("free/b.sock")])
    for words in asks:
        for name in ("locked/inside", "nowhere", "junk"):
            fails(place, [*words, "--kubeconfig", place.at(name)], place.at(name))
            fails(place, words, place.at(name), KUBECONFIG=place.at(name))
        fails(place, words, place.at("locked"), HOME=place.at("locked"))
    for words in (["token", "list"], ["certificate", "list"]):
        fails(place, [*words, "--data-dir", place.at("locked")], place.at("locked"))


def providers(place):
    listen = ["--listen", "unix://" + place.at("free/p.sock"), "--capacity", "cpu=4"]
    for name in ("locked", "locked/new", "junk", "dir-as-store"):
        fails(place, ["fleet", "provider", *listen, "--data-dir", place.at(name)], place.at(name))
        fails(place, ["fleet", "resize", "--capacity", "cpu=4", "--data-dir", place.at(name)], place.at(name))
    free = ["--data-dir", place.at("free/provider")]
    for name in ("locked/inside", "nowhere", "locked"):
        fails(place, ["fleet", "provider", *listen, *free, "--classes", place.at(name)], place.at(name))
    fails(place, ["fleet", "provider", "--capacity", "cpu=4", "--listen", "unix://" + place.at("locked/p.sock"), *free],
          place.at("locked/p.sock"))
    expect("nothing was made", os.listdir(place.at("free")), [])


def plans(place):
    plan = ["agent", "plan", "--topology", "synthetic:pu:2", "-f"]
    for name in ("locked", "locked/inside", "nowhere", "empty", "junk"):
        fails(place, [*plan, place.at(name)], "")
        fails(place, ["agent", "plan", "-f", place.at("node.yaml"), "--topology", place.at(name) + ".json"], place.at(name))
        for flag in ("--usage", "--slo", "--kubelet-config", "--cpu-manager-state"):
            fails(place, [*plan, place.at("node.yaml"), flag, place.at(name)], place.at(name))


def starts_or_says_why_not(place, words, limit):
    started = place.start(words, [limit])
    hangs = threading.Timer(60, started.kill)
    hangs.start()
    said = started.stdout.readline()
    hangs.cancel()
    if said.startswith("berth: ready"):
        started.terminate()
    trouble = started.communicate(timeout=60)[1]
    what = f"berth {' '.join(words)} within {limit}: {trouble}"
    expect(what, started.returncode, 0 if said else 1)
    if not said:
        expect(what, trouble.splitlines()[-1].startswith("berth " + words[0]), True)


def limits(place):
    """Of the size of files, of open ones, of threads: trouble like any other."""
    free = ["--listen", "127.0.0.1:0", "--data-dir", place.at("free/data")]
    provider = ["fleet", "provider", "--listen", "unix://" + place.at("free/p.sock"), "--capacity", "cpu=4", "--data-dir",
                place.at("free/provider")]
    for words in (["up", *free], ["serve", *free], provider):
        for limit in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 12), (resource.RLIMIT_NPROC, 3), (resource.RLIMIT_NPROC, 8)):
            starts_or_says_why_not(place, words, limit)
    with open("/dev/full", "w") as full:
        for words in (["version"], ["help"], ["whatif", "-f", place.at("node.yaml")], ["completion", "bash"]):
            fails(place, words, "", stdout=full)


def completion_is_silent(place):
    for variable in ("HOME", "KUBECONFIG"):
        code, _, trouble = place.run(["__complete", "explain", "pod", ""], **{variable: place.at("locked/inside")})
        expect("completion", (code, trouble), (0, ""))


def test(berth):
    with Place(berth) as place:
        stores(place)
        servers(place)
        people(place)
        providers(place)
        plans(place)
        limits(place)
        completion_is_silent(place)


if __name__ == "__main__":
    test(sys.argv[1])
    print("trouble: passed")
