#!/usr/bin/env python3
"""package_test.py BUILD: the .deb that `make package` makes has the program, its units, its manifests and its documents, names the
libraries it needs, and what it unpacks to runs."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")


def run(*words, **how):
    return subprocess.run(words, check=True, capture_output=True, text=True, **how).stdout


def expect(condition, sentence):
    if not condition:
        raise SystemExit("package: " + sentence)


def main():
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="berth-package-") as room:
        # Light compression: the content counts here.
        run("cpack", "--config", build + "/CPackConfig.cmake", "-B", room, "-D", "CPACK_OUTPUT_FILE_PREFIX=" + room + "/out",
            "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip", cwd=build)
        debs = [name for name in os.listdir(room + "/out") if name.endswith(".deb")]
        expect(len(debs) == 1 and re.fullmatch(r"berth_[0-9][^_]*_[a-z0-9]+\.deb", debs[0]), "it is called %s" % debs)
        deb = os.path.join(room, "out", debs[0])
        fields = run("dpkg-deb", "-f", deb)
        for library in ("libc6", "libssl3", "libsqlite3-0"):
            expect(re.search(r"^Depends:.*\b%s\b" % library, fields, re.M), "it does not need %s:\n%s" % (library, fields))
        run("dpkg-deb", "-x", deb, room + "/root")
        at = room + "/root/"
        expect(run(at + "usr/bin/berth", "version").startswith("berth"), "the program does not run")
        for unit in os.listdir(os.path.join(ROOT, "deploy", "systemd")):
            with open(at + "usr/lib/systemd/system/" + unit, encoding="utf-8") as file:
                program = re.search(r"^ExecStart=(\S+)", file.read(), re.M).group(1)
            expect(os.access(at + program.lstrip("/"), os.X_OK), "%s starts %s, which is not in it" % (unit, program))
        for source, place in (("deploy/base", "usr/share/berth/base"), ("deploy/webhook", "usr/share/berth/webhook"),
                              ("deploy/arbitrator", "usr/share/berth/arbitrator"),
                              ("deploy/helm", "usr/share/berth/helm"), ("docs/operating", "usr/share/doc/berth/operating"),
                              ("docs/concepts", "usr/share/doc/berth/concepts"), ("docs/reference", "usr/share/doc/berth/reference")):
            for folder, _, files in os.walk(os.path.join(ROOT, source)):
                for name in files:
                    inside = os.path.join(at, place, os.path.relpath(os.path.join(folder, name), os.path.join(ROOT, source)))
                    expect(os.path.exists(inside), "%s is not in it" % os.path.relpath(inside, at))
        for folder, folders, files in os.walk(at):
            for name in folders + files:
                path = os.path.join(folder, name)
                expect(os.path.exists(path), "%s leads nowhere" % path)
                expect(os.stat(path).st_mode & 0o022 == 0, "others may write to %s" % path)
        print("package: passed,", debs[0])
    return 0


sys.exit(main())
