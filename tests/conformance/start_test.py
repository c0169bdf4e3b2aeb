#!/usr/bin/env python3
"""start_test.py BERTH: what a start leaves behind, and what happens where nothing can be read. A directory that was there keeps its mode;
a start that fails takes back what it made, and nothing else; no command ends by a signal, whatever the data directory is."""
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

from server import Server, expect, failed

NOBODY = 65534


def run(*words, user=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, user=user)
    return done.returncode, done.stdout + done.stderr


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def tree(path):
    """Every name below a folder, with the bytes of its file."""
    out = {}
    for folder, folders, files in os.walk(path):
        for name in folders:
            out[os.path.relpath(os.path.join(folder, name), path)] = None
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                out[os.path.relpath(os.path.join(folder, name), path)] = file.read()
    return out


def modes_stay(berth, room):
    there = os.path.join(room, "shared")
    os.mkdir(there)
    os.chmod(there, 0o755)
    code, said = run(berth, "up", "--data-dir", there, "--listen", "nowhere:1:2")
    expect("a start that fails changes no mode: %o, %s" % (mode(there), said), code == 1 and mode(there) == 0o755)
    server = Server(berth, folder=there)
    expect("a directory that was there keeps its mode: %o" % mode(there), mode(there) == 0o755)
    for name in os.listdir(there):
        path = os.path.join(there, name)
        expect("%s is for its owner alone: %o" % (name, mode(path)), mode(path) & 0o077 == 0)
    expect("it ends well", server.stop() == 0)
    made = os.path.join(room, "made", "by", "us")
    server = Server(berth, folder=made)
    expect("one that a start makes is its owner's alone: %o" % mode(made), mode(made) == 0o700)
    expect("it ends well", server.stop() == 0)


def failures(taken):
    """Starts that fail at different points, as flags."""
    bad = os.path.join(os.path.dirname(taken["file"]), "bad.yaml")
    with open(bad, "w", encoding="utf-8") as file:
        file.write("apiVersion: v1\nkind: Nonsense\nmetadata: {name: x}\n")
    yield "an address that is none", ["--listen", "nowhere:1:2"]
    yield "a port in use", ["--listen", "127.0.0.1:%d" % taken["port"]]
    yield "plain HTTP to everybody", ["--plain-http", "--listen", "0.0.0.0:0"]
    yield "no folder for the audit log", ["--listen", "127.0.0.1:0", "--audit-log", "/nonexistent/audit.log"]
    yield "no such configuration", ["--listen", "127.0.0.1:0", "--scheduler-config", "/nonexistent.yaml"]
    yield "no such nodes", ["--listen", "127.0.0.1:0", "--nodes-file", "/nonexistent.yaml"]
    yield "an import of nonsense", ["--listen", "127.0.0.1:0", "--import", bad]
    yield "in memory, a port in use", ["--in-memory", "--listen", "127.0.0.1:%d" % taken["port"]]


def nothing_is_left(berth, room):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = {"port": other.getsockname()[1], "file": os.path.join(room, "taken")}
        for what, flags in failures(taken):
            new = os.path.join(room, "new", "deep")
            code, said = run(berth, "up", "--data-dir", new, *flags)
            expect("%s: exit code %d, %s" % (what, code, said), code == 1 and said)
            expect("%s: nothing is made" % what, not os.path.exists(os.path.join(room, "new")))
            there = os.path.join(room, "there")
            os.mkdir(there, 0o750)
            with open(os.path.join(there, "mine.txt"), "w", encoding="utf-8") as file:
                file.write("kept")
            run(berth, "up", "--data-dir", there, *flags)
            expect("%s: what was there stays, alone: %s" % (what, sorted(tree(there))), tree(there) == {"mine.txt": b"kept"})
            expect("%s: the mode stays: %o" % (what, mode(there)), mode(there) == 0o750)
            shutil.rmtree(there)
            shutil.rmtree(os.path.join(room, "new"), ignore_errors=True)


def a_running_server_is_left_alone(berth, room):
    for flags in ([], ["--in-memory"]):
        server = Server(berth, "--nodes", "1", *flags, command="up")
        before = {name: data for name, data in tree(server.dir).items() if name.startswith("pki") or "kubeconfig" in name}
        code, said = run(berth, "up", "--data-dir", server.dir, "--listen", "127.0.0.1:0", *flags)
        expect("a second server on a directory is refused: %d %s" % (code, said), code == 1 and "in use by process" in said)
        after = tree(server.dir)
        expect("and takes nothing of the first", all(after.get(name) == data for name, data in before.items()))
        expect("which goes on", server.ask("GET", "/api/v1/nodes")[0] == 200)
        expect("it ends well", server.stop() == 0)
    # An older store survives a start that fails.
    server = Server(berth, "--nodes", "1", command="up")
    server.process.terminate()
    server.process.wait(20)
    run(berth, "up", "--data-dir", server.dir, "--listen", "nowhere:1:2")
    server.start("--listen", "127.0.0.1:0", "--nodes", "0")
    expect("an older store is still there", server.ask("GET", "/api/v1/nodes/node-0")[0] == 200)
    expect("it ends well", server.stop() == 0)


def no_command_ends_by_a_signal(berth, room):
    loop = os.path.join(room, "loop")
    os.symlink("loop", loop)
    plain = os.path.join(room, "plain")
    with open(plain, "w", encoding="utf-8") as file:
        file.write("no store")
    closed = os.path.join(room, "closed")
    os.mkdir(closed)
    os.chmod(closed, 0)
    os.chmod(room, 0o755)
    readable = os.path.join(room, "berth")
    shutil.copy(berth, readable)
    user = NOBODY if os.geteuid() == 0 else None
    places = {"a loop of links": loop, "a name too long": os.path.join(room, "x" * 5000), "a file": plain, "a closed directory": closed,
              "within a closed directory": os.path.join(closed, "in")}
    commands = [["store", "check"], ["store", "backup", "/nonexistent/b.db"], ["store", "restore", plain], ["store", "repair"],
                ["token", "list"], ["token", "create", "--user", "ann"], ["token", "rotate"], ["certificate", "list"],
                ["certificate", "issue", "--user", "ann", "--out", os.path.join(closed, "ann")], ["serve", "--listen", "127.0.0.1:0"],
                ["up", "--listen", "127.0.0.1:0"], ["up", "--in-memory", "--listen", "127.0.0.1:0"]]
    for what, place in places.items():
        for words in commands:
            code, said = run(readable, *words, "--data-dir", place, user=user)
            fine = code in (0, 1) if words[1] == "list" else code == 1
            expect("%s of %s: exit code %d, %s" % (" ".join(words[:2]), what, code, said), fine)
            expect("%s of %s says why" % (" ".join(words[:2]), what), code == 0 or said.startswith("berth"))
    for words in (["store", "check", loop], ["store", "check", os.path.join(closed, "b.db")], ["store", "restore", loop]):
        code, said = run(readable, *words, "--data-dir", os.path.join(room, "none"), user=user)
        expect("%s: exit code %d, %s" % (" ".join(words), code, said), code == 1 and said.startswith("berth"))
    os.chmod(closed, 0o700)


def main():
    signal.alarm(600)
    berth = sys.argv[1]
    for check in (modes_stay, nothing_is_left, a_running_server_is_left_alone, no_command_ends_by_a_signal):
        with tempfile.TemporaryDirectory(prefix="berth-start-") as room:
            check(berth, room)
    return 1 if failed else 0


sys.exit(main())
