from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.join_sampling_session_request import JoinSamplingSessionRequest
from ...models.join_sampling_session_response import JoinSamplingSessionResponse
from ...types import Response


def _get_kwargs(
    *,
    body: JoinSamplingSessionRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/join_sampling_session",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> JoinSamplingSessionResponse | None:
    if response.status_code == 200:
        response_200 = JoinSamplingSessionResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[JoinSamplingSessionResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: JoinSamplingSessionRequest,
) -> Response[JoinSamplingSessionResponse]:
    """Returns a number for a clone of a sampling session's client

     Returns a number for a clone of a sampling session's client. The clone counts its samples from
    `client_counter` times 10^9, so that no two clients use the same `seq_id`.

    Args:
        body (JoinSamplingSessionRequest): Request body of `join_sampling_session`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[JoinSamplingSessionResponse]
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
    body: JoinSamplingSessionRequest,
) -> JoinSamplingSessionResponse | None:
    """Returns a number for a clone of a sampling session's client

     Returns a number for a clone of a sampling session's client. The clone counts its samples from
    `client_counter` times 10^9, so that no two clients use the same `seq_id`.

    Args:
        body (JoinSamplingSessionRequest): Request body of `join_sampling_session`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        JoinSamplingSessionResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: JoinSamplingSessionRequest,
) -> Response[JoinSamplingSessionResponse]:
    """Returns a number for a clone of a sampling session's client

     Returns a number for a clone of a sampling session's client. The clone counts its samples from
    `client_counter` times 10^9, so that no two clients use the same `seq_id`.

    Args:
        body (JoinSamplingSessionRequest): Request body of `join_sampling_session`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[JoinSamplingSessionResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: JoinSamplingSessionRequest,
) -> JoinSamplingSessionResponse | None:
    """Returns a number for a clone of a sampling session's client

     Returns a number for a clone of a sampling session's client. The clone counts its samples from
    `client_counter` times 10^9, so that no two clients use the same `seq_id`.

    Args:
        body (JoinSamplingSessionRequest): Request body of `join_sampling_session`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        JoinSamplingSessionResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
