"""A berth server for one test, and plain requests to it."""
import atexit
import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request


failed = []


def expect(what, true):
    """Goes on where it does not hold; whoever has many expectations ends by whether any failed."""
    if not true:
        failed.append(what)
        print("FAILED:", what, flush=True)


def must(holds, sentence):
    """Ends the test where it does not hold."""
    if not holds:
        raise SystemExit(sentence)


class Server:
    def __init__(self, berth, *flags, command="serve", folder=None, port=0, **how):
        self.dir = folder or tempfile.mkdtemp(prefix="berth-test-")
        self.berth, self.command = berth, command
        self.start("--listen", "127.0.0.1:%d" % port, *flags, **how)

    def start(self, *flags, **how):
        """Also again, after the process has ended."""
        self.run([self.berth, self.command, "--data-dir", self.dir, *flags], **how)

    def run(self, words, **how):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **how)
        atexit.register(self.process.kill)  # also when a check fails: nobody waits for it then
        line = self.process.stdout.readline()
        found = re.match(r"berth: ready (https?://\S+) kubeconfig=(\S+)", line)
        if not found:
            self.process.terminate()
            raise SystemExit("the server did not start: %sexit code %s" % (line, self.process.wait(20)))
        self.url, self.kubeconfig = found.groups()
        self.port = int(self.url.rsplit(":", 1)[1])
        if self.url.startswith("http:"):
            return
        self.tls = ssl.create_default_context(cafile=self.dir + "/pki/ca.crt")
        self.tls.load_cert_chain(self.dir + "/pki/admin.crt", self.dir + "/pki/admin.key")

    def ask(self, method, path, body=None, kind="application/json"):
        """The code and the document (or text) of the answer."""
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=20) as answer:
                code, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            code, text = error.code, error.read()
        try:
            return code, json.loads(text)
        except ValueError:
            return code, text.decode(errors="replace")

    def merge(self, path, body):
        return self.ask("PATCH", path, body, "application/merge-patch+json")

    def memory_kb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def stop(self):
        """The exit code after SIGTERM."""
        self.process.terminate()
        code = self.process.wait(20)
        shutil.rmtree(self.dir, ignore_errors=True)
        return code


def fresh_home():
    """A folder for kubectl's cache, gone when the test ends."""
    home = tempfile.mkdtemp(prefix="berth-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def environment(home, kubeconfig):
    out = dict(os.environ, HOME=home, KUBECONFIG=kubeconfig)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        out.pop(name, None)
    return out
