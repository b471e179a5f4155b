"""The server that the environment names: waits until it answers, and formats its refusals as one line."""

from __future__ import annotations

import os
import sys
import time

import httpx
import tinker

from .config import ConfigError, RecipeError

DEFAULT_URL = "https://tinker.thinkingmachines.dev/services/tinker-prod"
"""Where the official package finds its server when `TINKER_BASE_URL` is not set."""
QUIET_SECONDS = 2.0
"""Seconds without a server until a line reports it; also the timeout of each attempt until then."""
GIVE_UP_SECONDS = 60.0
ANSWER_SECONDS, PAUSE_SECONDS = 10.0, 0.5
"""Timeout of each later attempt, and the pause between two."""


def server_url() -> str:
    """The address that the official package uses."""
    return (os.environ.get("TINKER_BASE_URL") or DEFAULT_URL).rstrip("/")


def wait_for(url: str, setting: str) -> None:
    """Waits until a server answers, with any status. `setting` names its address in errors."""
    began = time.monotonic()
    said = False
    while True:
        cause = _attempt(url, setting, httpx.Timeout(ANSWER_SECONDS if said else QUIET_SECONDS))
        if cause is None:
            if said:
                print(f"{url} is available again", file=sys.stderr, flush=True)
            return
        passed = time.monotonic() - began
        if passed > GIVE_UP_SECONDS:
            raise RecipeError(f"{url} is not available after {passed:.0f} s: {cause}; start it, or change {setting}")
        if passed + PAUSE_SECONDS >= QUIET_SECONDS and not said:
            time.sleep(max(QUIET_SECONDS - passed, 0))
            left = f"for up to {GIVE_UP_SECONDS:.0f} s"
            print(f"{url} is not available: {cause}; still trying {left}", file=sys.stderr, flush=True)
            said = True
        time.sleep(PAUSE_SECONDS)


def _attempt(url: str, setting: str, timeout: httpx.Timeout) -> str | None:
    """Why no answer came, or `None`."""
    try:
        httpx.get(f"{url}/api/v1/healthz", timeout=timeout)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise ConfigError(f"{setting}: expected an address like http://127.0.0.1:8000, found {url!r}") from error
    except httpx.TransportError as error:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    return None


def in_one_line(error: tinker.TinkerError) -> Exception:
    """Returns an error of the server as one line that is shown without a traceback."""
    url = server_url()
    if isinstance(error, tinker.AuthenticationError | tinker.PermissionDeniedError):
        return ConfigError(f"TINKER_API_KEY: {url} refuses the key: {_detail(error)}")
    if isinstance(error, tinker.APIConnectionError):
        return RecipeError(f"{url} stopped answering: {error}; the same command resumes the run")
    if isinstance(error, tinker.APIStatusError):
        return RecipeError(f"{url} refused a request: {error.status_code}: {_detail(error)}")
    return RecipeError(f"{url}: {type(error).__name__}: {error}")


def _detail(error: tinker.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("detail"), str):
        return str(body["detail"])
    return str(error)
