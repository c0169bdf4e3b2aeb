"""A real Kubernetes on loopback for one test: etcd, kube-apiserver, kube-controller-manager, simulated nodes, Berth."""
import base64
import concurrent.futures
import http.client
import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from certificates import Authority
from processes import Process, free_port, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
PODS = "/api/v1/namespaces/default/pods"


class Cluster:
    """Use as a context; whatever was started ends with it."""

    def __init__(self, programs, berth, controllers=True, server_flags=(), audit=None, keep=False):
        self.bin = pathlib.Path(programs)
        self.berth = berth
        self.keep = keep
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="berth-kubernetes-"))
        self.processes = []
        self.server_flags = list(server_flags)
        if audit:
            (self.dir / "audit.json").write_text(json.dumps(audit))
            self.server_flags += ["--audit-policy-file", self.dir / "audit.json", "--audit-log-path", self.dir / "audit.log"]
        self.authority = Authority(self.dir / "pki")
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.admin = self.kubeconfig("admin", "admin", "system:masters")
        self._tls = self.identity("admin", "system:masters")
        try:
            self._start(controllers)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *trouble):
        if trouble[0]:
            self.tell_logs()
        self.close()

    # -- parts

    def run(self, name, *words, **more):
        """Starts a process whose log is NAME.log."""
        process = Process(words, self.dir / f"{name}.log", **more)
        process.name = name
        self.processes.append(process)
        return process

    def kubeconfig(self, file, user, group=None):
        """A kubeconfig with a client certificate of the user."""
        cert, key = self.authority.client(file, user, group)
        path = self.dir / f"{file}.kubeconfig"
        text = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": self.url,
                              "certificate-authority-data": _base64(self.authority.cert)}}],
                "users": [{"name": user, "user": {"client-certificate": str(cert), "client-key": str(key)}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}]}
        path.write_text(json.dumps(text))
        path.chmod(0o600)
        return path

    def _start(self, controllers):
        self.etcd_port = free_port()
        self.start_etcd()
        self.serving = self.authority.serving("kube-apiserver", ["127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"])
        self.start_server()
        if controllers:
            self.run("kube-controller-manager", self.bin / "kube-controller-manager", "--kubeconfig", self.admin,
                     "--leader-elect=false", "--use-service-account-credentials=false", "--secure-port", free_port(),
                     "--service-account-private-key-file", self.dir / "pki/kube-apiserver.key",
                     "--root-ca-file", self.authority.cert, "--bind-address=127.0.0.1",
                     "--kube-api-qps=500", "--kube-api-burst=1000")
            wait_for("the service account of the default namespace",
                     lambda: self.ask("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200)

    def start_etcd(self):
        # The disk is not what these tests are about; what a power cut does to etcd neither.
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, free_port()))
        self.etcd = self.run("etcd", self.bin / "etcd", "--data-dir", self.dir / "etcd", "--listen-client-urls", client,
                             "--advertise-client-urls", client, "--listen-peer-urls", peer,
                             "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
                             "--unsafe-no-fsync", "--quota-backend-bytes=4294967296")

    def start_server(self):
        cert, key = self.serving
        self.server = self.run(
            "kube-apiserver", self.bin / "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            "--secure-port", self.port, "--tls-cert-file", cert, "--tls-private-key-file", key,
            "--client-ca-file", self.authority.cert, "--authorization-mode=Node,RBAC",
            "--service-account-key-file", cert, "--service-account-signing-key-file", key,
            "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
            "--shutdown-delay-duration=0s", "--delete-collection-workers=8", *self.server_flags)
        wait_for("kube-apiserver is ready", self.ready)

    def ready(self):
        if not self.server.alive():
            raise SystemExit("kube-apiserver ended:\n" + self.server.tail())
        return self.ask("GET", "/readyz")[0] == 200

    def nodes(self, count, capacity="cpu=4,memory=32Gi,pods=110", prefix="node-", **flags):
        """Simulated nodes, all Ready."""
        words = [self.bin / "kubelet", "--kubeconfig", self.admin, "--nodes", count, "--capacity", capacity,
                 "--prefix", prefix]
        for name, value in flags.items():
            words += [f"--{name}={value}"]
        kubelet = self.run(f"kubelet-{prefix}", *words, stdin=subprocess.PIPE)
        wait_for("simulated nodes are ready", lambda: kubelet.printed("^ready$") or _must_live(kubelet), 300)
        return kubelet

    def close(self):
        for process in reversed(self.processes):
            process.stop()
        if self.keep:
            print(f"  kept: {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def tell_logs(self):
        for process in self.processes:
            if "berth" in process.name or not process.alive():
                print(f"--- {process.name}\n{process.tail()}", flush=True)

    # -- requests

    def identity(self, user, group=None):
        """What ask() needs to ask as another user."""
        cert, key = self.authority.client(f"user-{user}", user, group)
        context = ssl.create_default_context(cafile=self.authority.cert)
        context.load_cert_chain(cert, key)
        return context

    def ask(self, method, path, body=None, kind="application/json", seconds=60, tls=None):
        """The code and the document of the answer; code 0 when nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPSHandler(context=tls or self._tls))
        try:
            with opener.open(request, timeout=seconds) as answer:
                code, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            code, text = error.code, error.read()
        except (OSError, http.client.HTTPException):
            return 0, None
        try:
            return code, json.loads(text)
        except ValueError:
            return code, text.decode(errors="replace")

    def watch(self, path, version):
        """What a watch tells, line by line, until the server ends it."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self._tls, timeout=60)
        try:
            connection.request("GET", f"{path}?watch=1&resourceVersion={version}")
            yield from connection.getresponse()
        finally:
            connection.close()

    def get(self, path):
        code, document = self.ask("GET", path)
        if code != 200:
            raise AssertionError(f"GET {path}: {code} {document}")
        return document

    def items(self, path):
        return self.get(path)["items"]

    def make(self, path, body):
        code, document = self.ask("POST", path, body)
        if code not in (200, 201):
            raise AssertionError(f"POST {path}: {code} {document}")
        return document

    def make_many(self, path, bodies, at_once=8):
        """Creates many objects, several at a time over kept connections; tries again while nobody answers."""
        def work(part):
            connection = None
            for body in part:
                deadline = time.monotonic() + 180
                while True:
                    try:
                        connection = connection or http.client.HTTPSConnection("127.0.0.1", self.port, context=self._tls,
                                                                               timeout=60)
                        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
                        answer = connection.getresponse()
                        text = answer.read()
                        if answer.status in (201, 409):
                            break
                        if answer.status not in (429, 500, 502, 503, 504):
                            raise AssertionError(f"POST {path}: {answer.status} {text[:300]}")
                    except (OSError, http.client.HTTPException):
                        connection = None
                    if time.monotonic() > deadline:
                        raise AssertionError(f"POST {path}: no answer within 180 s")
                    time.sleep(0.1)
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            list(pool.map(work, [bodies[i::at_once] for i in range(at_once)]))

    def kubectl(self, *words, stdin=None, kubeconfig=None, check=True):
        done = subprocess.run([str(self.bin / "kubectl"), "--kubeconfig", str(kubeconfig or self.admin), *map(str, words)],
                              input=stdin, capture_output=True, text=True, timeout=120,
                              env={"HOME": str(self.dir), "PATH": "/usr/bin:/bin"})
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
        return done.stdout + (done.stderr if not check else "")

    def apply(self, *objects):
        text = "\n---\n".join(json.dumps(entry) for entry in objects)
        return self.kubectl("apply", "-f", "-", stdin=text)

    def clear(self, *paths):
        """Deletes pods and reservations, or what is under the paths, and waits until they are gone."""
        def gone(path):
            self.ask("DELETE", path + "?gracePeriodSeconds=0", {}, seconds=60)
            return not self.items(path)
        for path in paths or (PODS, RESERVATIONS):
            wait_for(f"{path} is empty", lambda path=path: gone(path))

    def restart_server(self):
        self.server.stop(30)
        self.start_server()


def _base64(path):
    return base64.b64encode(pathlib.Path(path).read_bytes()).decode()


def _must_live(process):
    if not process.alive():
        raise SystemExit(f"{process.name} ended:\n{process.tail()}")
    return False


def elapsed(start):
    return f"{time.monotonic() - start:.1f} s"
