"""A real server process with real files."""

import os
import pathlib
import signal
import socket
import subprocess
import time

import httpx

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = REPOSITORY / "tests" / "golden"
BINARY = pathlib.Path(os.environ.get("TRAINYARD_BIN", REPOSITORY / "target" / "debug" / "trainyard"))
KEY = "tml-local-tests"

TINY = "tiny-llama"
TINY_MODELS = {TINY: GOLDEN / "llama"}
SMOL = "HuggingFaceTB/SmolLM2-135M-Instruct"


def smol_path() -> pathlib.Path:
    """The real model: fetched by `make model`, named by TRAINYARD_TEST_MODEL."""
    default = REPOSITORY / ".cache" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    return pathlib.Path(os.environ.get("TRAINYARD_TEST_MODEL", default))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Keeps its port and its data folder over restarts, so that clients survive them."""

    def __init__(self, folder: pathlib.Path, models=None, dtype="f32", config: str | None = None):
        self.folder = folder
        self.models = models or TINY_MODELS
        self.dtype = dtype
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "server.log"
        self.process = None
        if config is not None:
            (folder / "trainyard.toml").write_text(config)

    def start(self, limit=60.0):
        command = [str(BINARY), "serve", "--host", "127.0.0.1", "--port", str(self.port), "--dtype", self.dtype]
        command += ["--data-dir", str(self.folder / "data")]
        for name, path in self.models.items():
            command += ["--model", f"{name}={path}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.tail()}")
            try:
                if httpx.get(f"{self.url}/api/v1/healthz", timeout=2).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"the server is not ready after {limit} s:\n{self.tail()}")

    def stop(self, limit=30.0) -> int:
        """SIGTERM, then its exit code."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the server ignored SIGTERM for {limit} s:\n{self.tail()}") from None

    def kill(self):
        """SIGKILL: no chance to write anything."""
        self.process.kill()
        self.process.wait()

    def tail(self, lines=30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
