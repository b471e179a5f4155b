"""Exceptions of this package."""

from __future__ import annotations

import json

import httpx


class TrainyardError(Exception):
    """The base of all exceptions of this package."""


class TransportError(TrainyardError):
    """The server could not be reached, or stopped answering, for as long as the retry policy allows."""


class ProtocolError(TrainyardError):
    """An answer that this client does not understand."""


class RequestFailedError(TrainyardError):
    """A request was accepted and failed when it was executed.

    `category` is `user` if the request is at fault, `server` if the service is, otherwise `unknown`.
    """

    def __init__(self, message: str, category: str, request_id: str) -> None:
        super().__init__(message)
        self.category = category
        self.request_id = request_id


class ApiError(TrainyardError):
    """The server refused a request: `status` is the HTTP status, `detail` names the field and what is wrong.

    `request_id` is the id of the HTTP request, which the server's log also contains.
    """

    def __init__(self, status: int, detail: str, request_id: str | None = None) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.request_id = request_id


class InvalidRequestError(ApiError):
    """400, 413, 415 or 422: the request itself is wrong."""


class AuthenticationError(ApiError):
    """401: the API key is missing, malformed or unknown."""


class PermissionDeniedError(ApiError):
    """403: the key does not allow this."""


class NotFoundError(ApiError):
    """404: the object does not exist, or belongs to another tenant."""


class GoneError(ApiError):
    """410: the session ended, or a sample's result expired."""


class RateLimitError(ApiError):
    """429: a quota or a queue is full, and stayed so for as long as the retry policy allows."""


class ServerError(ApiError):
    """5xx: the service failed for as long as the retry policy allows."""


_KINDS: dict[int, type[ApiError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    410: GoneError,
    413: InvalidRequestError,
    415: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
}


def api_error(response: httpx.Response) -> ApiError:
    """Returns the exception for a refusal whose body has been read."""
    kind = ServerError if response.status_code >= 500 else _KINDS.get(response.status_code, ApiError)
    return kind(response.status_code, _detail(response), response.headers.get("x-request-id"))


def _detail(response: httpx.Response) -> str:
    """`detail` of the Tinker API, `error.message` of the others, or the text of a proxy."""
    try:
        body = json.loads(response.content)
    except ValueError:
        return response.text or response.reason_phrase
    if isinstance(body, dict):
        if isinstance(body.get("detail"), str):
            return str(body["detail"])
        error = body.get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            return str(error["message"])
    return response.text
