"""Organisations and keys for tests: the command line beside a running server, and the admin API."""

import signal
import subprocess
import sys
import time

import httpx

from process import PATIENCE
from server import BINARY

ROOT = "tml-root-0123456789-0123456789"
"""An admin of the operator, from the configuration file."""

CONFIG = f"""
[[tenants]]
name = "ops"
operator = true
keys = [{{ name = "root", key = "{ROOT}", role = "admin" }}]

[[tenants]]
name = "acme"
"""


def store_flags(deployment) -> list:
    """Where a deployment's store is."""
    if database := getattr(deployment, "database", None):
        return ["--database-url", database, "--data-dir", deployment.folder / "cli"]
    return ["--data-dir", deployment.folder / "data"]


def trainyard(deployment, *words, fails=False) -> list[list[str]]:
    """The lines that a command prints, in fields."""
    command = [str(word) for word in (BINARY, *words, *store_flags(deployment))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, cwd=deployment.folder)
    assert (done.returncode != 0) == fails, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return [line.split("\t") for line in (done.stderr if fails else done.stdout).splitlines()]


def new_key(deployment, organisation, *flags) -> tuple[str, int]:
    """A key and its id, by the command line."""
    ((key, number),) = trainyard(deployment, "keys", "create", organisation, "--name", "test", *flags)
    return key, int(number)


def seconds_until(holds, within=30.0) -> float:
    """How long it takes from now until something holds, measured at the end of the look that finds it so."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < within * PATIENCE, "it never holds"
        time.sleep(0.01)
    return time.monotonic() - start


def admin(url, key=ROOT) -> httpx.Client:
    return httpx.Client(base_url=f"{url}/api/v1/", headers={"x-api-key": key}, timeout=60 * PATIENCE)


def tinker(url, key, home, *words, stdin=None, fails=False, **environment) -> str:
    """What a command of the official command line prints; what it says in the end where it fails, as it must then."""
    environment |= {"PATH": "/usr/bin:/bin", "HOME": str(home), "TINKER_BASE_URL": url, "TINKER_TELEMETRY": "0"}
    if key is not None:
        environment["TINKER_API_KEY"] = key
    command = [sys.executable, "-m", "tinker.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 * PATIENCE, env=environment, input=stdin, cwd=home)
    # The client's native transport now and then aborts the interpreter's exit, when all is done and said.
    succeeded = done.returncode == 0 or (done.returncode == -signal.SIGABRT and "Error" not in done.stderr)
    assert succeeded != fails, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr if fails else done.stdout
