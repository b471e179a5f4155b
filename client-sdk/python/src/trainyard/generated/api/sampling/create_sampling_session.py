from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.create_sampling_session_request import CreateSamplingSessionRequest
from ...models.create_sampling_session_response import CreateSamplingSessionResponse
from ...types import Response


def _get_kwargs(
    *,
    body: CreateSamplingSessionRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/create_sampling_session",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CreateSamplingSessionResponse | None:
    if response.status_code == 200:
        response_200 = CreateSamplingSessionResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateSamplingSessionResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateSamplingSessionRequest,
) -> Response[CreateSamplingSessionResponse]:
    """Opens a sampling session on a base model or a sampler checkpoint

     Opens a sampling session on a base model or a sampler checkpoint. The session and
    `sampling_session_seq_id` identify it. Weights are loaded when they are first needed.

    Args:
        body (CreateSamplingSessionRequest): Request body of `create_sampling_session`. If both
            models are set, the base model must be the checkpoint's or
            another name of its weights.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateSamplingSessionResponse]
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
    body: CreateSamplingSessionRequest,
) -> CreateSamplingSessionResponse | None:
    """Opens a sampling session on a base model or a sampler checkpoint

     Opens a sampling session on a base model or a sampler checkpoint. The session and
    `sampling_session_seq_id` identify it. Weights are loaded when they are first needed.

    Args:
        body (CreateSamplingSessionRequest): Request body of `create_sampling_session`. If both
            models are set, the base model must be the checkpoint's or
            another name of its weights.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateSamplingSessionResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateSamplingSessionRequest,
) -> Response[CreateSamplingSessionResponse]:
    """Opens a sampling session on a base model or a sampler checkpoint

     Opens a sampling session on a base model or a sampler checkpoint. The session and
    `sampling_session_seq_id` identify it. Weights are loaded when they are first needed.

    Args:
        body (CreateSamplingSessionRequest): Request body of `create_sampling_session`. If both
            models are set, the base model must be the checkpoint's or
            another name of its weights.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateSamplingSessionResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateSamplingSessionRequest,
) -> CreateSamplingSessionResponse | None:
    """Opens a sampling session on a base model or a sampler checkpoint

     Opens a sampling session on a base model or a sampler checkpoint. The session and
    `sampling_session_seq_id` identify it. Weights are loaded when they are first needed.

    Args:
        body (CreateSamplingSessionRequest): Request body of `create_sampling_session`. If both
            models are set, the base model must be the checkpoint's or
            another name of its weights.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateSamplingSessionResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
