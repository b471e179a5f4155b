"""A hub on this machine: the part of the Hugging Face hub's protocol that `datasets.load_dataset` uses.

It contains data sets. Requests for models go to `/hf` of the server under test, which has their tokenizers. The hub
passes them on instead of redirecting them: `huggingface_hub` only follows redirects to the public hub.
"""

import contextlib
import hashlib
import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

API = "/api/datasets/"
FILES = "/datasets/"
PASSED_ON = ("content-type", "etag", "location", "x-repo-commit", "x-error-code", "x-error-message")


def digest(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def commit(files: dict[str, bytes]) -> str:
    return digest(b"".join(f"{name} {digest(files[name])}\n".encode() for name in sorted(files)))


def entry(name: str, content: bytes) -> dict:
    return {"type": "file", "path": name, "size": len(content), "oid": digest(content)}


class Hub(ThreadingHTTPServer):
    """Serves files of data sets by name, and the models of a server. `seen` lists all requests, for messages."""

    def __init__(self, repositories: dict[str, dict[str, bytes]], server: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories = repositories
        self.models = urlsplit(server).netloc if server else None
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_GET(self) -> None:  # noqa: N802 - the base class requires this name
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        url = urlsplit(self.path)
        path = unquote(url.path)
        self.server.seen.append(f"{self.command} {self.path}")
        if path.startswith(API):
            repository, files, rest = self._find(path.removeprefix(API))
            if files is None:
                return self._absent("RepoNotFound")
            return self._describe(repository, files, rest, body)
        if path.startswith(FILES):
            _, files, rest = self._find(path.removeprefix(FILES))
            if files is None:
                return self._absent("RepoNotFound")
            if rest[:1] == ["resolve"] and len(rest) > 2:
                return self._file(files, "/".join(rest[2:]))
            return self._absent("EntryNotFound")
        if self.server.models:
            return self._pass_on(self.server.models, body)
        return self._absent("RepoNotFound")

    do_HEAD = do_GET
    do_POST = do_GET

    def _find(self, path: str) -> tuple[str, dict[str, bytes] | None, list[str]]:
        """Returns a repository's name, its files and the rest of the path."""
        words = path.split("/")
        name = "/".join(words[:2])
        return name, self.server.repositories.get(name), words[2:]

    def _describe(self, name: str, files: dict[str, bytes], rest: list[str], body: bytes) -> None:
        kind = rest[0] if rest else "revision"
        if kind == "revision":
            siblings = [{"rfilename": file} for file in sorted(files)]
            return self._json(
                {"id": name, "sha": commit(files), "private": False, "gated": False, "siblings": siblings}
            )
        if kind == "tree":
            # The data sets have no folders.
            found = sorted(files) if len(rest) <= 2 else []
            return self._json([entry(file, files[file]) for file in found])
        if kind == "paths-info":
            return self._json([entry(path, files[path]) for path in asked_paths(body) if path in files])
        return self._absent("EntryNotFound")

    def _file(self, files: dict[str, bytes], name: str) -> None:
        if name not in files:
            return self._absent("EntryNotFound", commit(files))
        self._answer(200, files[name], {"x-repo-commit": commit(files), "etag": f'"{digest(files[name])}"'})

    def _pass_on(self, server: str, body: bytes) -> None:
        connection = http.client.HTTPConnection(server, timeout=60)
        try:
            connection.request(self.command, f"/hf{self.path}", body or None)
            answer = connection.getresponse()
            headers = {name: value for name in PASSED_ON if (value := answer.headers[name]) is not None}
            if self.command == "HEAD":
                headers["content-length"] = answer.headers["content-length"] or "0"
            self._answer(answer.status, answer.read(), headers)
        finally:
            connection.close()

    def _json(self, value: object) -> None:
        self._answer(200, json.dumps(value).encode(), {"content-type": "application/json"})

    def _absent(self, code: str, version: str | None = None) -> None:
        headers = {"x-error-code": code} | ({"x-repo-commit": version} if version else {})
        self._answer(404, b"{}", headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for header, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing, because `seen` lists all requests."""


def asked_paths(body: bytes) -> list[str]:
    """Returns the paths in a request for their description, whose body is a form or JSON."""
    text = body.decode()
    if text.startswith("{"):
        paths = json.loads(text).get("paths", [])
        return [paths] if isinstance(paths, str) else paths
    return parse_qs(text).get("paths", [])


@contextlib.contextmanager
def hub(repositories: dict[str, dict[str, bytes]], server: str | None = None) -> Iterator[Hub]:
    """Yields a hub that serves until the end of the block."""
    with Hub(repositories, server) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()
