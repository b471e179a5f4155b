from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.checkpoint_search_request import CheckpointSearchRequest
from ...models.checkpoint_search_response import CheckpointSearchResponse
from ...types import Response


def _get_kwargs(
    *,
    body: CheckpointSearchRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/checkpoints/search",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CheckpointSearchResponse | None:
    if response.status_code == 200:
        response_200 = CheckpointSearchResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CheckpointSearchResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CheckpointSearchRequest,
) -> Response[CheckpointSearchResponse]:
    """Searches the checkpoints that the caller may list, newest first

     Searches the checkpoints that the caller may list, newest first. These are the caller's own; with
    another `owner`, also public ones.

    Args:
        body (CheckpointSearchRequest): Request body of `checkpoints/search`. A checkpoint must
            satisfy every condition that is set.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CheckpointSearchResponse]
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
    body: CheckpointSearchRequest,
) -> CheckpointSearchResponse | None:
    """Searches the checkpoints that the caller may list, newest first

     Searches the checkpoints that the caller may list, newest first. These are the caller's own; with
    another `owner`, also public ones.

    Args:
        body (CheckpointSearchRequest): Request body of `checkpoints/search`. A checkpoint must
            satisfy every condition that is set.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CheckpointSearchResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CheckpointSearchRequest,
) -> Response[CheckpointSearchResponse]:
    """Searches the checkpoints that the caller may list, newest first

     Searches the checkpoints that the caller may list, newest first. These are the caller's own; with
    another `owner`, also public ones.

    Args:
        body (CheckpointSearchRequest): Request body of `checkpoints/search`. A checkpoint must
            satisfy every condition that is set.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CheckpointSearchResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CheckpointSearchRequest,
) -> CheckpointSearchResponse | None:
    """Searches the checkpoints that the caller may list, newest first

     Searches the checkpoints that the caller may list, newest first. These are the caller's own; with
    another `owner`, also public ones.

    Args:
        body (CheckpointSearchRequest): Request body of `checkpoints/search`. A checkpoint must
            satisfy every condition that is set.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CheckpointSearchResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
