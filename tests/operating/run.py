#!/usr/bin/env python3
"""run.py BERTH DOCUMENT: runs the sh blocks of a document, in order, in a new directory that holds a small store."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

berth, document = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
blocks = re.findall(r"^```sh\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
if not blocks:
    sys.exit(f"{document} has no sh blocks")
with tempfile.TemporaryDirectory() as place:
    # Where no kubectl is installed, the one that the conformance tests unpacked.
    path = f"{berth.parent}:{os.environ['PATH']}:{berth.parent}/kubernetes-client/usr/bin"
    script = "set -eux\nberth bench StoreRecover100k --pods 100 --data-dir berth-data > /dev/null\n" + "".join(blocks)
    sys.exit(subprocess.run(["bash", "-c", script], cwd=place, env={**os.environ, "PATH": path}).returncode)
