"""Log messages about a server that does not answer, so that a waiting program is not silent."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

_logger = logging.getLogger("trainyard")

QUIET_SECONDS = 2.0
"""Seconds that a request fails before this is logged."""

_CONNECTING = ("connection.connect_tcp.", "connection.start_tls.")


class Notices:
    """The messages of one client: one when its server becomes unavailable, and one when it is available again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said = False

    def trouble(self, server: str, cause: str, left: float) -> None:
        """Warns once, however many requests fail. `left` is the time in seconds for which they are retried."""
        with self._lock:
            if self._said:
                return
            self._said = True
        limit = f" for up to {left:.0f} s" if left >= 1 else ""
        _logger.warning("%s is not available: %s; still trying%s", server, cause, limit)

    def over(self, server: str) -> None:
        """Reports that the server is available again."""
        with self._lock:
            said, self._said = self._said, False
        if said:
            _logger.warning("%s is available again", server)


class Watch:
    """Calls `late` if opening a connection takes until `moment` (monotonic seconds). A trace for a synchronous
    transport of httpx."""

    def __init__(self, moment: float, late: Callable[[], None]) -> None:
        self._moment, self._late = moment, late
        self._timer: threading.Timer | None = None

    def __call__(self, event: str, info: dict[str, Any]) -> None:
        """Starts or stops the timer."""
        if not event.startswith(_CONNECTING):
            return
        if event.endswith(".started"):
            self._timer = threading.Timer(max(self._moment - time.monotonic(), 0), self._late)
            self._timer.daemon = True
            self._timer.start()
        elif self._timer is not None:
            self._timer.cancel()


class AsyncWatch:
    """Same as `Watch`, for an asynchronous transport."""

    def __init__(self, moment: float, late: Callable[[], None]) -> None:
        self._moment, self._late = moment, late
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, event: str, info: dict[str, Any]) -> None:
        """Starts or stops the timer."""
        if not event.startswith(_CONNECTING):
            return
        if event.endswith(".started"):
            seconds = max(self._moment - time.monotonic(), 0)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._late)
        elif self._timer is not None:
            self._timer.cancel()
