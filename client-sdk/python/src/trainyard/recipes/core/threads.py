"""Work in threads that are abandoned at their time limit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from typing import Any, TypeVar

T = TypeVar("T")


class EpisodeTimeout(Exception):
    """An episode exceeded its time limit."""


class Threads:
    """Runs work in daemon threads, which can't be stopped but need not be waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._pending: set[Future[Any]] = set()

    def within(self, seconds: float, work: Callable[[], T], late: Callable[[], str]) -> T:
        """Runs work for at most `seconds`; 0 sets no limit. `late` is the text of `EpisodeTimeout`."""
        outcome: Future[T] = Future()
        with self._lock:
            if self._closed.is_set():
                raise CancelledError
            self._pending.add(outcome)
        threading.Thread(target=_settle, args=(outcome, work), name="episode", daemon=True).start()
        try:
            # Raises only if the time passes or the outcome is cancelled: an error of the work is returned.
            outcome.exception(seconds or None)
        except TimeoutError:
            if outcome.cancel() and not self._closed.is_set():
                raise EpisodeTimeout(late()) from None
        finally:
            with self._lock:
                self._pending.discard(outcome)
        return outcome.result()

    def pause(self, seconds: float) -> None:
        """Waits, unless the threads are closed meanwhile."""
        self._closed.wait(seconds)

    def close(self) -> None:
        """Abandons all work: callers that wait for it get a `CancelledError`."""
        with self._lock:
            self._closed.set()
            for outcome in self._pending:
                outcome.cancel()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _settle(outcome: Future[T], work: Callable[[], T]) -> None:
    # The outcome of abandoned work is cancelled, and takes no result.
    with contextlib.suppress(InvalidStateError):
        try:
            found = work()
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(found)
