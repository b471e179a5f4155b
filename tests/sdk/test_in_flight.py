"""Keys that are revoked, expire or lose their user while a request of theirs is in flight."""

import contextlib
import json
import socket
import threading
import time
import urllib.parse

import httpx
import pytest

import chat_model
import folders
import wire as raw
from helpers import cancelled, wait_until
from server import TINY_MODELS
from tenancy import CONFIG, admin
from test_tokens import exchange

MODEL = chat_model.ENDLESS
MODELS = TINY_MODELS | {MODEL: chat_model.write_endless(folders.new() / MODEL)}
CHAT = [{"role": "user", "content": "Hi"}]
LONG = {"model": MODEL, "messages": CHAT, "max_tokens": chat_model.CONTEXT}
ENDED_WITHIN = 5.0
"""After so many seconds nothing of a lost key is in flight. It is asked twice a second."""
EXPIRES = 2
"""Seconds after which a key expires."""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def server(tmp_path_factory, deploy):
    with deploy(tmp_path_factory.mktemp("in-flight"), models=MODELS, config=CONFIG) as started:
        yield started


class Credential:
    """A key of a user, as it is or exchanged for a token, and the ways to lose it."""

    def __init__(self, server, loses: str, as_token: bool):
        self.root, self.loses = admin(server.url), loses
        self.email = f"ann{time.time_ns()}@acme.example"
        assert self.root.post("admin/users?organisation=acme", json={"email": self.email}).status_code == 200
        body = {"name": "short", "user": self.email} | ({"expires_in_seconds": EXPIRES} if loses == "expires" else {})
        made = self.root.post("admin/keys?organisation=acme", json=body).json()
        self.number, key = made["details"]["id"], made["key"]
        self.expires = time.monotonic() + EXPIRES
        self.value = exchange(server, key) if as_token else key

    def lose(self) -> float:
        """Loses it; the moment."""
        match self.loses:
            case "revoked":
                assert self.root.delete(f"admin/keys/{self.number}?organisation=acme").status_code == 204
            case "disabled":
                user = f"admin/users/{self.email}?organisation=acme"
                assert self.root.put(user, json={"disabled": True}).status_code == 200
            case "expires":
                time.sleep(max(0.0, self.expires - time.monotonic()))
        return time.monotonic()


@pytest.fixture(params=["revoked", "disabled", "expires"])
def loses(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["key", "token"])
def credential(server, loses, request):
    return Credential(server, loses, request.param)


def call(server, credential) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"x-api-key": credential.value}, timeout=60)


@contextlib.contextmanager
def cancels(server):
    """A sample is cancelled within, or soon after. Several processes count by themselves."""
    before = cancelled(server)
    yield
    if len(server.processes) == 1:
        wait_until(lambda: cancelled(server) == before + 1, "the sample was not cancelled")


def connect(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(server.url).port), timeout=10)


@pytest.mark.parametrize(("form", "path"), [("openai", "/v1/chat/completions"), ("anthropic", "/v1/messages")])
def test_a_stream_ends_with_an_error_event(server, credential, form, path):
    body = LONG | {"stream": True}
    with cancels(server), call(server, credential) as http, http.stream("POST", path, json=body) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        next(lines)
        lost = credential.lose()
        last = [line for line in lines if line.startswith("data: ")][-1]
        ended = time.monotonic()
    assert ended < lost + ENDED_WITHIN
    error = json.loads(last.removeprefix("data: "))["error"]
    if form == "openai":
        assert error["code"] == "invalid_api_key", error
    else:
        assert error["type"] == "authentication_error", error


def test_a_whole_reply_is_refused(server, credential):
    answers = []
    with cancels(server), call(server, credential) as http:
        asking = threading.Thread(target=lambda: answers.append(http.post("/v1/chat/completions", json=LONG)))
        asking.start()
        time.sleep(0.3)
        lost = credential.lose()
        asking.join()
        ended = time.monotonic()
    assert ended < lost + ENDED_WITHIN
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (401, "invalid_api_key"), answers[0].text


def test_a_long_poll_is_refused(server, credential):
    wire = raw.Wire(server, credential.value)
    run = wire.run()
    # It waits for the requests before it, which never come.
    future = wire.forward_backward(run, 9).json()["request_id"]
    answers = []
    polling = threading.Thread(target=lambda: answers.append(wire.poll(future)))
    polling.start()
    time.sleep(0.3)
    lost = credential.lose()
    polling.join()
    assert time.monotonic() < lost + ENDED_WITHIN
    assert answers[0].status_code == 401, answers[0].text
    assert "www-authenticate" in answers[0].headers


def test_a_body_that_arrives_later_changes_nothing(server, credential):
    wire = raw.Wire(server, credential.value)
    wire.session()
    body = json.dumps({"tags": ["late"], "user_metadata": {}, "sdk_version": "0.38.0"}).encode()
    head = (
        f"POST /api/v1/create_session HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {credential.value}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with connect(server) as connection:
        connection.sendall(head.encode() + body[:10])
        time.sleep(0.3)
        credential.lose()
        time.sleep(ENDED_WITHIN)
        connection.sendall(body[10:])
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401 ")
    with admin(server.url) as root:
        assert "late" not in root.get("sessions?limit=1000").text


@pytest.mark.parametrize("forged", ["tml-" + "x" * 40, "eyJhbGciOiJub25lIn0.e30."])
def test_refused_callers_do_not_reach_the_body(server, forged):
    """The refusal comes while the body is still to come."""
    head = (
        f"POST /api/v1/forward_backward HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {forged}\r\n"
        "content-type: application/json\r\ncontent-length: 200000000\r\n\r\n"
    )
    with connect(server) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401 ")
    assert raw.Wire(server, forged).http.get("training_runs").status_code == 401
