"""A client's session with the service: its numbers, and the heartbeats that keep it alive."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _calls as calls
from ._sending import AsyncSender, Sender
from .errors import GoneError, TrainyardError
from .generated.models import FinishKind

logger = logging.getLogger("trainyard")

HEARTBEAT_SECONDS = 10.0

FAREWELL_SECONDS = 5.0
"""Seconds that closing a client waits for a server that does not answer."""


@dataclass(frozen=True)
class Labels:
    """Metadata with which a session is created."""

    tags: Sequence[str] = ()
    user_metadata: Mapping[str, Any] = field(default_factory=dict)
    project_id: str | None = None


class Session:
    """A session, which is opened when it is first used."""

    def __init__(self, sender: Sender, version: str, labels: Labels) -> None:
        self.sender = sender
        self.runs = itertools.count()
        self.samplers = itertools.count()
        self._create = calls.create_session(version, labels.tags, labels.user_metadata, labels.project_id)
        self._lock = threading.Lock()
        self._id: str | None = None
        self.ended = threading.Event()

    @property
    def id(self) -> str:
        """Returns the session's id."""
        with self._lock:
            if self._id is None:
                self._id = self.sender.send(self._create)
                beats = threading.Thread(
                    target=_beat, args=(self.sender, self._id, self.ended), name="trainyard-heartbeat", daemon=True
                )
                beats.start()
            return self._id

    def finish(self, kind: FinishKind, detail: str | None) -> None:
        """Ends the session; the service unloads its runs."""
        self.ended.set()
        if self._id is not None:
            self.sender.send(calls.finish(self._id, kind, detail), time.monotonic() + FAREWELL_SECONDS)


def _beat(sender: Sender, session_id: str, ended: threading.Event) -> None:
    """Knows the session by its id alone, so that a client that nobody needs any more can be collected."""
    while not ended.wait(HEARTBEAT_SECONDS):
        try:
            sender.send(calls.heartbeat(session_id), time.monotonic() + HEARTBEAT_SECONDS, HEARTBEAT_SECONDS)
        except GoneError:
            logger.warning("session %s has ended", session_id)
            return
        except TrainyardError as error:
            logger.warning("heartbeat of session %s: %s", session_id, error)
        except RuntimeError:
            # The HTTP client was closed.
            return


class AsyncSession:
    """A session, which is opened when it is first used."""

    def __init__(self, sender: AsyncSender, version: str, labels: Labels) -> None:
        self.sender = sender
        self.runs = itertools.count()
        self.samplers = itertools.count()
        self._create = calls.create_session(version, labels.tags, labels.user_metadata, labels.project_id)
        self._lock = asyncio.Lock()
        self._id: str | None = None
        self._beats: asyncio.Task[None] | None = None

    async def id(self) -> str:
        """Returns the session's id."""
        async with self._lock:
            if self._id is None:
                self._id = await self.sender.send(self._create)
                self._beats = asyncio.create_task(self._beat(self._id), name="trainyard-heartbeat")
            return self._id

    async def finish(self, kind: FinishKind, detail: str | None) -> None:
        """Ends the session; the service unloads its runs."""
        if self._beats is not None:
            self._beats.cancel()
        if self._id is not None:
            await self.sender.send(calls.finish(self._id, kind, detail), time.monotonic() + FAREWELL_SECONDS)

    async def _beat(self, session_id: str) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                deadline = time.monotonic() + HEARTBEAT_SECONDS
                await self.sender.send(calls.heartbeat(session_id), deadline, HEARTBEAT_SECONDS)
            except GoneError:
                logger.warning("session %s has ended", session_id)
                return
            except TrainyardError as error:
                logger.warning("heartbeat of session %s: %s", session_id, error)
