"""A collector of OpenTelemetry traces: takes OTLP over HTTP and decodes of it what tests look at."""

import contextlib
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import local_server
from process import PATIENCE


def fields(message: bytes):
    """The (number, value) pairs of a protobuf message: integers, or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        length = {1: 8, 5: 4}.get(kind) or varint()
        yield number, message[at : at + length]
        at += length


def one(message: bytes, number: int, default=b""):
    return next((value for found, value in fields(message) if found == number), default)


def every(message: bytes, number: int):
    return [value for found, value in fields(message) if found == number]


def attributes(pairs: list[bytes]) -> dict:
    """`KeyValue` messages with texts and integers."""
    found = {}
    for pair in pairs:
        value = one(pair, 2)
        text, number = one(value, 1), one(value, 3, None)
        found[one(pair, 1).decode()] = text.decode() if number is None else number
    return found


class Span:
    def __init__(self, message: bytes, service: str):
        self.service = service
        self.trace, self.id, self.parent = (one(message, number).hex() for number in (1, 2, 4))
        self.state = one(message, 3).decode()
        self.name = one(message, 5).decode()
        self.start, self.end = (int.from_bytes(one(message, number), "little") for number in (7, 8))
        self.attributes = attributes(every(message, 9))


class Collector:
    """`mode`: `ok`, `fail` (answers 500) or `hang` (answers never)."""

    def __init__(self):
        self.spans: list[Span] = []
        self.headers: list[dict] = []
        self.mode = "ok"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                while outer.mode == "hang":
                    time.sleep(0.1)
                if outer.mode == "ok":
                    outer.take(self.path, dict(self.headers.items()), body)
                with contextlib.suppress(OSError):
                    self.send_response(200 if outer.mode == "ok" else 400)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = local_server.start(self.server)

    def take(self, path: str, headers: dict, body: bytes):
        assert path == "/v1/traces" and headers["content-type"] == "application/x-protobuf"
        self.headers.append({name.lower(): value for name, value in headers.items()})
        for resource in every(body, 1):
            service = attributes(every(one(resource, 1), 1))["service.name"]
            for scope in every(resource, 2):
                self.spans += [Span(span, service) for span in every(scope, 2)]

    def of(self, trace: str) -> dict[str, Span]:
        """The spans of a trace by their names."""
        return {span.name: span for span in list(self.spans) if span.trace == trace}

    def wait_for(self, trace: str, names: set[str]) -> dict[str, Span]:
        deadline = time.monotonic() + 60 * PATIENCE
        while not names <= self.of(trace).keys():
            assert time.monotonic() < deadline, f"{names - self.of(trace).keys()} of {trace} did not arrive"
            time.sleep(0.1)
        return self.of(trace)

    def close(self):
        self.mode = "ok"
        self.server.shutdown()
        self.server.server_close()
