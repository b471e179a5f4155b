"""Sends bodies that clients should never send. Each gets a refusal that HTTP defines, never an internal error."""

import json
import random
import socket
from collections import Counter
from urllib.parse import urlparse

import httpx
import zstandard

import wire as raw
from background import Background
from refusals import Refusals
from server import TINY

PERIOD = 0.5
"""Pause between two of them, in seconds."""

OUTAGES = {429, 503}
"""Statuses that any request may get during an outage; both state when to try again."""

DEEP = "[" * 100_000
BOMB = zstandard.compress(bytes(300 << 20))
PROTOBUF = {"content-type": raw.PROTOBUF}
JSON = {"content-type": raw.JSON}


class Vandal(Background):
    """Sends one body after the other, on its own thread, as its own tenant."""

    def __init__(self, server, key: str, stranger: str, seed: int):
        self.server, self.key = server, key
        self.stranger = stranger
        """Id of a run of another tenant."""
        self.chance = random.Random(seed)
        self.answers: Counter = Counter()
        self.unexpected: list[str] = []
        super().__init__("vandal")

    def _work(self):
        acts = [
            ("no JSON", lambda: self._post("create_session", b"{", JSON), {400, 422}),
            ("deep JSON", lambda: self._post("create_session", DEEP.encode(), JSON), {400, 422}),
            ("no protobuf", lambda: self._post("forward_backward", b"\xff" * 100, PROTOBUF), {400, 422}),
            ("truncated protobuf", lambda: self._post("forward_backward", self._message()[:-3], PROTOBUF), {400, 404, 422}),
            ("zstd bomb", lambda: self._post("forward_backward", BOMB, PROTOBUF | {"content-encoding": "zstd"}), {413}),
            ("no zstd", lambda: self._post("forward_backward", b"abc", PROTOBUF | {"content-encoding": "zstd"}), {400}),
            ("no such type", lambda: self._post("forward_backward", b"a", {"content-type": "text/csv"}), {415}),
            ("no such path", lambda: self._post("no_such_path", b"", JSON), {404}),
            ("no such key", self._no_key, {401, 429}),
            ("no such run", lambda: self._optimize("run-00000000"), {404}),
            ("another tenant's run", lambda: self._optimize(self.stranger), {404}),
            ("a number that is none", lambda: self._optimize(self.stranger, learning_rate="NaN"), {400, 404, 422}),
            ("gigantic body", self._gigantic, {None, 413}),
            ("gigantic header", self._long_header, {None, 400, 431}),
            ("interrupted body", self._interrupted, {None, 400, 408}),
        ]  # fmt: skip
        refusals = Refusals(self.server, self.key, TINY, sees=False)
        acts += [(name, act, {status}) for name, act, status in refusals.acts]
        while not self._ended.wait(PERIOD):
            name, act, expected = self.chance.choice(acts)
            try:
                status = act()
            except (httpx.TransportError, OSError):
                # The server was killed, or is stopped so that the answer takes long.
                self.answers["no answer"] += 1
                continue
            self.answers[str(status)] += 1
            if status not in expected | OUTAGES:
                self.unexpected.append(f"{name}: {status}")

    def _post(self, path: str, body: bytes, headers: dict) -> int:
        url = f"{self.server.url}/api/v1/{path}"
        return httpx.post(url, content=body, headers={"x-api-key": self.key} | headers, timeout=30).status_code

    def _message(self) -> bytes:
        return raw.message(self.stranger, 1).SerializeToString()

    def _optimize(self, run: str, **params) -> int:
        body = {"model_id": run, "seq_id": 1, "type": "optim_step", "adam_params": {"learning_rate": 1e-3} | params}
        return self._post("optim_step", json.dumps(body).encode(), JSON)

    def _no_key(self) -> int:
        headers = {"x-api-key": "tml-nobody-knows-this-key"}
        return httpx.get(f"{self.server.url}/api/v1/training_runs", headers=headers, timeout=30).status_code

    def _gigantic(self) -> int | None:
        return self._raw(f"content-type: {raw.JSON}\r\ncontent-length: {10 << 30}\r\n\r\n{{".encode(), close=True)

    def _long_header(self) -> int | None:
        return self._raw(b"x-long: " + b"a" * 200_000 + b"\r\ncontent-length: 0\r\n\r\n")

    def _interrupted(self) -> int | None:
        return self._raw(b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{", close=True)

    def _raw(self, rest: bytes, close=False) -> int | None:
        """Returns the status of the answer; None if the connection ended first."""
        address = urlparse(self.server.url)
        start = f"POST /api/v1/create_session HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {self.key}\r\n".encode()
        with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
            connection.sendall(start + rest)
            if close:
                connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1024)
        return int(answer.split()[1]) if answer.startswith(b"HTTP/") else None
