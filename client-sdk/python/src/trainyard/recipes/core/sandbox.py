"""Runs Python that a model wrote in a separate process with limits on time, memory, files and the network.

This protects from mistakes, not from code that attacks the kernel: for that, run the recipe itself in a container or
virtual machine.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from .config import ConfigError

# Sets the limits and drops what was inherited before the code is compiled. `resource` can lower limits alone.
BOOTSTRAP = """
import resource, sys
seconds, memory, size, processes = map(int, sys.argv[1:5])
for kind, limit in (
    (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, size),
    (resource.RLIMIT_NOFILE, 32), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, processes),
):
    hard = resource.getrlimit(kind)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))
source = open("program.py").read()
sys.argv = ["program.py"]
exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})
"""


@dataclass(frozen=True)
class Result:
    """Result of a program."""

    ok: bool
    """Whether it exited with code 0."""
    output: str
    """Standard output and standard error together, truncated to the limit."""
    timed_out: bool = False


@dataclass(frozen=True)
class Sandbox:
    """Limits of a program. Without user namespaces (`unshare`), network access can't be removed."""

    seconds: float = 5.0
    memory_mib: int = 512
    output_kib: int = 64
    processes: int = 64
    require_no_network: bool = False
    """Whether to refuse to run if network access can't be removed."""

    def run(self, code: str) -> Result:
        """Runs a program in an empty folder, which is deleted afterwards."""
        prefix = no_network()
        if self.require_no_network and not prefix:
            raise ConfigError("sandbox: network access can't be removed: unshare is missing or not permitted")
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
            with open(os.path.join(folder, "program.py"), "w") as file:
                file.write(code)
            limits = [max(int(self.seconds), 1), self.memory_mib << 20, self.output_kib << 10, self.processes]
            command = [*prefix, sys.executable, "-I", "-c", BOOTSTRAP, *map(str, limits)]
            child = subprocess.Popen(
                command, cwd=folder, env={"PATH": "/usr/bin:/bin", "HOME": folder, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
            timed_out = False
            try:
                child.wait(self.seconds + 1)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                kill_group(child)
            output.seek(0)
            text = output.read(self.output_kib << 10).decode(errors="replace")
            return Result(child.returncode == 0 and not timed_out, text, timed_out)


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Ends the program and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@functools.cache
def no_network() -> tuple[str, ...]:
    """Returns the command prefix that removes network access; empty if that is not permitted."""
    program = shutil.which("unshare")
    if program is None:
        return ()
    # With a namespace of processes, whatever the program starts ends with it.
    for options in (("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"), ("--user", "--net")):
        command = (program, *options)
        try:
            if subprocess.run([*command, "true"], capture_output=True, timeout=10).returncode == 0:
                return command
        except (OSError, subprocess.TimeoutExpired):
            continue
    return ()
