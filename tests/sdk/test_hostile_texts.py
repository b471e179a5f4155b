"""Texts that mean something to a file system, a header, a log or a fetcher, in every place of every operation that takes
text: none of them leaves the data folder, is echoed as a header, forges a line of the log, or makes the server call
somebody.
"""

import contextlib
import json
import re
import socket
import threading
import urllib.parse

import httpx
import pytest

import chat_model
import document
import folders
import wire as raw
from document import Operation, Place
from identity_provider import Key, claims, decode, encode
from server import KEY
from tenant_objects import BETA, CONFIG, MODEL, Objects  # noqa: F401
from test_tenant_isolation import CONSUMING, DOCUMENT, OPERATIONS, SIGNED, Request
from test_tokens import exchange

FOLDER = folders.new()
MODELS = {MODEL: chat_model.write(FOLDER / "tiny-chat")}
SECRET = "SECRET-OF-ANOTHER-FILE"
OUTSIDE = FOLDER / "outside"
(FOLDER / "secret.txt").write_text(SECRET)

pytestmark = [pytest.mark.timeout(400), pytest.mark.deployments("sqlite")]


class Canary:
    """A server that nobody should call."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.calls = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.calls.append(connection.recv(4096))
                connection.close()


@pytest.fixture(scope="module")
def canary():
    canary = Canary()
    yield canary
    canary.socket.close()
    assert canary.calls == [], "the server called a URL of a tenant"


def paths() -> list[str]:
    """Ways out of a folder."""
    up = "../" * 8
    return [
        f"{up}{str(OUTSIDE)[1:]}", f"{OUTSIDE}", f"..\\..\\..\\{OUTSIDE.name}", f"{up}{str(FOLDER / 'secret.txt')[1:]}",
        urllib.parse.quote(f"{up}{str(OUTSIDE)[1:]}", safe=""), "%2e%2e/%2e%2e/x", "．．／．．／x", "a\x00b", "..", ".", "",
        f"tinker://{up}x/weights/..", f"file://{FOLDER / 'secret.txt'}", "x" * 5_000, "CON", "a/b", "~root/x", "$(touch x)",
    ]  # fmt: skip


HEADERS = ["a\r\nx-injected: yes\r\n\r\n<html>", "a\nx-injected: yes", "a\u2028\u0085b", "😀é", "a\x1b[31mb"]
FORGED = "a\n2026-01-01T00:00:00.000000Z  INFO trainyard: FORGED\n"


def urls(canary) -> list[str]:
    """Of the canary, in forms that checks of addresses overlook."""
    port = canary.port
    return [
        f"http://127.0.0.1:{port}/x", f"http://localhost:{port}/x", f"http://2130706433:{port}/", f"http://0x7f.1:{port}/",
        f"http://[::ffff:127.0.0.1]:{port}/", f"//127.0.0.1:{port}/", f"s3://127.0.0.1:{port}/bucket",
        f"http://user:pw@127.0.0.1:{port}/#@example.com",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def mine(server):
    return Objects(server, BETA)


def places(operation: Operation) -> list[Place]:
    return [place for place in document.places(DOCUMENT, operation) if place.where != "header"]


def put(body, name: str, value):
    """Puts a value into a place of a body; what is missing on the way there is made."""
    node, parts = {"": body}, re.findall(r"[^.\[{]+|\[\]|\{\}", name)
    at, holder = "", node
    for part in parts:
        inner = holder[at]
        if part == "[]":
            if not isinstance(inner, list) or not inner:
                holder[at] = inner = [None]
            holder, at = inner, 0
            continue
        if not isinstance(inner, dict):
            holder[at] = inner = {}
        holder, at = inner, ("key" if part == "{}" else part)
        holder.setdefault(at, None)
    holder[at] = value


def ask(operation: Operation, mine: Objects, place: Place, value):
    """The request with a value in its place. Its result, too, where it is accepted."""
    request = Request(operation, mine, place)
    if place.where == "body":
        put(request.body, place.name, value)
    else:
        request.put(value)
    if isinstance(request.body, dict) and "timeout" in request.body:
        request.body["timeout"] = 0
    return request.send()


def check(answers):
    for answer in answers:
        assert answer.status_code < 500, answer.text
        assert "x-injected" not in answer.headers
        for name, value in answer.headers.raw:
            assert all(32 <= byte < 127 for byte in name + value), (name, value)
        assert SECRET not in answer.text


LONG_PATHS = [operation for operation in OPERATIONS if not operation.id.startswith("short_")]


@pytest.mark.parametrize("operation", LONG_PATHS, ids=lambda operation: operation.id)
def test_texts_stay_texts(server, mine, canary, operation, pytestconfig):
    """Each place gets every third text, beginning with another one than the place before it, and all with `--full`."""
    values = [*paths(), *HEADERS, FORGED, *urls(canary)]
    # A signed URL says nothing once it is changed.
    step = 6 if operation.id in SIGNED else 1 if pytestconfig.getoption("full") else 3
    for number, place in enumerate(places(operation)):
        owner = Objects(server, BETA) if operation.id in CONSUMING else mine
        for value in values[number % step :: step]:
            try:
                check(ask(operation, owner, place, value))
            except httpx.TransportError:
                # A path that is none of the server's is refused before the body is read, and the connection ends.
                assert place.where == "path" and operation.bodies


IN_HEADERS = ["x-request-id", "traceparent", "tracestate", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix",
              "accept", "user-agent", "referer", "origin", "idempotency-key", "x-tinker-request-type", "host"]  # fmt: skip


@pytest.mark.parametrize("name", IN_HEADERS)
def test_headers_are_not_repeated_with_others_in_them(server, canary, name):
    """As bytes on a connection: clients refuse to send most of these."""
    values = [b"a\rx-injected: yes", b"a\x00b", b"\xff\xfe", "é".encode(), b"a" * 20_000, b" \t ", *map(str.encode, urls(canary))]
    for value in values:
        given = b"" if name == "host" else b"host: 127.0.0.1\r\n"
        head = b"GET /api/v1/healthz HTTP/1.1\r\n" + given + name.encode() + b": " + value + b"\r\nconnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(head)
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        status, *lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
        assert int(status.split()[1]) in (200, 400, 403, 404, 431), (value, answer)
        assert not any(line.startswith(b"x-injected") for line in lines)
        for line in lines:
            assert all(32 <= byte < 127 for byte in line), line
            assert not value.strip() or value.strip() not in line or name == "x-request-id", line


def test_a_line_break_begins_no_header(server):
    """A header of the client's is another header, and no part of an answer."""
    head = b"GET /api/v1/healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-request-id: a\r\nx-injected: yes\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert b"x-request-id: a\r\n" in answer and b"x-injected" not in answer


RAW_PATHS = [
    "/hf/{model}/resolve/main/{up}{secret}", "/hf/{model}/resolve/main/{encoded}{secret}", "/hf/{up}{secret}",
    "/hf/{model}/resolve/{up}/{secret}", "/hf/api/models/{up}{secret}", "/docs/{up}{secret}", "/docs/{encoded}{secret}",
    "/api/v1/downloads/{up}{secret}?tenant=betas&expires=9999999999&signature=AA", "/{up}{secret}", "//{secret}",
    "/api/v1/downloads/x:train:0/weights/{encoded}/{secret}?tenant=betas&expires=9999999999&signature=AA",
    "/api/v1/traces/{encoded}{secret}?tenant=betas&expires=9999999999&signature=AA", "/%00", "/%ff%fe", "/..%5c..%5c",
]  # fmt: skip


@pytest.mark.parametrize("path", RAW_PATHS)
def test_paths_of_requests_are_no_paths_of_files(server, path):
    """As they are on a connection: clients resolve the dots before they send them."""
    filled = path.format(model=MODEL, up="../" * 12, encoded="%2e%2e%2f" * 12, secret=str(FOLDER / "secret.txt")[1:])
    head = f"GET {filled} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {KEY}\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    # A repository that this server lacks is another hub's, whose name alone it says.
    assert int(answer.split()[1]) in (301, 302, 303, 307, 308, 400, 401, 403, 404, 405), answer
    assert SECRET.encode() not in answer


def test_tokens_name_no_keys_to_fetch(server, canary):
    """`jku` and the like are where a forger keeps its keys."""
    good = claims(exchange(server, KEY))
    forger = Key("EdDSA", "forged")
    for url in urls(canary):
        for extra in ({"jku": url}, {"x5u": url}, {"kid": url}, {"jwk": forger.published()}, {"x5c": [url]}):
            token = forger.sign(good, **extra)
            assert raw.Wire(server, token).http.get("training_runs").status_code == 401
        token = forger.sign(good | {"iss": url})
        assert raw.Wire(server, token).http.get("training_runs").status_code == 401
    header, payload, signature = exchange(server, KEY).split(".")
    kid = json.loads(decode(header))["kid"]
    for changed in ({"alg": "EdDSA", "kid": kid, "jku": urls(canary)[0]}, {"alg": "none", "kid": kid}):
        forged = f"{encode(changed)}.{payload}.{signature}"
        assert raw.Wire(server, forged).http.get("training_runs").status_code == 401


SCHEMAS = [{"$ref": "{url}"}, {"$schema": "{url}"}, {"$id": "{url}", "$ref": "#/x"}, {"type": "object", "properties": {"a": {"$ref": "{url}#/x"}}}]
CONTENTS = [
    [{"type": "image_url", "image_url": {"url": "{url}"}}], [{"type": "file", "file": {"file_data": "{url}"}}],
    [{"type": "input_audio", "input_audio": {"data": "{url}"}}],
    [{"type": "input_image", "image_url": "{url}"}], [{"type": "input_file", "file_url": "{url}"}],
    [{"type": "image", "source": {"type": "url", "url": "{url}"}}],
    [{"type": "document", "source": {"type": "url", "url": "{url}"}}],
]  # fmt: skip


@pytest.mark.parametrize("part", [*SCHEMAS, *CONTENTS], ids=json.dumps)
def test_urls_within_bodies_are_not_followed(mine, canary, part):
    for url in urls(canary):
        filled = json.loads(json.dumps(part).replace("{url}", url))
        message = {"role": "user", "content": "x"}
        body = {"model": MODEL, "max_tokens": 4, "messages": [message]}
        response = {"model": MODEL, "max_output_tokens": 4, "input": [message]}
        if isinstance(filled, list):
            message["content"] = filled
        else:
            schema = {"name": "s", "schema": filled}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
            response["text"] = {"format": {"type": "json_schema", **schema}}
        base = str(mine.wire.http.base_url).removesuffix("/api/v1/")
        for path, sent in (("/v1/chat/completions", body), ("/v1/responses", response), ("/v1/messages", body)):
            answer = mine.wire.http.post(f"{base}{path}", json=sent)
            check([answer])
            assert answer.status_code in (200, 400), answer.text
            if "$schema" not in part or path == "/v1/messages":
                assert answer.status_code == 400, answer.text


NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]|%[0-9a-f]{2})*")
"""Of every file and folder: ids, escaped, names of checkpoints and names of the server's own."""


def test_all_files_are_where_they_belong(server, mine):
    """The last test: what the others left behind. Names of files have plain letters, and nothing is elsewhere."""
    data = server.folder / "data"
    for path in data.rglob("*"):
        for part in path.relative_to(data).parts:
            assert NAME.fullmatch(part.removesuffix("-shm").removesuffix("-wal")), path
    assert sorted(path.name for path in FOLDER.iterdir()) == ["secret.txt", "tiny-chat"]
    assert sorted(path.name for path in server.folder.iterdir()) == ["data", "server.log", "trainyard.toml"]
    lines = server.text().splitlines()
    assert not [line for line in lines if line.endswith("FORGED") and line.startswith("2026-01-01")], "a forged line"
    assert "\x1b[31mb" not in server.text()
    assert SECRET not in server.text()
