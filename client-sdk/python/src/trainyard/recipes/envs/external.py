"""Episodes of external users: programs that begin when they like, talk to the policy, and post a reward.

A gateway offers the episodes that the recipe has open. A user claims one, uses any OpenAI client on its base URL, and
ends it with a reward. The recipe trains on what it said meanwhile, as for other agents.
"""

from __future__ import annotations

import hmac
import http.client
import json
import os
import queue
import secrets
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from ..core.config import ConfigError, check
from .base import BlackBox, Outcome

OPTIONS = "environment.options"
BODY_BYTES = 16 << 20
"""Largest body of a request."""
LONGEST_WAIT = 60.0
"""Seconds that a user may wait for an episode in one request."""
LOOK_SECONDS = 5.0
"""Seconds after which an episode that waits looks whether the recipe still plays it."""
FORWARDED = {"v1/chat/completions", "v1/models"}
LARGEST = sys.float_info.max


class External:
    """Episodes for users with the key in the environment variable `key_variable`, who reach the gateway on `host` and
    `port` (0 takes a free one). A user has `seconds` from the claim to the reward. Tasks are numbers without a
    meaning here."""

    def __init__(
        self, held_out: bool = False, host: str = "127.0.0.1", port: int = 0, key_variable: str = "EXTERNAL_KEY",
        seconds: float = 3600.0, tasks: int = 10_000,
    ) -> None:  # fmt: skip
        check(seconds > 0, f"{OPTIONS}.seconds", "must be more than 0")
        check(tasks > 0, f"{OPTIONS}.tasks", "must be at least 1")
        key = os.environ.get(key_variable, "")
        check(bool(key), f"{OPTIONS}.key_variable", f"the variable {key_variable} is not set; it has the key of users")
        self.tasks, self.gateway = tasks, None if held_out else Gateway(host, port, key, seconds)
        if self.gateway is not None:
            print(f"external users: POST {self.gateway.url}/sessions", file=sys.stderr)

    def __len__(self) -> int:
        return self.tasks

    def make(self, index: int) -> BlackBox:
        if self.gateway is None:
            raise ConfigError("eval_tasks: external users have no held-out tasks; set it to 0")
        return Offered(self.gateway, index)


class Wrong(Exception):
    """A request that is refused, with the status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Claim:
    """An episode that a user plays, or may."""

    task: int
    base_url: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    claimed: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome | None = None
    """What the user posted; none if the user gave up."""
    answering: int = 0
    """Requests that the policy is answering."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self, outcome: Outcome | None) -> None:
        """Ends the episode. One with an outcome has no answer that is still being sampled, so its tokens stay."""
        with self.lock:
            if self.over.is_set():
                raise Wrong(409, "the session is over")
            if outcome is not None and self.answering:
                raise Wrong(409, "an answer is still being sampled: wait for it before you post the reward")
            self.outcome = outcome
            self.over.set()

    def answer(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Has the policy answer a request."""
        with self.lock:
            if self.over.is_set():
                raise Wrong(409, "the session is over")
            self.answering += 1
        try:
            return forwarded(self.base_url, path, body)
        finally:
            with self.lock:
                self.answering -= 1

    @property
    def is_played(self) -> bool:
        """Whether the recipe still plays the episode: its proxy answers for those alone."""
        status, _ = forwarded(self.base_url, "models", None)
        return status == 200


class Offered(BlackBox):
    """An episode from its offer to its reward."""

    def __init__(self, gateway: Gateway, task: int) -> None:
        self.gateway, self.task = gateway, task

    def run(self, base_url: str, api_key: str, model: str) -> Outcome:
        claim = self.gateway.offer(Claim(self.task, base_url))
        try:
            while not claim.claimed.wait(LOOK_SECONDS):
                if not claim.is_played:
                    raise TimeoutError("no user claimed the episode")
            ends = time.monotonic() + self.gateway.seconds
            while not claim.over.wait(min(LOOK_SECONDS, max(0.0, ends - time.monotonic()))):
                if time.monotonic() >= ends or not claim.is_played:
                    raise TimeoutError(f"the user posted no reward within {self.gateway.seconds:g} s")
        finally:
            self.gateway.forget(claim)
        if claim.outcome is None:
            raise RuntimeError("the user gave the episode up")
        return claim.outcome


class Gateway:
    """Offers episodes to users over HTTP until it is closed."""

    def __init__(self, host: str, port: int, key: str, seconds: float) -> None:
        self.key, self.seconds = key, seconds
        self.offers: queue.SimpleQueue[Claim] = queue.SimpleQueue()
        self.claims: dict[str, Claim] = {}
        try:
            self.server = ThreadingHTTPServer((host, port), handler(self))
        except OSError as error:
            raise ConfigError(f"{OPTIONS}.port: {host}:{port} can't be opened: {error}") from error
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        host, port = self.server.server_address[:2]
        return f"http://{host!s}:{port}"

    def offer(self, claim: Claim) -> Claim:
        self.offers.put(claim)
        return claim

    def claim(self, wait: float) -> Claim | None:
        """Takes the oldest open episode, waiting up to `wait` seconds for one."""
        ends = time.monotonic() + wait
        while True:
            try:
                claim = self.offers.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                return None
            if not claim.over.is_set() and claim.is_played:
                self.claims[claim.id] = claim
                claim.claimed.set()
                return claim

    def forget(self, claim: Claim) -> None:
        """Ends an episode for its user, too."""
        claim.over.set()
        self.claims.pop(claim.id, None)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def forwarded(base_url: str, path: str, body: bytes | None) -> tuple[int, bytes]:
    """Sends a request to the recipe's proxy; returns status and body of its answer."""
    url = urlsplit(base_url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, f"{url.path}/{path}", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 502, b'{"error": {"message": "the recipe does not answer"}}'
    finally:
        connection.close()


def handler(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    """Returns the request handler of a gateway."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60.0

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_DELETE(self) -> None:
            self._answer()

        def _answer(self) -> None:
            try:
                status, body = self._routed()
            except Wrong as error:
                status, body = error.status, json.dumps({"error": {"message": str(error)}}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _routed(self) -> tuple[int, bytes]:
            body = self._body()
            parts = self.path.strip("/").split("/")
            if (self.command, parts) == ("POST", ["sessions"]):
                self._check_key(gateway.key)
                return self._claimed(decoded(body))
            claim = gateway.claims.get(parts[1]) if parts[0] == "sessions" and len(parts) > 1 else None
            if claim is None:
                raise Wrong(404, f"no such session or path: {self.path}")
            self._check_key(claim.key)
            match self.command, "/".join(parts[2:]):
                case "POST", "reward":
                    claim.end(outcome(decoded(body)))
                    return 200, b"{}"
                case "DELETE", "":
                    claim.end(None)
                    return 200, b"{}"
                case "GET" | "POST", path if path in FORWARDED:
                    return claim.answer(path.removeprefix("v1/"), body if self.command == "POST" else None)
            raise Wrong(404, f"no such path: {self.command} {self.path}")

        def _claimed(self, body: dict[str, Any]) -> tuple[int, bytes]:
            wait = body.get("wait", 30.0)
            if not is_number(wait) or not 0 <= wait <= LONGEST_WAIT:
                raise Wrong(400, f"wait: expected seconds from 0 to {LONGEST_WAIT:g}, found {wait!r}")
            claim = gateway.claim(wait)
            if claim is None:
                raise Wrong(503, "no episode is open: the recipe is training, or others have them all; try again")
            host = self.headers.get("host") or urlsplit(gateway.url).netloc
            found = {
                "id": claim.id, "base_url": f"http://{host}/sessions/{claim.id}/v1", "api_key": claim.key,
                "task": claim.task, "seconds": gateway.seconds,
            }  # fmt: skip
            return 201, json.dumps(found).encode()

        def _body(self) -> bytes:
            try:
                length = int(self.headers.get("content-length") or 0)
            except ValueError:
                length = -1
            if not 0 <= length <= BODY_BYTES:
                self.close_connection = True
                raise Wrong(413, f"content-length: expected at most {BODY_BYTES} bytes")
            return self.rfile.read(length)

        def _check_key(self, key: str) -> None:
            given = self.headers.get("authorization", "").removeprefix("Bearer ").strip()
            if not hmac.compare_digest(given.encode(), key.encode()):
                raise Wrong(401, "authorization: expected Bearer and the key")

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing: the recipe has its own output."""

    return Handler


def decoded(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError as error:
        raise Wrong(400, f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Wrong(400, "the body is not a JSON object")
    return found


def outcome(body: dict[str, Any]) -> Outcome:
    """The reward and the metrics of a body."""
    if unknown := body.keys() - {"reward", "metrics"}:
        raise Wrong(400, f"{min(unknown)}: unknown; expected reward and metrics")
    reward, metrics = body.get("reward"), body.get("metrics", {})
    if not is_number(reward):
        raise Wrong(400, f"reward: expected a finite number, found {reward!r}")
    if not isinstance(metrics, dict) or not all(is_number(value) for value in metrics.values()):
        raise Wrong(400, "metrics: expected finite numbers by name")
    return Outcome(float(reward), metrics={name: float(value) for name, value in metrics.items()})


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value of JSON is a number that a float can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST
