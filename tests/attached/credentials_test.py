"""Who an attached process is: a kubeconfig with an exec plugin whose token expires, or is taken away, meanwhile; several files
in KUBECONFIG; a proxy. Commands of a person take the same ways.

credentials_test.py BERTH
"""
import base64
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from attached import bound, check, create_pods, plain, until  # noqa: E402
from server import Server  # noqa: E402

V1 = "client.authentication.k8s.io/v1"


class Proxy:
    """Opens tunnels (CONNECT) for whoever knows the word, and counts them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096)
        self.asked.append(head.split(b"\r\n")[0].decode())
        if b"Proxy-Authorization: Basic " + base64.b64encode(b"me:word") not in head:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return client.close()
        host, port = self.asked[-1].split()[1].rsplit(":", 1)
        server = socket.create_connection((host, int(port)))
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        other = {client: server, server: client}
        while True:
            for ready in select.select([client, server], [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return [end.close() for end in other]
                other[ready].sendall(data)


class Files:
    """Kubeconfigs of one server, and a plugin for them."""

    def __init__(self, server):
        self.server = server
        self.dir = tempfile.mkdtemp(prefix="berth-credentials-")
        with open(server.dir + "/pki/ca.crt", "rb") as file:
            self.ca = base64.b64encode(file.read()).decode()

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text, mode=0o600):
        with open(self.path(name) + ".new", "w") as file:
            file.write(text)
        os.chmod(self.path(name) + ".new", mode)
        os.rename(self.path(name) + ".new", self.path(name))
        return self.path(name)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def kubeconfig(self, name, user, **cluster):
        document = {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {"server": self.server.url, "certificate-authority-data": self.ca, **cluster}}],
                    "users": [{"name": "u", "user": user}]}
        return self.write(name, json.dumps(document))

    def plugin(self, name, text):
        """A kubeconfig whose user is what a script says; the script writes a line to NAME.runs each time."""
        self.write(name + ".runs", "")
        self.write(name + ".sh", f"#!/bin/sh\ncd {self.dir}\necho run >> {name}.runs\n{text}\n", 0o700)
        return self.kubeconfig(name, {"exec": {"apiVersion": V1, "command": f"./{name}.sh", "interactiveMode": "Never"}})

    def runs(self, name):
        return self.read(name + ".runs").count("run")

    def token(self, *more):
        """(token, id) of a new one."""
        done = subprocess.run([self.server.berth, "token", "create", "--data-dir", self.server.dir, "--user", "berth-scheduler",
                               "--groups", "berth:schedulers", *more], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip(), done.stderr.split()[1]

    def revoke(self, *ids):
        subprocess.run([self.server.berth, "token", "revoke", "--data-dir", self.server.dir, *ids],
                       stdout=subprocess.DEVNULL, check=True, timeout=60)


def say(token, expires="$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%SZ)"):
    return (f'cat <<END\n{{"apiVersion":"{V1}","kind":"ExecCredential","status":'
            f'{{"token":"{token}","expirationTimestamp":"{expires}"}}}}\nEND')


class Scheduler:
    def __init__(self, server, kubeconfig, port="0"):
        address = f"127.0.0.1:{port}" if port != "0" else "0"
        self.process = subprocess.Popen([server.berth, "scheduler", "--kubeconfig", kubeconfig, "--metrics-bind-address", address],
                                        stderr=subprocess.PIPE, text=True)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        errors = self.process.communicate(timeout=60)[1]
        check(self.process.returncode == 0, f"SIGTERM gave {self.process.returncode}: {errors}")
        return errors


def token_is_taken_away_meanwhile(server, files):
    """The server refuses the old token from one moment to the next; the plugin says the new one."""
    token, old = files.token()
    files.write("now", token)
    scheduler = Scheduler(server, files.plugin("rotated", say("$(cat now)")))
    create_pods(server, "before", 5)
    until("5 pods are bound", lambda: bound(server, "before") == 5)
    first = files.runs("rotated")
    check(first == 1, f"the plugin was run {first} times for one connection")
    files.write("now", files.token()[0])
    files.revoke(old)
    create_pods(server, "after", 5)
    until("5 more pods are bound", lambda: bound(server, "after") == 5)
    scheduler.end()
    check(files.runs("rotated") == 2, f"the plugin was run {files.runs('rotated')} times for one rotation")


def token_expires_meanwhile(server, files, port):
    """Each token counts for twelve seconds. It is renewed before, so nobody is ever refused."""
    create = f"{server.berth} token create --data-dir {server.dir} --user berth-scheduler --groups berth:schedulers --duration 12s 2> /dev/null"
    scheduler = Scheduler(server, files.plugin("short", f"end=$(date -u -d '+12 seconds' +%Y-%m-%dT%H:%M:%SZ)\ntoken=$({create})\n"
                                               + say("$token", "$end")), port)
    until("the scheduler is ready", lambda: plain(f"{port}/readyz") == (200, "ok"))
    for lives in range(1, 4):
        until(f"token {lives} is there", lambda: files.runs("short") >= lives)
        create_pods(server, f"life{lives}", 3)
        until("3 pods are bound", lambda: bound(server, f"life{lives}") == 3)
    refused = re.findall(r'rest_client_requests_total\{code="401".*', plain(f"{port}/metrics")[1])
    check(not refused, f"requests were refused: {refused}")
    errors = scheduler.end()
    # A watch that an older token opened ends with that token; the next one goes on from its bookmark.
    for words in ("answered 401", "the watch ended with 401"):
        check(words not in errors, errors)


def failing_plugin_is_named(server, files):
    config = files.plugin("fails", "echo 'Error: please log in' >&2; exit 7")
    for command in (["scheduler"], ["explain", "pod", "before-0"]):
        done = subprocess.run([server.berth, *command, "--kubeconfig", config], capture_output=True, text=True, timeout=60)
        check(done.returncode == 1 and done.stderr.endswith('fails.sh" ended with 7: Error: please log in\n'), done.stderr)


def explain(server, *flags, **environment):
    done = subprocess.run([server.berth, "explain", "pod", "before-0", *flags], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout + done.stderr


def person_has_several_files(server, files):
    """The context of one file, the user of the next."""
    files.write("now", files.token()[0])
    users = json.loads(files.read(os.path.basename(files.plugin("person", say("$(cat now)")))))["users"]
    token = files.token()[0]
    rest = json.loads(files.read(os.path.basename(files.kubeconfig("rest", {"token": token}))))
    rest["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "other", "namespace": "elsewhere"}})
    rest["users"] = [{"name": "other", "user": {"token": token}}]
    files.write("a", json.dumps({"users": users}))
    files.write("b", json.dumps(rest))
    both = files.path("a") + ":" + files.path("b") + ":" + files.path("none")
    code, text = explain(server, KUBECONFIG=both)
    check(code == 0 and files.runs("person") == 1, text)
    code, text = explain(server, "--context", "other", KUBECONFIG=both)
    check(code == 1 and 'pods "before-0" not found' in text, text)
    code, text = explain(server, "--context", "third", KUBECONFIG=both)
    check(code == 1 and text.endswith('contexts has no entry named "third"\n'), text)


def proxy_is_used(server, files):
    proxy = Proxy()
    token = files.token()[0]
    config = files.kubeconfig("proxied", {"token": token}, **{"proxy-url": f"http://me:word@127.0.0.1:{proxy.port}"})
    scheduler = Scheduler(server, config)
    create_pods(server, "proxied", 5)
    until("5 pods are bound", lambda: bound(server, "proxied") == 5)
    check(proxy.asked and set(proxy.asked) == {f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"}, f"{proxy.asked}")
    scheduler.end()
    config = files.kubeconfig("unknown", {"token": token}, **{"proxy-url": f"http://127.0.0.1:{proxy.port}"})
    code, text = explain(server, "--kubeconfig", config)
    check(code == 1 and "answered 407 Proxy Authentication Required" in text, text)
    config = files.kubeconfig("tls", {"token": token}, **{"proxy-url": "https://proxy"})
    code, text = explain(server, "--kubeconfig", config)
    check(code == 1 and "proxy-url is a proxy with TLS of its own, which is not supported" in text, text)


def main():
    server = Server(os.path.abspath(sys.argv[1]), "--in-memory", "--no-scheduler", command="up")
    files = Files(server)
    try:
        token_is_taken_away_meanwhile(server, files)
        token_expires_meanwhile(server, files, 10000 + server.port % 20000)
        failing_plugin_is_named(server, files)
        person_has_several_files(server, files)
        proxy_is_used(server, files)
    finally:
        server.stop()
    print("5 passed, 0 failed")


main()
