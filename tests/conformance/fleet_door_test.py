#!/usr/bin/env python3
"""fleet_door_test.py BERTH: the machine runtime interface of `berth fleet provider` beside clients that keep to no rules, most of them
what Debian's gRPC cannot bear. Everybody else is answered, memory stays bounded, and the process ends when it is told to."""
import atexit
import os
import re
import resource
import shutil
import socket
import ssl
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib

from frames import (CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RESET, SETTINGS, WINDOW_UPDATE, Line, field, frame, head, integer,
                    message, text, varint)
from server import Server

MOST_GROWN = 320 << 10  # KiB; 128 MiB of requests, once more in gRPC
FILES = 128


class Provider:
    def __init__(self, berth, *flags, listen="127.0.0.1:0", files=None, stderr=None):
        self.dir = tempfile.mkdtemp(prefix="berth-door-")
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))) if files else None
        self.process = subprocess.Popen([berth, "fleet", "provider", "--listen", listen, "--capacity", "cpu=4,memory=16Gi", "--data-dir",
                                         self.dir, *flags], stdout=subprocess.PIPE, stderr=stderr, text=True, preexec_fn=limit)
        ready = re.match(r"berth: ready (\S+)", self.process.stdout.readline())
        assert ready, self.process.wait(10)
        self.where = listen[len("unix://"):] if listen.startswith("unix:") else int(ready.group(1).rsplit(":", 1)[1])

    def __enter__(self):
        atexit.register(self.process.kill)  # also when a check fails
        self.answers()
        self.before = self.memory_kb()
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = "not at all"
        shutil.rmtree(self.dir, ignore_errors=True)
        if kind is None and code != 0:
            raise SystemExit("FAILED: SIGTERM ends it with %s" % code)

    def memory_kb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    def answers(self, context=None):
        with Line(self.where, context) as line:
            assert b"berth" in line.call()[0]

    def holds(self, what):
        """After an attack."""
        grown = self.memory_kb() - self.before
        try:
            self.answers()
        except OSError as error:
            raise SystemExit("FAILED: after %s nobody is answered: %r" % (what, error))
        print("%-28s memory %+d MiB" % (what, grown >> 10), flush=True)
        if grown > MOST_GROWN:
            raise SystemExit("FAILED: %s: memory grew by %d MiB" % (what, grown >> 10))


def pour(provider, pieces, most=64 << 20):
    """All of them to one connection, until it is closed. How many bytes went."""
    sent = 0
    with Line(provider.where, timeout=3) as line:
        try:
            for piece in pieces:
                line.send(piece)
                sent += len(piece)
                if sent > most:
                    break
        except OSError:
            pass
    return sent


def more_connections_than_files(berth):
    with Provider(berth, files=FILES) as provider:
        lines = [socket.create_connection(("127.0.0.1", provider.where), timeout=5) for _ in range(3 * FILES)]
        provider.holds("connections")
        for line in lines:
            line.close()
        provider.holds("connections, gone")


def frames(berth):
    with Provider(berth) as provider:
        def endless(first, then):
            yield frame(HEADERS, 0, 1, first)
            while True:
                yield then

        def resets():
            for stream in range(1, 1 << 20, 2):
                yield frame(HEADERS, END_HEADERS, stream, head()) + frame(DATA, END_STREAM, stream, message()) + frame(
                    RESET, 0, stream, struct.pack("!I", 8))

        big = field("a", "b" * 16000)[:16384]
        sent = pour(provider, endless(head(), frame(CONTINUATION, 0, 1, big)))
        assert sent < 32 << 20, "%d bytes of headers were taken" % sent
        provider.holds("headers without an end")
        pour(provider, endless(head() + b"\0" + text("x") + integer(1 << 30, 7), frame(CONTINUATION, 0, 1, b"b" * 16384)))
        provider.holds("a name of a gigabyte")
        sent = pour(provider, resets())
        assert sent < 32 << 20, "%d bytes of streams that are reset were taken" % sent
        provider.holds("streams that are reset")
        for what, one in ("pings", frame(PING, 0, 0, b"12345678")), ("settings", frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 65535))):
            pour(provider, (one * 1000 for _ in range(4000)))
            provider.holds(what + " that nobody reads")
        pour(provider, (b"GET / HTTP/1.1\r\n\r\n" for _ in range(1000)))
        provider.holds("another protocol")


def half_messages(berth):
    """Twenty connections with a hundred messages each of which the last part never comes."""
    with Provider(berth) as provider:
        def pieces():
            for stream in range(1, 200, 2):
                yield frame(HEADERS, END_HEADERS, stream, head("CreateMachine")) + frame(DATA, 0, stream, b"\0" + struct.pack("!I", 4 << 20))
            while True:
                for stream in range(1, 200, 2):
                    yield frame(DATA, 0, stream, b"x" * 16384)

        senders = [threading.Thread(target=pour, args=(provider, pieces(), 256 << 20)) for _ in range(20)]
        for sender in senders:
            sender.start()
        most = 0
        while any(sender.is_alive() for sender in senders):
            most = max(most, provider.memory_kb())
            time.sleep(0.05)
        if most - provider.before > MOST_GROWN:
            raise SystemExit("FAILED: half-sent messages take %d MiB" % ((most - provider.before) >> 10))
        provider.holds("half-sent messages")


def packed(berth):
    """64 MiB in 64 KiB: a message that is larger when it is unpacked."""
    with Provider(berth) as provider:
        body = zlib.compress(b"\0" * (60 << 20), 9)
        with Line(provider.where) as line:
            line.send(frame(HEADERS, END_HEADERS, 1, head("CreateMachine", **{"grpc-encoding": "deflate"})))
            whole = message(body, flag=1)
            for begin in range(0, len(whole), 16384):
                line.send(frame(DATA, END_STREAM if begin + 16384 >= len(whole) else 0, 1, whole[begin:begin + 16384]))
            told = line.answer(1)[1]
        assert b"12" in told, "a packed message is taken: %r" % told  # UNIMPLEMENTED
        provider.holds("packed messages")


def large_words(berth):
    """What is refused is not kept: lineages and labels that are larger than anybody's."""
    def part(number, value):
        value = value if isinstance(value, bytes) else value.encode()
        return varint(number << 3 | 2) + varint(len(value)) + value

    with Provider(berth) as provider, Line(provider.where) as line:
        cpu = part(1, part(1, "cpu") + part(2, part(1, "100")))
        wordy = part(1, part(3, part(1, "key") + part(2, "v" * 17000)))
        calls = [("CreateReservation", part(1, part(2, cpu + part(10, "l" * 513)))), ("DeleteMachine", part(1, "l" * 513 + "@7")),
                 ("CreateReservation", part(1, wordy + part(2, cpu + part(10, "short"))))]
        for number, (call, body) in enumerate(calls):
            line.call(call, body, 2 * number + 1)
        listed = line.call("ListReservations", b"", 2 * len(calls) + 1)[0]
        assert len(listed) == 5, "%d bytes of reservations are kept" % len(listed)
        provider.holds("words that are too large")


def who_may(berth):
    """Only with a certificate of the authority, and a unix socket is its owner's alone."""
    keys = Server(berth)  # its certificates
    pki = keys.dir + "/pki/"
    provider = Provider(berth, "--tls-cert", pki + "server.crt", "--tls-key", pki + "server.key", "--tls-ca", pki + "ca.crt")
    try:
        nobody = ssl.create_default_context(cafile=pki + "ca.crt")
        nobody.set_alpn_protocols(["h2"])
        keys.tls.set_alpn_protocols(["h2"])
        provider.answers(keys.tls)
        for stranger in (None, nobody):
            try:
                provider.answers(stranger)
            except OSError:
                continue
            raise SystemExit("FAILED: it answers who shows no certificate")
    finally:
        provider.__exit__(None)
        keys.stop()
    place = tempfile.mkdtemp(prefix="berth-door-")
    old = os.umask(0)
    try:
        with Provider(berth, listen="unix://%s/s" % place):
            mode = stat.S_IMODE(os.stat(place + "/s").st_mode)
            assert mode == 0o600, "the socket's mode is %o" % mode
    finally:
        os.umask(old)
        shutil.rmtree(place)


def answers_that_nobody_takes(berth):
    """Seven megabytes of reservations, listed a hundred times by clients that leave no room for an answer."""
    def part(number, value):
        return varint(number << 3 | 2) + varint(len(value)) + value

    with Provider(berth) as provider:
        with Line(provider.where) as line:
            line.send(frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", 1 << 30)))  # of the connection
            ask = part(1, part(1, b"cpu") + part(2, part(1, b"1m")))
            wordy = part(1, part(3, part(1, b"key") + part(2, b"v" * 15000)))
            for number in range(500):
                line.call("CreateReservation", part(1, wordy + part(2, ask + part(10, b"l%d" % number))), 2 * number + 1)
        provider.before = provider.memory_kb()
        lines = []
        for _ in range(10):
            line = Line(provider.where)
            lines.append(line)
            line.send(frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 0)))
            for stream in range(1, 20, 2):
                line.send(frame(HEADERS, END_HEADERS, stream, head("ListReservations")) + frame(DATA, END_STREAM, stream, message()))
        most, end = 0, time.monotonic() + 8
        while time.monotonic() < end:
            most = max(most, provider.memory_kb())
            time.sleep(0.05)
        if most - provider.before > MOST_GROWN:
            raise SystemExit("FAILED: answers that nobody takes hold %d MiB" % ((most - provider.before) >> 10))
        provider.holds("answers that nobody takes")
        for line in lines:
            line.__exit__()


def keys_of(server, user):
    """The flags for a certificate of this user, and a context that shows it."""
    name = server.dir + "/" + user
    subprocess.run([server.berth, "certificate", "issue", "--data-dir", server.dir, "--user", user, "--out", name], check=True)
    context = ssl.create_default_context(cafile=server.dir + "/pki/ca.crt")
    context.load_cert_chain(name + ".crt", name + ".key")
    context.set_alpn_protocols(["h2"])
    return ["--tls-cert", name + ".crt", "--tls-key", name + ".key", "--tls-ca", server.dir + "/pki/ca.crt"], context


def pool_says(server, word):
    """The message of a pool's condition that has this word."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        code, pool = server.ask("GET", "/apis/compute.ironcore.dev/v1alpha1/machinepools/a")
        for condition in pool.get("status", {}).get("conditions", []) if code == 200 else []:
            if word in condition["message"]:
                return condition["message"]
        time.sleep(0.05)
    raise SystemExit("FAILED: the pool never says %r: %s" % (word, pool))


def whose_pool(berth):
    """One authority signs for two layers: a provider answers the poollet it is for, and each side knows whom it asks."""
    server = Server(berth, "--fleet")
    pki = server.dir + "/pki/"
    right, wrong = keys_of(server, "z1-poollet"), keys_of(server, "z2-poollet")
    stderr = open(server.dir + "/provider.log", "w+")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        metrics = free.getsockname()[1]
    provider = Provider(berth, "--tls-cert", pki + "server.crt", "--tls-key", pki + "server.key", "--tls-ca", pki + "ca.crt",
                        "--client-name", "z0-poollet,z1-poollet", "--metrics-bind-address", "127.0.0.1:%d" % metrics, stderr=stderr)
    try:
        provider.answers(right[1])
        for _ in range(2):
            with Line(provider.where, wrong[1]) as line:
                told = line.call()[1]
            assert b"none of the names that may ask here" in told and b"\x0bgrpc-status\x017" in told, told
            provider.answers(right[1])

        def poollet(keys, *flags):
            return subprocess.Popen([berth, "fleet", "poollet", "--kubeconfig", server.kubeconfig, "--pool", "a", "--runtime",
                                     "localhost:%d" % provider.where, *keys[0], *flags], stdout=subprocess.DEVNULL)

        for keys, flags, word in ((wrong, [], "none of the names that may ask here"), (right, ["--runtime-name", "z9-provider"], "z9-provider"),
                                  (right, [], "what is below answers"), (right, ["--runtime-name", "kubernetes.default"], "what is below answers")):
            process = poollet(keys, *flags)
            atexit.register(process.kill)
            print("%-40s %s" % (" ".join(flags) or keys[0][1].rsplit("/", 1)[1], pool_says(server, word)), flush=True)
            process.terminate()
            process.wait(20)
            server.ask("DELETE", "/apis/compute.ironcore.dev/v1alpha1/machinepools/a")
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % metrics, timeout=10) as answer:
            counted = float(re.search(r"^berth_fleet_refused_clients_total (\S+)", answer.read().decode(), re.M).group(1))
        assert counted >= 3, "%s refusals were counted" % counted
    finally:
        provider.__exit__(None)
        server.stop()
    stderr.seek(0)
    assert "a client's certificate is of z2-poollet, not of z0-poollet or z1-poollet (--client-name)" in stderr.read()


def names_without_keys(berth):
    for command in (["provider", "--capacity", "cpu=1", "--client-name", "a", "--listen"], ["poollet", "--pool", "a", "--runtime-name", "a", "--runtime"]):
        said = subprocess.run([berth, "fleet", *command, "127.0.0.1:0"], capture_output=True, text=True, timeout=20, cwd=tempfile.gettempdir())
        assert said.returncode == 1 and "names are those of certificates" in said.stderr and said.stderr.count("\n") == 1, said


def main():
    berth = sys.argv[1]
    attacks = [more_connections_than_files, frames, half_messages, packed, large_words, answers_that_nobody_takes, who_may, whose_pool, names_without_keys]
    for attack in attacks:
        if len(sys.argv) < 3 or attack.__name__ in sys.argv[2:]:
            attack(berth)
    print("fleet door: passed")


main()
