"""As much of a Hugging Face hub as an upload of a folder asks for; it keeps what it is given."""

import base64
import contextlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import local_server


class Hub(ThreadingHTTPServer):
    """Repositories with the files that were committed, by name; and every request, for messages."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.made: list[dict] = []
        self.commits: list[dict] = []
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802: the name that the base class calls
        self.server.seen.append(f"GET {self.path}")
        if self.path.startswith("/api/whoami-v2"):
            return self._answer({"name": "tester", "type": "user", "auth": {"type": "access_token"}})
        return self._answer({"error": "Entry not found"}, 404, {"x-error-code": "EntryNotFound"})

    do_HEAD = do_GET

    def do_POST(self):  # noqa: N802
        self.server.seen.append(f"POST {self.path}")
        body = self._body()
        path = self.path.partition("?")[0]
        if path == "/api/repos/create":
            made = json.loads(body)
            self.server.made.append(made)
            name = f"{made.get('organization') or 'tester'}/{made['name']}"
            self.server.repositories.setdefault(name, {})
            return self._answer({"url": f"{self.server.url}/{name}", "id": "1"})
        owner, name, verb = path.removeprefix("/api/models/").split("/")[:3]
        if verb == "preupload":
            paths = [one["path"] for one in json.loads(body)["files"]]
            return self._answer(
                {"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]}
            )
        if verb == "commit":
            return self._answer(self._commit(f"{owner}/{name}", body))
        return self._answer({"valid": True})

    def _commit(self, repository: str, body: bytes) -> dict:
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                self.server.commits.append({"path": self.path, **value})
            elif line["key"] == "file":
                self.server.repositories[repository][value["path"]] = base64.b64decode(value["content"])
        commit = "0" * 40
        pull = f"{self.server.url}/{repository}/discussions/1"
        url = f"{self.server.url}/{repository}/commit/{commit}"
        return {"commitUrl": url, "commitOid": commit, "pullRequestUrl": pull}

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, answer, status=200, headers=None):
        text = json.dumps(answer).encode()
        self.send_response(status)
        lengths = {"content-type": "application/json", "content-length": str(len(text))}
        for name, value in {**lengths, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *_):
        """Nothing: tests look at what it keeps."""


@contextlib.contextmanager
def hub():
    """One that serves until the end of the block."""
    running = Hub()
    with local_server.serving(running):
        yield running
