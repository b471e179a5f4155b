"""Address of the server and API key, from arguments or the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import httpx

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_KEY = "tml-local"

REQUEST_SECONDS = 60.0


@dataclass(frozen=True)
class Settings:
    """`TRAINYARD_BASE_URL` and `TRAINYARD_API_KEY`, otherwise those of `TINKER_…`, otherwise a local server."""

    base_url: str
    api_key: str = field(repr=False)

    @classmethod
    def of(cls, base_url: str | None, api_key: str | None) -> Settings:
        """Returns the settings from arguments, completed from the environment."""
        return cls(
            (base_url or _environment("BASE_URL") or DEFAULT_URL).rstrip("/"),
            api_key or _environment("API_KEY") or DEFAULT_KEY,
        )

    def headers(self, version: str) -> dict[str, str]:
        """Returns the headers of every request."""
        return {"x-api-key": self.api_key, "user-agent": f"trainyard-python/{version}"}


def timeouts() -> httpx.Timeout:
    """Returns the timeouts of a request that does not wait for work."""
    return httpx.Timeout(REQUEST_SECONDS, connect=5.0)


def limits() -> httpx.Limits:
    """Returns limits that allow as many connections as there are futures being waited for."""
    return httpx.Limits(max_connections=None, max_keepalive_connections=64)


def _environment(name: str) -> str | None:
    return os.environ.get(f"TRAINYARD_{name}") or os.environ.get(f"TINKER_{name}")
