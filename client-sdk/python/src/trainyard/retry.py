"""When a request is sent again, and after how long."""

from __future__ import annotations

import email.utils
import random
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from ._notices import QUIET_SECONDS, Notices

RETRIED_STATUS = frozenset({408, 429})
"""Statuses that are retried, besides all from 500 on."""

LONGEST_ADVICE = 60.0
"""Seconds; a longer `Retry-After` is not honoured."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long failures that may pass are retried: lost connections, timeouts, 408, 429 and 5xx.

    A request is repeated with the same numbers and the same idempotency key, so that the server executes it once.
    """

    seconds: float = 300.0
    """Seconds from the first attempt; 0 sends a request once."""
    first_delay: float = 0.5
    """Seconds before the second attempt; doubled before each further one."""
    longest_delay: float = 10.0
    """Seconds."""

    def delay(self, attempt: int, response: httpx.Response | None) -> float:
        """Seconds to wait after an attempt, counted from 0: what the server advises, or a part of the back-off."""
        advised = _advice(response) if response is not None else None
        if advised is not None and 0 < advised <= LONGEST_ADVICE:
            return advised
        # The exponent is limited for the sake of the power, not of the delay.
        longest = min(self.first_delay * 2.0 ** min(attempt, 30), self.longest_delay)
        return longest * random.uniform(0.75, 1.0)


class Attempts:
    """The attempts of one request: counts them and keeps to the time that is allowed."""

    def __init__(self, policy: RetryPolicy, request: httpx.Request, notices: Notices) -> None:
        """A request's extension `deadline` (monotonic seconds) shortens the policy's time."""
        self._policy = policy
        self._notices = notices
        self._count = 0
        self._cause = "no connection yet"
        self._server = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}"
        deadline = request.extensions.get("deadline")
        began = time.monotonic()
        self.notice_at = began + QUIET_SECONDS
        """Monotonic time in seconds after which a failing request is logged."""
        self._end = began + policy.seconds
        if isinstance(deadline, float):
            self._end = min(self._end, deadline)
        # What creates something and has no number to be recognised by is not repeated once it may have arrived.
        self._repeatable = not (request.method == "POST" and "/admin/" in request.url.path)

    def delay_after_status(self, response: httpx.Response) -> float | None:
        """Seconds until the next attempt, or `None` when this answer is final."""
        status = response.status_code
        if status not in RETRIED_STATUS and status < 500:
            self.answered()
            return None
        if not self._repeatable and status not in (408, 429, 503):
            return None
        self._cause = f"{status} {response.reason_phrase}".rstrip()
        return self._delay(response)

    def delay_after_error(self, error: httpx.TransportError) -> float | None:
        """Seconds until the next attempt, or `None` when this error is final."""
        if isinstance(error, httpx.UnsupportedProtocol) or _is_distrust(error):
            return None
        if not self._repeatable and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return None
        self._cause = f"{type(error).__name__}: {error}".rstrip(": ")
        return self._delay(None)

    def _delay(self, response: httpx.Response | None) -> float | None:
        delay = self._policy.delay(self._count, response)
        self._count += 1
        left = self._end - time.monotonic()
        # The last attempt is made when the time is over.
        return min(delay, left) if left > 0.05 else None

    def report(self) -> None:
        """Logs that the server is not available, with the cause of the last attempt's failure."""
        self._notices.trouble(self._server, self._cause, self._end - time.monotonic())

    def answered(self) -> None:
        """Logs that the server is available again, if a line said that it was not."""
        self._notices.over(self._server)

    def pauses(self, delay: float) -> Iterator[float]:
        """The parts of a pause between two attempts, in seconds. Between them the line is logged when it is due."""
        before = max(self.notice_at - time.monotonic(), 0.0)
        if before < delay:
            yield before
            self.report()
            delay -= before
        yield delay


def _is_distrust(error: BaseException | None) -> bool:
    """Whether the server's certificate is refused, which does not pass."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _advice(response: httpx.Response) -> float | None:
    """Seconds of `Retry-After`, a number or a date."""
    text = response.headers.get("retry-after")
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (TypeError, ValueError):
        return None
