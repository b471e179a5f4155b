"""Sends calls, from threads or with asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from ._calls import Call
from ._settings import Settings, limits, timeouts
from ._transport import AsyncRetryingTransport, RetryingTransport
from .errors import ApiError
from .generated.client import Client as Operations
from .retry import RetryPolicy

T = TypeVar("T")


def _extensions(deadline: float | None, seconds: float | None) -> dict[str, Any]:
    """For httpx: the time of one attempt, and for the retrying transport the end of all."""
    extensions: dict[str, Any] = {}
    if seconds is not None:
        if deadline is not None:
            seconds = max(min(seconds, deadline - time.monotonic()), 0.001)
        extensions["timeout"] = httpx.Timeout(seconds, connect=min(5.0, seconds)).as_dict()
    if deadline is not None:
        extensions["deadline"] = deadline
    return extensions


class Sender:
    """Sends calls one at a time; any number of threads may use it."""

    def __init__(self, settings: Settings, version: str, policy: RetryPolicy) -> None:
        transport = RetryingTransport(httpx.HTTPTransport(limits=limits()), policy)
        self.http = httpx.Client(
            base_url=settings.base_url, headers=settings.headers(version), timeout=timeouts(), transport=transport
        )
        self.operations = Operations(blocking=self.http)

    def send(self, call: Call[T], deadline: float | None = None, seconds: float | None = None) -> T:
        """Returns the answer. `deadline` (monotonic seconds) ends retries; `seconds` limits an attempt."""
        response = self.http.post(
            call.path, content=call.content, headers=dict(call.headers), extensions=_extensions(deadline, seconds)
        )
        return call.read(response)

    def close(self) -> None:
        """Closes the connections."""
        self.http.close()


class AsyncSender:
    """Sends calls concurrently, in one event loop."""

    def __init__(self, settings: Settings, version: str, policy: RetryPolicy) -> None:
        transport = AsyncRetryingTransport(httpx.AsyncHTTPTransport(limits=limits()), policy)
        self.http = httpx.AsyncClient(
            base_url=settings.base_url, headers=settings.headers(version), timeout=timeouts(), transport=transport
        )
        self.operations = Operations(asynchronous=self.http)

    async def send(self, call: Call[T], deadline: float | None = None, seconds: float | None = None) -> T:
        """Returns the answer. `deadline` (monotonic seconds) ends retries; `seconds` limits an attempt."""
        response = await self.http.post(
            call.path, content=call.content, headers=dict(call.headers), extensions=_extensions(deadline, seconds)
        )
        return call.read(response)

    async def close(self) -> None:
        """Closes the connections."""
        await self.http.aclose()


def is_refusal(error: BaseException) -> bool:
    """Returns whether the server certainly did not accept the request."""
    return isinstance(error, ApiError) and error.status < 500 and error.status != 408


class Order:
    """Numbers the requests of a run from 1 without gaps, and sends them in that order.

    A number is consumed when the server accepts the request. If that is unknown, because the connection was lost for
    longer than the retry time or the caller was interrupted, the same request is sent again before the next one. A call
    with the same content refers to that request.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._lock = threading.Lock()
        self._next = 1
        self._unconfirmed: Call[str] | None = None

    def submit(self, build: Callable[[int], Call[str]]) -> str:
        """Sends the request that `build` makes for the next number; returns the future's id."""
        with self._lock:
            call = build(self._next)
            if self._unconfirmed is not None and self._unconfirmed.content != call.content:
                self._deliver(self._unconfirmed)
                call = build(self._next)
            return self._deliver(call)

    def _deliver(self, call: Call[str]) -> str:
        self._unconfirmed = call
        try:
            request_id = self._sender.send(call)
        except Exception as error:
            if is_refusal(error):
                self._unconfirmed = None
            raise
        self._unconfirmed = None
        self._next += 1
        return request_id


class AsyncOrder:
    """Same as `Order`, for asyncio. A submission continues when the task that waits for it is cancelled."""

    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender
        self._lock = asyncio.Lock()
        self._next = 1
        self._unconfirmed: Call[str] | None = None

    async def submit(self, build: Callable[[int], Call[str]]) -> str:
        """Sends the request that `build` makes for the next number; returns the future's id."""
        return await asyncio.shield(asyncio.ensure_future(self._submit(build)))

    async def _submit(self, build: Callable[[int], Call[str]]) -> str:
        async with self._lock:
            call = build(self._next)
            if self._unconfirmed is not None and self._unconfirmed.content != call.content:
                await self._deliver(self._unconfirmed)
                call = build(self._next)
            return await self._deliver(call)

    async def _deliver(self, call: Call[str]) -> str:
        self._unconfirmed = call
        try:
            request_id = await self._sender.send(call)
        except Exception as error:
            if is_refusal(error):
                self._unconfirmed = None
            raise
        self._unconfirmed = None
        self._next += 1
        return request_id
