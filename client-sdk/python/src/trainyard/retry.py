"""When a request is sent again, and after how long."""

from __future__ import annotations

import email.utils
import logging
import random
import ssl
import time
from dataclasses import dataclass

import httpx

_logger = logging.getLogger("trainyard")

RETRIED_STATUS = frozenset({408, 429})
"""Refusals that pass, besides all of 500 and above."""

LONGEST_ADVICE = 60.0
"""Seconds: a longer `Retry-After` is not followed."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long failures that may pass are retried: lost connections, timeouts, 408, 429 and 5xx.

    A request is repeated with the same numbers and the same idempotency key, so that the server executes it once.
    """

    seconds: float = 300.0
    """From the first attempt; 0 sends a request once."""
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

    def __init__(self, policy: RetryPolicy, request: httpx.Request) -> None:
        """A request's extension `deadline` (monotonic seconds) shortens the policy's time."""
        self._policy = policy
        self._count = 0
        self._method, self._url = request.method, request.url
        deadline = request.extensions.get("deadline")
        self._end = time.monotonic() + policy.seconds
        if isinstance(deadline, float):
            self._end = min(self._end, deadline)
        # What creates something and has no number to be recognised by is not repeated once it may have arrived.
        self._repeatable = not (request.method == "POST" and "/admin/" in request.url.path)

    def delay_after_status(self, response: httpx.Response) -> float | None:
        """Seconds until the next attempt, or `None` when this answer is final."""
        status = response.status_code
        if status not in RETRIED_STATUS and status < 500:
            return None
        if not self._repeatable and status not in (408, 429, 503):
            return None
        return self._delay(response)

    def delay_after_error(self, error: httpx.TransportError) -> float | None:
        """Seconds until the next attempt, or `None` when this error is final."""
        if isinstance(error, httpx.UnsupportedProtocol) or _is_distrust(error):
            return None
        if not self._repeatable and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return None
        return self._delay(None)

    def _delay(self, response: httpx.Response | None) -> float | None:
        delay = self._policy.delay(self._count, response)
        self._count += 1
        left = self._end - time.monotonic()
        if self._count == 1:
            _logger.warning("%s %s failed; repeated for up to %.0f s", self._method, self._url, max(left, 0))
        # The last attempt is made when the time is over.
        return min(delay, left) if left > 0.05 else None


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
