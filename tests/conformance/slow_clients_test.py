"""Clients that ask and do not read: others see every event in time, the server's memory stays flat, and requests are answered."""
import http.client
import json
import os
import signal
import socket
import sys
import time

from server import Server

MAPS = "/api/v1/namespaces/default/configmaps"
SLEEPERS, WRITES, SIZE = 100, 2000, 20_000


def sleeper(server, path):
    """A connection with the smallest window that asks and never reads."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", server.port))
    line = server.tls.wrap_socket(plain, server_hostname="127.0.0.1")
    line.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path).encode())
    return line


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, len(values) * p // 100)]


def write_and_see(server, reader, writer, first, count):
    """Milliseconds from a write to its event, for each write."""
    out = []
    for n in range(first, first + count):
        body = json.dumps({"metadata": {"name": "m-%d" % n}, "data": {"v": "x" * SIZE}})
        begin = time.monotonic()
        writer.request("POST", MAPS, body, {"Content-Type": "application/json"})
        answer = writer.getresponse()
        answer.read()
        if answer.status != 201:
            raise SystemExit("FAILED: a write was answered with %d" % answer.status)
        event = json.loads(reader.readline())
        if event["object"]["metadata"]["name"] != "m-%d" % n:
            raise SystemExit("FAILED: the watch told of %s instead of m-%d" % (event["object"]["metadata"]["name"], n))
        out.append((time.monotonic() - begin) * 1000)
    return out


def main():
    signal.alarm(300)
    server = Server(sys.argv[1])
    try:
        watch, writer = (http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=server.tls) for _ in range(2))
        watch.request("GET", MAPS + "?watch=1&fieldSelector=metadata.name!=kube-root-ca.crt")
        reader = watch.getresponse()
        alone = write_and_see(server, reader, writer, 0, 200)
        sleepers = [sleeper(server, MAPS + "?watch=1") for _ in range(SLEEPERS // 2)]
        sleepers += [sleeper(server, MAPS) for _ in range(SLEEPERS // 2)]
        before = server.memory_kb()
        crowded = write_and_see(server, reader, writer, 200, WRITES)
        grown = server.memory_kb() - before
        told = WRITES * SIZE // 1024
        print("write to event, ms: alone p50 %.1f p99 %.1f; beside %d clients that do not read p50 %.1f p99 %.1f; memory +%d KB for %d KB written"
              % (percentile(alone, 50), percentile(alone, 99), SLEEPERS, percentile(crowded, 50), percentile(crowded, 99), grown, told))
        # Buffered for each sleeper it would be fifty times what was written. ThreadSanitizer needs several bytes for each.
        if grown > 6 * told * int(os.environ.get("MEMORY_FACTOR", "1")):
            print("FAILED: memory grows with clients that do not read")
            return 1
        for line in sleepers:
            line.close()
    finally:
        code = server.stop()
    return code


sys.exit(main())
