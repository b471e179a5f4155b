"""HTTP transports that retry, and raise this package's exceptions for refusals.

Both the generated operations and the hand-written layer use them, so that both behave alike. Bodies are read here, and
a connection that is lost while a body is read counts as a failed attempt; a request with the extension `streamed` gets
its response as soon as it begins.
"""

from __future__ import annotations

import asyncio
import time
import uuid

import httpx

from ._notices import AsyncWatch, Notices, Watch
from .errors import TransportError, api_error
from .retry import Attempts, RetryPolicy

IDEMPOTENCY_KEY = "x-idempotency-key"


class RetryingTransport(httpx.BaseTransport):
    """A transport that retries the requests of another one."""

    def __init__(self, inner: httpx.BaseTransport, policy: RetryPolicy) -> None:
        self._inner = inner
        self._policy = policy
        self._notices = Notices()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request until it is answered, refused permanently, or the retry time is over."""
        request.read()
        _identify(request)
        attempts = Attempts(self._policy, request, self._notices)
        _trace(request, Watch(attempts.notice_at, attempts.report))
        while True:
            try:
                response = self._inner.handle_request(request)
                if response.status_code >= 400 or not request.extensions.get("streamed"):
                    response.read()
                if response.status_code < 400:
                    attempts.answered()
                    return response
            except httpx.TransportError as error:
                delay = attempts.delay_after_error(error)
                if delay is None:
                    raise TransportError(_describe(request, error)) from error
            else:
                response.close()
                delay = attempts.delay_after_status(response)
                if delay is None:
                    raise api_error(response)
            for part in attempts.pauses(delay):
                time.sleep(part)

    def close(self) -> None:
        """Closes the connections."""
        self._inner.close()


class AsyncRetryingTransport(httpx.AsyncBaseTransport):
    """A transport that retries the requests of another one."""

    def __init__(self, inner: httpx.AsyncBaseTransport, policy: RetryPolicy) -> None:
        self._inner = inner
        self._policy = policy
        self._notices = Notices()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request until it is answered, refused permanently, or the retry time is over."""
        await request.aread()
        _identify(request)
        attempts = Attempts(self._policy, request, self._notices)
        _trace(request, AsyncWatch(attempts.notice_at, attempts.report))
        while True:
            try:
                response = await self._inner.handle_async_request(request)
                if response.status_code >= 400 or not request.extensions.get("streamed"):
                    await response.aread()
                if response.status_code < 400:
                    attempts.answered()
                    return response
            except httpx.TransportError as error:
                delay = attempts.delay_after_error(error)
                if delay is None:
                    raise TransportError(_describe(request, error)) from error
            else:
                await response.aclose()
                delay = attempts.delay_after_status(response)
                if delay is None:
                    raise api_error(response)
            for part in attempts.pauses(delay):
                await asyncio.sleep(part)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._inner.aclose()


def _trace(request: httpx.Request, watch: Watch | AsyncWatch) -> None:
    """Lets `watch` see how connections are opened, unless the caller traces the request."""
    request.extensions = {"trace": watch, **request.extensions}


def _identify(request: httpx.Request) -> None:
    """All attempts of a request have one key."""
    if request.method != "GET" and IDEMPOTENCY_KEY not in request.headers:
        request.headers[IDEMPOTENCY_KEY] = str(uuid.uuid4())


def _describe(request: httpx.Request, error: httpx.TransportError) -> str:
    return f"{request.method} {request.url}: {type(error).__name__}: {error}".rstrip(": ")
