"""Results of requests that the server executes asynchronously."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

from . import _calls as calls
from ._calls import POLL_SECONDS, Pending, Result
from ._sending import AsyncSender, Sender
from .errors import GoneError, TransportError

T = TypeVar("T")


class Future(Generic[T]):
    """A request that was accepted. Its result can be asked for at any time, from any thread, and repeatedly."""

    def __init__(
        self, sender: Sender, request_id: str, read: Result[T], again: Callable[[], str] | None = None
    ) -> None:
        """`again` submits the request anew, under a new number, when its result has expired."""
        self.request_id = request_id
        self._sender = sender
        self._read = read
        self._again = again
        self._lock = threading.Lock()
        self._outcome: tuple[T] | None = None

    def result(self, timeout: float | None = None) -> T:
        """Waits for the result, for at most `timeout` seconds.

        Raises:
            RequestFailedError: the request failed.
            TimeoutError: there is no result yet; asking again is possible.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            raise TimeoutError(f"{self.request_id}: no result after {timeout} s")
        try:
            while self._outcome is None:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError(f"{self.request_id}: no result after {timeout} s")
                self._poll(deadline)
            return self._outcome[0]
        finally:
            self._lock.release()

    def _poll(self, deadline: float | None) -> None:
        call = calls.retrieve(self.request_id, self._read)
        try:
            answer = self._sender.send(call, deadline, POLL_SECONDS)
        except GoneError:
            if self._again is None:
                raise
            self.request_id = self._again()
            return
        except TransportError as error:
            if deadline is not None and time.monotonic() >= deadline - 0.5:
                raise TimeoutError(f"{self.request_id}: {error}") from error
            raise
        if not isinstance(answer, Pending):
            self._outcome = (answer,)


class AsyncFuture(Generic[T]):
    """A request that was accepted: `await` it, or its `result`."""

    def __init__(
        self, sender: AsyncSender, request_id: str, read: Result[T], again: Callable[[], Awaitable[str]] | None = None
    ) -> None:
        """`again` submits the request anew, under a new number, when its result has expired."""
        self.request_id = request_id
        self._sender = sender
        self._read = read
        self._again = again
        self._outcome: tuple[T] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        """Waits for the result without a limit."""
        return self.result().__await__()

    async def result(self, timeout: float | None = None) -> T:
        """Waits for the result, for at most `timeout` seconds.

        Raises:
            RequestFailedError: the request failed.
            TimeoutError: there is no result yet; asking again is possible.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._outcome is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{self.request_id}: no result after {timeout} s")
            await self._poll(deadline)
        return self._outcome[0]

    async def _poll(self, deadline: float | None) -> None:
        call = calls.retrieve(self.request_id, self._read)
        try:
            answer = await self._sender.send(call, deadline, POLL_SECONDS)
        except GoneError:
            if self._again is None:
                raise
            self.request_id = await self._again()
            return
        except TransportError as error:
            if deadline is not None and time.monotonic() >= deadline - 0.5:
                raise TimeoutError(f"{self.request_id}: {error}") from error
            raise
        if not isinstance(answer, Pending):
            self._outcome = (answer,)
