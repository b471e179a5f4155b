"""Starts the cookbook's proxy that records calls, and its store; asks both; requires that the store has the call.

capture.py FOLDER MODEL
"""

import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

PATIENCE = 240
PACKAGE = "tinker_cookbook.capture"


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen]:
    """Yields a program that runs until the end of the block."""
    with subprocess.Popen([sys.executable, "-m", *arguments]) as child:
        try:
            yield child
        finally:
            child.terminate()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def asked(url: str, body: dict | None = None) -> dict | list:
    """Returns the answer of a service that may still be starting."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{url}: {error.code}: {error.read().decode()}") from error
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def main() -> None:
    folder, model = pathlib.Path(sys.argv[1]), sys.argv[2]
    store, port = folder / "store", free_port()
    with started(f"{PACKAGE}.store.daemon", "--data-dir", str(store)):
        while not (store / "daemon.json").exists():
            time.sleep(0.2)

        proxy = ("--port", str(port), "--base-model", model, "--default-max-tokens", "8")
        with started(f"{PACKAGE}.proxy.serve", *proxy, "--store-data-dir", str(store)):
            body = {"model": model, "max_tokens": 8, "messages": [{"role": "user", "content": "Hello"}]}
            answer = asked(f"http://127.0.0.1:{port}/v1/chat/completions", body)
            print(f"answered: {json.dumps(answer)[:200]}")


if __name__ == "__main__":
    main()
