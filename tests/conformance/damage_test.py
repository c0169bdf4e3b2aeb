"""What a killed server left is damaged or removed: the next start and `berth store check` refuse with a sentence, or nothing is
lost; and writes after the data directory was removed are not acknowledged."""
import os
import shutil
import signal
import subprocess
import sys

from server import Server, must

MAPS = "/api/v1/namespaces/default/configmaps"
FRAME = 24 + 4096


def start(berth, place):
    """The exit code and what was said; None when it serves."""
    process = subprocess.Popen([berth, "serve", "--data-dir", place, "--listen", "127.0.0.1:0"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.stdout.readline().startswith("berth: ready"):
        process.kill()
        process.communicate()
        return None, ""
    said = process.communicate(timeout=20)[1]
    return process.returncode, said


def refuses(berth, place, what):
    code, said = start(berth, place)
    must(code == 1 and "has lost acknowledged writes" in said and "berth store restore" in said,
           "%s: the start ended with %s and said %r" % (what, code, said))
    checked = subprocess.run([berth, "store", "check", "--data-dir", place], capture_output=True, text=True)
    must(checked.returncode == 1 and "was acknowledged and it ends with" in checked.stderr,
           "%s: check said %r" % (what, checked.stdout + checked.stderr))


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 16]))


def killed_store(berth):
    server = Server(berth)
    for number in range(210):
        code, answer = server.ask("POST", MAPS, {"metadata": {"name": "m%d" % number}, "data": {"v": "x" * 100}})
        must(code == 201, "%d %s" % (code, answer))
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    return server


def damaged_files(berth):
    server = killed_store(berth)
    try:
        with open(server.dir + "/store.db-wal", "rb") as file:
            frames = len(file.read().rstrip(b"\0")) // FRAME
        for what, damage in (
                ("a flipped bit in a frame", lambda place: flip(place + "/store.db-wal", 32 + (frames // 2) * FRAME + 1000)),
                ("a flipped bit in the last frame", lambda place: flip(place + "/store.db-wal", 32 + (frames - 1) * FRAME + 1000)),
                ("no write-ahead log", lambda place: os.remove(place + "/store.db-wal"))):
            copy = server.dir + "-copy"
            shutil.copytree(server.dir, copy)
            try:
                damage(copy)
                refuses(berth, copy, what)
                mended = subprocess.run([berth, "store", "repair", "--accept-loss", "--data-dir", copy],
                                        capture_output=True, text=True)
                must(mended.returncode == 0, what + ": " + mended.stderr)
                must(start(berth, copy)[0] is None, what + ": it does not start after the repair")
            finally:
                shutil.rmtree(copy)
        must(start(berth, server.dir)[0] is None, "the store itself does not start")
    finally:
        while os.path.exists(server.dir):  # the server may make a file in it meanwhile
            shutil.rmtree(server.dir, ignore_errors=True)
    return frames


def removed_directory(berth):
    server = Server(berth)
    try:
        while os.path.exists(server.dir):  # the server may make a file in it meanwhile
            shutil.rmtree(server.dir, ignore_errors=True)
        code, answer = server.ask("POST", MAPS, {"metadata": {"name": "late"}})
        must(code >= 500, "a write into a removed directory was answered with %d" % code)
        must("was removed or replaced" in str(answer), "it was answered with %s" % answer)
        must(server.ask("GET", MAPS)[0] == 200, "reads do not go on")
    finally:
        server.stop()


berth = sys.argv[1]
frames = damaged_files(berth)
removed_directory(berth)
print("damage: passed,", frames, "frames")
