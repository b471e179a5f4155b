"""Where the server is and who calls, from arguments or the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import httpx

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_KEY = "tml-local"

REQUEST_SECONDS = 60.0


@dataclass(frozen=True)
class Settings:
    """`TRAINYARD_BASE_URL` and `TRAINYARD_API_KEY`, else those of `TINKER_…`, else a local server."""

    base_url: str
    api_key: str = field(repr=False)

    @classmethod
    def of(cls, base_url: str | None, api_key: str | None) -> Settings:
        """What is given, or else the environment's."""
        return cls(
            (base_url or _environment("BASE_URL") or DEFAULT_URL).rstrip("/"),
            api_key or _environment("API_KEY") or DEFAULT_KEY,
        )

    def headers(self, version: str) -> dict[str, str]:
        """Of every request."""
        return {"x-api-key": self.api_key, "user-agent": f"trainyard-python/{version}"}


def timeouts() -> httpx.Timeout:
    """Of a request that does not wait for work."""
    return httpx.Timeout(REQUEST_SECONDS, connect=5.0)


def limits() -> httpx.Limits:
    """As many connections as there are futures that are waited for."""
    return httpx.Limits(max_connections=None, max_keepalive_connections=64)


def _environment(name: str) -> str | None:
    return os.environ.get(f"TRAINYARD_{name}") or os.environ.get(f"TINKER_{name}")
