#!/usr/bin/env python3
"""A corpus of malformed requests: each gets a 4xx with a sentence, or is cut off; never a 5xx, never a crash, and memory
stays flat.

bad_input_test.py BERTH
"""
import socket
import sys

from server import Server

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
GOOD = '{"metadata":{"name":"%s"},"spec":{"containers":[{"name":"c","image":"i"}]}}'

BODIES = [
    b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}{}", b"nan", b'{"a":NaN}', b'{"a":1,"a":2}', b"\xff\xfe", b'{"metadata":{"name":"\xff"}}',
    b'{"metadata":{"name":"\\ud800"}}', b"[" * 100000, b'{"a":' * 5000, b'{"metadata":[]}', b'{"metadata":{"name":1}}',
    b'{"metadata":{"name":".."}}', b'{"metadata":{"name":"a/b"}}', b'{"metadata":{"name":"A"}}', b'{"metadata":{"labels":1}}',
    b'{"metadata":{"name":"x","labels":{"a":{"b":1}}}}', b'{"metadata":{"name":"x","labels":{"%s":"v"}}}' % (b"k" * 300),
    b'{"metadata":{"name":"x","annotations":{"a":"%s"}}}' % (b"v" * 300000), b'{"metadata":{"name":"%s"}}' % (b"n" * 300),
    b'{"metadata":{"name":"x"},"spec":1}', b'{"metadata":{"name":"x"},"spec":{"containers":{}}}',
    b'{"metadata":{"name":"x"},"spec":{"containers":[1]}}', b'{"metadata":{"name":"x"},"spec":{"containers":[{}]}}',
    b'{"kind":"Node","metadata":{"name":"x"}}', b'{"apiVersion":"v9","metadata":{"name":"x"}}', b'{"metadata":{"generateName":"%s"}}' % (b"g" * 500),
    b'{"metadata":{"name":"x","ownerReferences":[{}]},"spec":{"containers":[{"name":"c","image":"i"}]}}',
    b'{"metadata":{"name":"x","resourceVersion":"5"}}', b"k8s\0", b"k8s\0\xff\xff\xff", b"\0" * 1000,
]
for amount in ("1e30x", "-1", "NaN", "", "1 Gi", "0x10", "--1"):
    BODIES.append(('{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"%s"}}}]}}' % amount).encode())

TYPES = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "", "a", ";;;", "application/json-patch+json"]

PATCHES = [
    ("application/json-patch+json", b"{}"), ("application/json-patch+json", b"[1]"), ("application/json-patch+json", b'[{"op":"nope"}]'),
    ("application/json-patch+json", b'[{"op":"remove","path":"/none"}]'), ("application/json-patch+json", b'[{"op":"add","path":"x","value":1}]'),
    ("application/json-patch+json", b'[{"op":"test","path":"/metadata/name","value":"other"}]'),
    ("application/json-patch+json", b"[" + b'{"op":"add","path":"/data/a","value":"1"},' * 10000 + b'{"op":"add","path":"/data/a","value":"1"}]'),
    ("application/json-patch+json", b'[{"op":"replace","path":"","value":[]}]'), ("application/merge-patch+json", b"[]"), ("application/merge-patch+json", b"null"),
    ("application/merge-patch+json", b'{"metadata":{"name":"other"}}'), ("application/merge-patch+json", b'{"kind":"X"}'),
    ("application/merge-patch+json", b'{"data":5}'), ("application/strategic-merge-patch+json", b'{"data":{"$patch":"nope"}}'),
    ("application/strategic-merge-patch+json", b"{"),
    ("application/apply-patch+yaml", b"{}"), ("text/plain", b"{}"), ("", b"{}"),
]

QUERIES = [
    "resourceVersion=abc", "resourceVersion=-1", "resourceVersion=99999999999999999999", "resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Bad",
    "limit=x", "limit=-5", "limit=99999999999999999999", "continue=%00", "continue=AAAA", "continue=" + "A" * 2000, "labelSelector=a%3D%3D%3Db", "labelSelector=%28", "labelSelector=a+in+%28",
    "labelSelector=" + ",".join("a%d" % i for i in range(200)), "labelSelector=%FF%FE", "fieldSelector=spec.none%3D1", "fieldSelector=a", "timeoutSeconds=x",
    "sendInitialEvents=true", "dryRun=Some", "fieldValidation=Nope", "watch=true&resourceVersion=abc", "watch=true&sendInitialEvents=true&resourceVersionMatch=Exact",
    "watch=true&labelSelector=%28", "watch=true&timeoutSeconds=abc",
]

PATHS = ["/api/v1/nothing", "/apis", "/apis/none", "/apis/none/v1", "/api/v1/namespaces/default/pods/a/b/c/d", "/api/v1/namespaces//pods", "/api//v1", "/api/v1/namespaces/default/pods/%2e%2e",
         "/api/v1/namespaces/default%2Fpods", "/api/v1/namespaces/default/pods/%00", "/%", "/api/v1/%zz", "/apis/apps/v1/pods", "/api/v1/nodes/x/nothing", "/api/v1/namespaces/default/nodes", "/openapi/v3/none", "/" + "a" * 5000]

RAW = [
    b"GET\r\n\r\n", b"\r\n\r\n", b"GARBAGE\0\xff" * 100, b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"/a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" % MAPS.encode(),
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n" % MAPS.encode(),
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" % MAPS.encode(),
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\nabc\r\n0\r\n\r\n" % MAPS.encode(),
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc" % MAPS.encode(),
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc" % MAPS.encode(),
    b"\x16\x03\x01\x00\x05hello", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


class Count:
    def __init__(self):
        self.asked, self.failed = 0, 0

    def expect(self, what, code, answer, low=400):
        self.asked += 1
        sentence = isinstance(answer, str) or answer.get("message")
        if not (low <= code < 500) or (code >= 400 and not sentence):
            self.failed += 1
            print("FAILED %s: %s %s" % (what, code, str(answer)[:300]))


def send_raw(server, request):
    with socket.create_connection(("127.0.0.1", server.port), timeout=15) as plain:
        with server.tls.wrap_socket(plain, server_hostname="localhost") as stream:
            try:
                stream.sendall(request)
                stream.settimeout(15)
                return stream.recv(4096)
            except (ConnectionError, OSError):
                return b""


def main():
    server = Server(sys.argv[1])
    count = Count()
    server.ask("POST", MAPS, {"metadata": {"name": "target"}, "data": {"a": "b"}})
    server.ask("POST", PODS, (GOOD % "target").encode())
    before = None
    for turn in range(4):
        for body in BODIES:
            count.expect("POST %r" % body[:60], *server.ask("POST", PODS, body))
            count.expect("PUT %r" % body[:60], *server.ask("PUT", PODS + "/target", body), low=200)
        for kind in TYPES:
            for body in (b"", b"{", b"\xff", b"k8s\0\x0a\xff"):
                count.expect("%s %r" % (kind, body), *server.ask("POST", MAPS, body, kind))
        for kind, body in PATCHES:
            count.expect("PATCH %s %r" % (kind, body[:60]), *server.ask("PATCH", MAPS + "/target", body, kind))
        for query in QUERIES:
            count.expect(query[:80], *server.ask("GET", PODS + "?" + query), low=200 if "sendInitial" in query else 400)
        for path in PATHS:
            for method in ("GET", "POST", "DELETE"):
                count.expect("%s %s" % (method, path[:80]), *server.ask(method, path, b"{}" if method == "POST" else None), low=200)
        count.expect("a body of 4 MiB", *server.ask("POST", MAPS, b'{"metadata":{"name":"big"},"data":{"a":"%s"}}' % (b"x" * (4 << 20))))
        count.expect("an object of 2 MiB", *server.ask("POST", MAPS, b'{"metadata":{"name":"big"},"data":{"a":"%s"}}' % (b"x" * (2 << 20))))
        for request in RAW:
            answer = send_raw(server, request)
            count.asked += 1
            if answer and not answer.startswith(b"HTTP/1.1 4"):
                count.failed += 1
                print("FAILED %r: %r" % (request[:60], answer[:100]))
        if turn == 1:
            before = server.memory_kb()
    after = server.memory_kb()
    if after > before + 20_000:
        count.failed += 1
        print("FAILED: memory grew from %d KiB to %d KiB" % (before, after))
    if server.ask("GET", "/readyz")[1] != "ok":
        count.failed += 1
        print("FAILED: the server is not ready any more")
    if server.stop() != 0:
        count.failed += 1
        print("FAILED: the server did not end well")
    print("%d requests, %d failed; memory %d -> %d KiB" % (count.asked, count.failed, before, after))
    return 1 if count.failed else 0


sys.exit(main())
