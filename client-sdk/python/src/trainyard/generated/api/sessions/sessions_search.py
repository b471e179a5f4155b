from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.session_search_request import SessionSearchRequest
from ...models.session_search_response import SessionSearchResponse
from ...types import Response


def _get_kwargs(
    *,
    body: SessionSearchRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/sessions/search",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> SessionSearchResponse | None:
    if response.status_code == 200:
        response_200 = SessionSearchResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[SessionSearchResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: SessionSearchRequest,
) -> Response[SessionSearchResponse]:
    """Searches the caller's sessions, newest first

     Searches the caller's sessions, newest first.

    Args:
        body (SessionSearchRequest): Request body of `sessions/search`. A session must satisfy
            every condition that is set. If both `session_id` and
            `display_name` are set, it must satisfy either of these two.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SessionSearchResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: SessionSearchRequest,
) -> SessionSearchResponse | None:
    """Searches the caller's sessions, newest first

     Searches the caller's sessions, newest first.

    Args:
        body (SessionSearchRequest): Request body of `sessions/search`. A session must satisfy
            every condition that is set. If both `session_id` and
            `display_name` are set, it must satisfy either of these two.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SessionSearchResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: SessionSearchRequest,
) -> Response[SessionSearchResponse]:
    """Searches the caller's sessions, newest first

     Searches the caller's sessions, newest first.

    Args:
        body (SessionSearchRequest): Request body of `sessions/search`. A session must satisfy
            every condition that is set. If both `session_id` and
            `display_name` are set, it must satisfy either of these two.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SessionSearchResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: SessionSearchRequest,
) -> SessionSearchResponse | None:
    """Searches the caller's sessions, newest first

     Searches the caller's sessions, newest first.

    Args:
        body (SessionSearchRequest): Request body of `sessions/search`. A session must satisfy
            every condition that is set. If both `session_id` and
            `display_name` are set, it must satisfy either of these two.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SessionSearchResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
