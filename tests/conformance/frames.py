"""HTTP/2 frames by hand, and gRPC calls made of them: for clients that keep to no rules."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
SERVICE = "/machine.v1alpha1.MachineRuntime/"


def frame(kind, flags, stream, body=b""):
    return struct.pack("!I", len(body))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + body


def integer(value, bits):
    """HPACK's."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    return bytes([most]) + varint(value - most)


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out) + bytes([value])


def text(value):
    return integer(len(value), 7) + value.encode()


def field(name, value):
    return b"\0" + text(name) + text(value)


def head(call="Version", **more):
    fields = {":method": "POST", ":scheme": "http", ":path": SERVICE + call, ":authority": "localhost", "te": "trailers",
              "content-type": "application/grpc", **more}
    return b"".join(field(name, value) for name, value in fields.items())


def message(body=b"", flag=0):
    return bytes([flag]) + struct.pack("!I", len(body)) + body


class Line:
    """One connection, to a port of this machine or to the socket of a path."""

    def __init__(self, where, context=None, timeout=10):
        if isinstance(where, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(where)
        else:
            self.socket = socket.create_connection(("127.0.0.1", where), timeout=timeout)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.buffer = b""
        self.send(PREFACE + frame(SETTINGS, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            got = self.socket.recv(1 << 16)
            if not got:
                raise ConnectionError("closed")
            self.buffer += got
        size = int.from_bytes(self.buffer[:3], "big")
        kind, flags, stream = self.buffer[3], self.buffer[4], int.from_bytes(self.buffer[5:9], "big") & 0x7fffffff
        body, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
        return kind, flags, stream, body

    def call(self, name="Version", body=b"", stream=1):
        """The answer's messages, and the headers and trailers as they are on the wire."""
        whole = message(body)
        self.send(frame(HEADERS, END_HEADERS, stream, head(name)))
        for begin in range(0, len(whole), 16384):
            self.send(frame(DATA, END_STREAM if begin + 16384 >= len(whole) else 0, stream, whole[begin:begin + 16384]))
        return self.answer(stream)

    def answer(self, stream):
        data = heads = b""
        while True:
            kind, flags, of, body = self.read()
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.send(frame(kind, ACK, 0, body if kind == PING else b""))
            if kind == GOAWAY or (kind == RESET and of == stream):
                raise ConnectionError("%s %r" % ("gone" if kind == GOAWAY else "reset", body))
            if of != stream or kind not in (DATA, HEADERS):
                continue
            data, heads = (data + body, heads) if kind == DATA else (data, heads + body)
            if flags & END_STREAM:
                return data, heads
