from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.count_tokens_request import CountTokensRequest
from ...models.count_tokens_response import CountTokensResponse
from ...types import Response


def _get_kwargs(
    *,
    body: CountTokensRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/anthropic/api/v1/messages/count_tokens",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CountTokensResponse | None:
    if response.status_code == 200:
        response_200 = CountTokensResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CountTokensResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CountTokensRequest,
) -> Response[CountTokensResponse]:
    """Counts the tokens of a conversation, rendered with the model's own chat template

     Counts the tokens of a conversation, rendered with the model's own chat template. Nothing is
    sampled.

    Also served at `/v1/messages/count_tokens`.

    Args:
        body (CountTokensRequest): Request body of `messages/count_tokens`. Unknown fields are
            refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CountTokensResponse]
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
    body: CountTokensRequest,
) -> CountTokensResponse | None:
    """Counts the tokens of a conversation, rendered with the model's own chat template

     Counts the tokens of a conversation, rendered with the model's own chat template. Nothing is
    sampled.

    Also served at `/v1/messages/count_tokens`.

    Args:
        body (CountTokensRequest): Request body of `messages/count_tokens`. Unknown fields are
            refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CountTokensResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CountTokensRequest,
) -> Response[CountTokensResponse]:
    """Counts the tokens of a conversation, rendered with the model's own chat template

     Counts the tokens of a conversation, rendered with the model's own chat template. Nothing is
    sampled.

    Also served at `/v1/messages/count_tokens`.

    Args:
        body (CountTokensRequest): Request body of `messages/count_tokens`. Unknown fields are
            refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CountTokensResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CountTokensRequest,
) -> CountTokensResponse | None:
    """Counts the tokens of a conversation, rendered with the model's own chat template

     Counts the tokens of a conversation, rendered with the model's own chat template. Nothing is
    sampled.

    Also served at `/v1/messages/count_tokens`.

    Args:
        body (CountTokensRequest): Request body of `messages/count_tokens`. Unknown fields are
            refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CountTokensResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
