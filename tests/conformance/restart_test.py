"""A server that starts again says how many objects it found, as many as `berth store check` counts; in words or as JSON."""
import json
import re
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as place:
    def log(*flags):
        process = subprocess.Popen([sys.argv[1], "serve", "--data-dir", place, "--listen", "127.0.0.1:0", *flags],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ready = process.stdout.readline()
        process.kill()
        said = process.communicate()[1]
        if not ready.startswith("berth: ready"):
            sys.exit(f"the server said {ready!r} and {said!r}")
        return said

    def found(said):
        return int(re.search(r'"Opened the store".* objects=(\d+)', said).group(1))

    first = found(log())
    checked = subprocess.run([sys.argv[1], "store", "check", "--data-dir", place], capture_output=True, text=True).stdout
    stored = int(re.search(r"(\d+) objects", checked).group(1))
    second = found(log())
    lines = [json.loads(line) for line in log("--logging-format", "json").splitlines()]
    quiet = log("--log-level", "warning")
if (first, second) != (0, stored) or stored == 0:
    sys.exit(f"found {first} at first and {second} after the kill, stored {stored}")
if [line["objects"] for line in lines if line["msg"] == "Opened the store"] != [stored] or quiet:
    sys.exit(f"as JSON: {lines}; of warnings: {quiet!r}")
print("restart: passed,", stored, "objects")
