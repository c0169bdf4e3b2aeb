"""A server that starts again says how many objects it found, as many as `berth store check` counts."""
import re
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as place:
    def start():
        process = subprocess.Popen([sys.argv[1], "serve", "--data-dir", place, "--listen", "127.0.0.1:0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ready = process.stdout.readline()
        process.kill()
        said = re.search(r'"Opened the store".* objects=(\d+)', process.communicate()[1])
        if not ready.startswith("berth: ready") or not said:
            sys.exit(f"the server said {ready!r} and {said}")
        return int(said.group(1))

    first = start()
    checked = subprocess.run([sys.argv[1], "store", "check", "--data-dir", place], capture_output=True, text=True).stdout
    stored = int(re.search(r"(\d+) objects", checked).group(1))
    second = start()
if (first, second) != (0, stored) or stored == 0:
    sys.exit(f"found {first} at first and {second} after the kill, stored {stored}")
print("restart: passed,", stored, "objects")
