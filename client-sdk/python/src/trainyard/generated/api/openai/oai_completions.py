from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.completion_request import CompletionRequest
from ...models.completion_response import CompletionResponse
from ...types import Response


def _get_kwargs(
    *,
    body: CompletionRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/oai/api/v1/completions",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CompletionResponse | None:
    if response.status_code == 200:
        response_200 = CompletionResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CompletionResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CompletionRequest,
) -> Response[CompletionResponse]:
    """Completes texts or tokens

     Completes texts or tokens. With `stream`, the response is a stream of server-sent events that ends
    with `[DONE]`.

    Also served at `/v1/completions`.

    Args:
        body (CompletionRequest): Request body of `completions`. Unknown fields are refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CompletionResponse]
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
    body: CompletionRequest,
) -> CompletionResponse | None:
    """Completes texts or tokens

     Completes texts or tokens. With `stream`, the response is a stream of server-sent events that ends
    with `[DONE]`.

    Also served at `/v1/completions`.

    Args:
        body (CompletionRequest): Request body of `completions`. Unknown fields are refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CompletionResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CompletionRequest,
) -> Response[CompletionResponse]:
    """Completes texts or tokens

     Completes texts or tokens. With `stream`, the response is a stream of server-sent events that ends
    with `[DONE]`.

    Also served at `/v1/completions`.

    Args:
        body (CompletionRequest): Request body of `completions`. Unknown fields are refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CompletionResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CompletionRequest,
) -> CompletionResponse | None:
    """Completes texts or tokens

     Completes texts or tokens. With `stream`, the response is a stream of server-sent events that ends
    with `[DONE]`.

    Also served at `/v1/completions`.

    Args:
        body (CompletionRequest): Request body of `completions`. Unknown fields are refused.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CompletionResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
