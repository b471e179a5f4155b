"""A program under test: started, killed, stopped and continued at will."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time


PATIENCE = float(os.environ.get("TRAINYARD_TEST_PATIENCE", "1"))
"""How many times longer everything may take: a simulated GPU is slow."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """Keeps its command line and its log over restarts. It leads a process group of its own."""

    def __init__(self, name: str, command: list, log: pathlib.Path, cwd: pathlib.Path, **options):
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        self.cwd = cwd
        self.options = options
        self.child: subprocess.Popen | None = None

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.command, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                process_group=0, **self.options,
            )  # fmt: skip
        return self

    def alive(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def stop(self, limit=30.0) -> int:
        """SIGTERM, then its exit code."""
        if self.child is None:
            return 0
        if self.alive():
            self.child.send_signal(signal.SIGTERM)
            self.child.send_signal(signal.SIGCONT)
        try:
            return self.child.wait(limit * PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self.name} ignored SIGTERM for {limit} s:\n{self.tail()}") from None

    def kill(self):
        """SIGKILL: no chance to write anything."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()

    def kill_all(self):
        """SIGKILL to it and to the processes that it started; returns when all of them are gone."""
        if self.child is None:
            return
        started = []
        if self.alive():
            # It starts no more of them.
            self.child.send_signal(signal.SIGSTOP)
            started = self._started()
        for child in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.kill()
        deadline = time.monotonic() + 30
        while any(exists(child) for child in started):
            assert time.monotonic() < deadline, f"{self.name}: a process that it started does not end"
            time.sleep(0.005)

    def _started(self) -> list[int]:
        """They may have left its process group, as those of PostgreSQL do."""
        pid = self.child.pid
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def freeze(self):
        """SIGSTOP: it neither runs nor ends; its connections stay open."""
        self.child.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.child.send_signal(signal.SIGCONT)

    def freeze_all(self):
        """SIGSTOP to it and to the processes that it started, first to itself so that no new ones come."""
        self._signal_all(signal.SIGSTOP)

    def thaw_all(self):
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int):
        if not self.alive():
            return
        self.child.send_signal(number)
        for child in self._started():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    def resident_bytes(self) -> int:
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines=30) -> str:
        return "\n".join(self.text().splitlines()[-lines:])


def exists(pid: int) -> bool:
    """Whether a process has not ended; nobody may have waited for one that has."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
