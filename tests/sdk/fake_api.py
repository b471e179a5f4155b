"""A stand-in for the OpenAI API of a server: digits that depend on the model's name, the conversation and the seed."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import local_server
from fake_service import mixed


class Served:
    """What an API was asked."""

    def __init__(self):
        self.url, self.lock = "", threading.Lock()
        self.requests: list[tuple[str, str, dict]] = []
        self.statuses: list[int] = []
        """Statuses of the next answers; then they succeed."""

    @property
    def models(self):
        return {body["model"] for _, _, body in self.requests}

    def status(self, path, key, body):
        with self.lock:
            self.requests.append((path, key, body))
            return self.statuses.pop(0) if self.statuses else 200


def reply(body):
    """Two digits, of which each model prefers others."""
    asked = body.get("messages") or body.get("prompt")
    seed = mixed(body["model"], json.dumps(asked), body.get("seed"))
    return f"{seed % 3}{mixed(body['model']) % 10}"


@contextlib.contextmanager
def serving():
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            content = self.rfile.read(int(self.headers["content-length"]))
            if not self.path.endswith("/completions"):
                # A client of a server that had this port before.
                return self.send_error(404)
            body = json.loads(content)
            status = served.status(self.path, self.headers.get("authorization", ""), body)
            choice = {"index": 0, "finish_reason": "stop", "logprobs": None}
            chat = self.path.endswith("/chat/completions")
            choice |= {"message": {"role": "assistant", "content": reply(body)}} if chat else {"text": reply(body)}
            answer = {"id": "x", "object": "chat.completion" if chat else "text_completion", "created": 0, "choices": [choice]}
            answer |= {"model": body["model"], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
            content = json.dumps(answer if status == 200 else {"error": {"message": "busy"}}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            return self.wfile.write(content)

        def log_message(self, *_):
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # An evaluation that ends early breaks its connections.
    server.handle_error = lambda *_: None
    with local_server.serving(server) as served.url:
        yield served
