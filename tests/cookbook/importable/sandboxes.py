"""Sandboxes that run nothing, for programs that need one: what a random model writes is no program."""

import contextlib
import json
import pathlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REFUSAL = "this sandbox runs nothing"


class Local:
    """A sandbox of `tinker_cookbook.sandbox` that keeps files and refuses commands."""

    sandbox_id = "local"

    def __init__(self) -> None:
        self.files: dict[str, str | bytes] = {}

    async def send_heartbeat(self, timeout: int = 30) -> None:
        """There is nothing to keep alive."""

    async def run_command(
        self, command: str, workdir: str | None = None, timeout: int = 60, max_output_bytes: int | None = None
    ):
        from tinker_cookbook.sandbox.sandbox_interface import SandboxResult

        return SandboxResult(stdout="", stderr=REFUSAL, exit_code=126)

    async def read_file(self, path: str, max_bytes: int | None = None, timeout: int = 60):
        from tinker_cookbook.sandbox.sandbox_interface import SandboxResult

        content = self.files.get(path)
        return SandboxResult(stdout=str(content or ""), stderr="", exit_code=0 if content else 1)

    async def write_file(self, path: str, content: str | bytes, executable: bool = False, timeout: int = 60):
        from tinker_cookbook.sandbox.sandbox_interface import SandboxResult

        self.files[path] = content
        return SandboxResult(stdout="", stderr="", exit_code=0)

    async def cleanup(self) -> None:
        self.files.clear()


async def local(environment: pathlib.Path, timeout: int) -> Local:
    """A factory, as `sandbox_factory` names it."""
    return Local()


class Fusion(BaseHTTPRequestHandler):
    """The API of SandboxFusion, by which every program fails."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802 - the base class requires this name
        self.rfile.read(int(self.headers.get("content-length", 0)))
        result = {"status": "Finished", "return_code": 1, "stdout": "", "stderr": REFUSAL}
        body = json.dumps({"status": "Failed", "message": REFUSAL, "run_result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextlib.contextmanager
def fusion() -> Iterator[str]:
    """Yields the address of a sandbox service that answers until the end of the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Fusion) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}/run_code"
        finally:
            running.shutdown()
            thread.join()
