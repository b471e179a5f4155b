"""A server process that a measurement starts."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path


class ServerProcess:
    """A server with one model and an empty data folder. It ends with the block."""

    url: str

    def __init__(self, binary: Path, name: str, model: Path, *flags: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="bench-", dir=model.resolve().parent)
        command = [binary.resolve(), "serve", "--host", "127.0.0.1", "--port", "0", *flags]
        command += ["--model", f"{name}={model.resolve()}", "--data-dir", self.folder.name]
        environment = {**os.environ, "TRAINYARD_LOG": "warn"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=self.folder.name, env=environment
        )

    def __enter__(self) -> "ServerProcess":
        for line in self.process.stdout:
            label, _, address = line.strip().partition(" ")
            if label == "API":
                self.url = address.strip()
                return self
        raise RuntimeError("the server ended before it was ready")

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.folder.cleanup()

    def resident_mib(self) -> float | None:
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return None
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024
