"""Trainyard as real processes with real files: what every way of deploying it has in common, and the simplest."""

import os
import pathlib
import re
import subprocess
import time

import httpx

from process import PATIENCE, Process, free_port

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = REPOSITORY / "tests" / "golden"
BINARY = pathlib.Path(os.environ.get("TRAINYARD_BIN", REPOSITORY / "target" / "debug" / "trainyard"))
BENCH = BINARY.with_name("trainyard-bench")
KEY = "tml-local-tests-0123456789"

TINY = "tiny-llama"
TINY_MODELS = {TINY: GOLDEN / "llama"}
SMOL = "HuggingFaceTB/SmolLM2-135M-Instruct"


def smol_path() -> pathlib.Path:
    """The real model: fetched by `make model`, named by TRAINYARD_TEST_MODEL."""
    default = REPOSITORY / ".cache" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    return pathlib.Path(os.environ.get("TRAINYARD_TEST_MODEL", default))


class Deployment:
    """Processes that serve one URL together. URL, ports and folders stay over restarts, so that clients survive them."""

    url: str
    folder: pathlib.Path
    storage: pathlib.Path
    processes: list[Process]

    def start(self, limit=60.0):
        for process in self.processes:
            process.start()
        self.wait_until_ready(limit)
        return self

    def wait_until_ready(self, limit=60.0):
        deadline = time.monotonic() + limit * PATIENCE
        while not self.ready():
            for process in self.processes:
                if not process.alive():
                    raise RuntimeError(f"{process.name} ended with {process.child.returncode}:\n{process.tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server is not ready after {limit} s:\n{self.tail()}")
            time.sleep(0.05)

    def ready(self) -> bool:
        return healthy(self.url)

    def stop(self, limit=30.0) -> int:
        """SIGTERM to all, then the first exit code that is not 0."""
        codes = [process.stop(limit) for process in reversed(self.processes)]
        return next((code for code in codes if code != 0), 0)

    def close(self):
        """Ends what is left; for the end of a test."""
        for process in self.processes:
            process.kill()

    def kill(self):
        """SIGKILL: no chance to write anything."""
        for process in self.processes:
            process.kill()

    def text(self) -> str:
        """The logs."""
        return "\n".join(process.text() for process in self.processes)

    def tail(self, lines=30) -> str:
        return "\n".join(f"--- {process.name}\n{process.tail(lines)}" for process in self.processes)


class Server(Deployment):
    """All in one process: on SQLite in its data folder, or on the PostgreSQL database that a URL names."""

    def __init__(
        self, folder: pathlib.Path, models=None, dtype="f32", config: str | None = None, database: str | None = None,
        flags: list[str] | None = None, storage: str | None = None,
    ):  # fmt: skip
        self.folder = folder
        self.storage = folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        if config is not None:
            (folder / "trainyard.toml").write_text(config)
        command = [BINARY, "serve", "--host", "127.0.0.1", "--port", self.port, "--data-dir", folder / "data"]
        command += engine_flags(models, dtype)
        self.database = database
        if database is not None:
            migrate(database)
            command += ["--database-url", database]
        if storage is not None:
            command += ["--storage", storage]
        self.server = Process("server", command + (flags or []), folder / "server.log", cwd=folder)
        self.processes = [self.server]


def engine_flags(models, dtype) -> list[str]:
    flags = ["--dtype", dtype]
    for name, path in (models or TINY_MODELS).items():
        flags += ["--model", f"{name}={path}"]
    layout = os.environ.get("TRAINYARD_PARALLEL", "")
    if layout != layout_of(models or TINY_MODELS, layout):
        flags += ["--parallel", layout_of(models or TINY_MODELS, layout)]
    return flags


def layout_of(models: dict, layout: str) -> str:
    """A layout like this one that the models permit. The real one has nine heads, three of them of keys: three tensor parallel
    ranks instead of two or four, and beside tiny models, which three do not divide, replicas."""
    if "tp=" not in layout or smol_path() not in models.values():
        return layout
    return re.sub(r"\btp=[24]\b", "tp=3", layout) if len(set(models.values())) == 1 else "dp=2"


def migrate(database: str):
    subprocess.run([BINARY, "migrate", "--database-url", database], check=True, capture_output=True, cwd="/")


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/v1/healthz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False
