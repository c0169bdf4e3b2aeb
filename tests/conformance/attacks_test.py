#!/usr/bin/env python3
"""attacks_test.py BERTH: what clients without credentials, and a greedy one with them, cost others: memory of half-sent bodies, the
time of /livez and of a plain pod beside each attack, and who gets in when 1,100 connections stay idle at 1,024 files."""
import http.client
import resource
import socket
import ssl
import sys
import threading
import time

from server import Server
from waits import Others

MAPS = "/api/v1/namespaces/default/configmaps"
BODIES, HALF, WHOLE = 300, 2_900_000, 3 << 20
IDLE, FILES = 1100, 1024
UP = ("--nodes", "20")
MIB = 1 << 10  # of KiB


def nobody(server):
    return ssl.create_default_context(cafile=server.dir + "/pki/ca.crt")


def connect(server, context, timeout=30):
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
    return context.wrap_socket(plain, server_hostname="localhost")


def half_bodies(server, context):
    """Connections that send most of a body and then nothing. What each was told meanwhile."""
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (MAPS.encode(), WHOLE)
    lines = []

    def send(lines):
        for _ in range(BODIES // 4):
            try:
                line = connect(server, context)
                lines.append(line)
                line.sendall(head + b" " * HALF)
            except OSError:
                pass

    senders = [threading.Thread(target=send, args=(lines,)) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(120)
    return lines


def crowd(server, context):
    """Connections that ask for nothing. Some may not be let in."""
    out = []
    for _ in range(IDLE):
        try:
            out.append(connect(server, context, timeout=5))
        except OSError:
            break
    return out


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


class SmallServer(Server):
    def run(self, words, **how):
        super().run(words, preexec_fn=few_files, **how)


class Report:
    failed = 0

    def row(self, attack, grown, others):
        print("%-44s memory %+5d MiB; %s" % (attack, grown // MIB, others), flush=True)

    def expect(self, what, true):
        if not true:
            self.failed += 1
            print("FAILED:", what, flush=True)


def bodies(report, berth, attack, certificate):
    server = Server(berth, *UP, command="up")
    try:
        unknown = nobody(server)
        others, memory = Others(server, unknown), server.memory_kb()
        lines = half_bodies(server, server.tls if certificate else unknown)
        grown = server.memory_kb() - memory
        report.row(attack, grown, others.told())
        # 64 MiB a peer in buffers that may be half empty, and 300 connections with TLS.
        report.expect("%s hold %d MiB" % (attack, grown // MIB), grown < 192 * MIB)
        report.expect("another one writes", server.ask("POST", MAPS, {"metadata": {"name": "other"}})[0] == 201)
        for line in lines:
            line.close()
    finally:
        report.expect("the server ends well", server.stop() == 0)


def idle(report, berth):
    server = SmallServer(berth, *UP, command="up")
    try:
        unknown = nobody(server)
        others, memory = Others(server, unknown), server.memory_kb()
        kept = http.client.HTTPSConnection("localhost", server.port, timeout=20, context=server.tls)
        kept.request("GET", "/readyz")
        kept.getresponse().read()
        begin = time.monotonic()
        lines = crowd(server, unknown)
        try:
            told = server.ask("GET", MAPS)[0]
        except OSError as error:
            told = error
        waited = time.monotonic() - begin
        during = others.told() if told == 200 else ""
        report.row("%d idle connections, %d files" % (IDLE, FILES), server.memory_kb() - memory, during)
        report.expect("others get in beside idle ones: %s after %.1f s" % (told, waited), told == 200 and waited < 20)
        kept.request("GET", "/readyz")
        report.expect("who is known keeps his connection", kept.getresponse().read() == b"ok")
        for line in lines:
            line.close()
    finally:
        report.expect("the server ends well", server.stop() == 0)


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    report = Report()
    bodies(report, sys.argv[1], "%d half-sent bodies, no credentials" % BODIES, False)
    bodies(report, sys.argv[1], "%d half-sent bodies, a certificate" % BODIES, True)
    idle(report, sys.argv[1])
    return 1 if report.failed else 0


sys.exit(main())
