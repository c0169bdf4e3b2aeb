#!/usr/bin/env python3
"""backup_test.py BERTH: a backup holds what a restore needs. Kubeconfigs and tokens of before are good where it was restored, those that
were revoked are not; a backup without keys, or with odd ones, says so."""
import os
import shutil
import sqlite3
import ssl
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

from server import Server, must

MAPS = "/api/v1/namespaces/default/configmaps"


def berth(*words, code=0):
    done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, timeout=60)
    must(done.returncode == code, "%s: exit code %d, %s" % (" ".join(words), done.returncode, done.stdout + done.stderr))
    return done.stdout + done.stderr


def status(server, tls, token=None):
    headers = {"Authorization": "Bearer " + token} if token else {}
    try:
        request = urllib.request.Request(server.url + MAPS + "/kept", headers=headers)
        with urllib.request.urlopen(request, context=tls, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError as error:
        return type(error.reason).__name__


def restored(folder, port):
    """A server on a restored directory, at the address that kubeconfigs know."""
    return Server(sys.argv[1], folder=folder, port=port)


def main():
    room = tempfile.mkdtemp(prefix="berth-backup-")
    server = Server(sys.argv[1])
    must(server.ask("POST", MAPS, {"metadata": {"name": "kept"}})[0] == 201, "no object")
    good = berth("token", "create", "--user", "ann", "--groups", "system:masters", "--data-dir", server.dir).split()[0]
    bad = berth("token", "create", "--user", "eve", "--groups", "system:masters", "--data-dir", server.dir).split()[0]
    berth("token", "revoke", "--user", "eve", "--data-dir", server.dir)
    whole, bare = os.path.join(room, "whole.db"), os.path.join(room, "bare.db")
    said = berth("store", "backup", whole, "--data-dir", server.dir)
    must("private keys among them" in said, "the command does not say that there are keys in it: " + said)
    must(stat.S_IMODE(os.stat(whole).st_mode) == 0o600, "others may read it")
    said = berth("store", "backup", bare, "--without-keys", "--data-dir", server.dir)
    must("it holds no keys" in said, "the command does not say that there are no keys in it: " + said)
    must("objects" in berth("store", "check", whole), "it is not sound")
    plain = ssl.create_default_context(cafile=server.dir + "/pki/ca.crt")
    port, tls = server.port, server.tls
    came = (status(server, tls), status(server, plain, good), status(server, plain, bad))
    must(came == (200, 200, 401), "who may come in at first: %s" % (came,))
    first = server.dir
    server.process.terminate()
    must(server.process.wait(20) == 0, "it ended badly")

    said = berth("store", "restore", whole, "--data-dir", os.path.join(room, "a"))
    must("are good again" in said, said)
    for folder, _, files in os.walk(os.path.join(room, "a")):
        for name in files:
            must(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) & 0o077 == 0, name + " is for everybody")
    with open(os.path.join(room, "a", "store.db"), "rb") as file:
        must(b"PRIVATE KEY" not in file.read(), "keys are left in the store's file")
    again = restored(os.path.join(room, "a"), port)
    came = (status(again, tls), status(again, plain, good), status(again, plain, bad))
    must(came == (200, 200, 401), "after the restore: %s" % (came,))
    again.stop()

    said = berth("store", "restore", bare, "--data-dir", os.path.join(room, "b"))
    must("will not do" in said, said)
    again = restored(os.path.join(room, "b"), port)
    must(status(again, tls) != 200 and status(again, again.tls) == 200, "keys came from nowhere")
    again.stop()

    # What is there stays: it is newer.
    berth("token", "revoke", "--user", "ann", "--data-dir", first)
    said = berth("store", "restore", whole, "--force", "--data-dir", first)
    must("stay as they are" in said, said)
    again = restored(first + "/", port)
    must((status(again, tls), status(again, plain, good)) == (200, 401), "a token that was revoked since is good again")
    again.stop()

    # A backup that was tampered with.
    for name, text in (("../evil", None), ("/tmp/evil", None), ("pki/../../evil", None), ("pki/ca.key", "changed")):
        copy, target = os.path.join(room, "copy.db"), os.path.join(room, "evil")
        shutil.copy(whole, copy)
        with sqlite3.connect(copy) as database:
            if text:
                database.execute("UPDATE companion SET bytes = ? WHERE name = ?", (text, name))
            else:
                database.execute("UPDATE companion SET name = ? WHERE name = 'pki/ca.key'", (name,))
        database.close()
        berth("store", "check", copy, code=1)
        berth("store", "restore", copy, "--data-dir", target, code=1)
        must(not os.path.exists(os.path.join(target, "store.db")) and not os.path.exists(target + "/pki"), name + " left something behind")
    shutil.rmtree(room)
    print("backup: passed")
    return 0


sys.exit(main())
