from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.responses_request import ResponsesRequest
from ...models.responses_response import ResponsesResponse
from ...types import Response


def _get_kwargs(
    *,
    body: ResponsesRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/oai/api/v1/responses",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ResponsesResponse | None:
    if response.status_code == 200:
        response_200 = ResponsesResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ResponsesResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ResponsesRequest,
) -> Response[ResponsesResponse]:
    """Answers a conversation of items, rendered with the model's own chat template

     Answers a conversation of items, rendered with the model's own chat template. With `stream`, the
    response is a stream of server-sent events from `response.created` to `response.completed` or
    `response.incomplete`. Responses are not stored.

    Also served at `/v1/responses`.

    Args:
        body (ResponsesRequest): Request body of `responses`. Unknown fields are refused. A known
            field that is not supported is refused unless it has
            no effect.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ResponsesResponse]
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
    body: ResponsesRequest,
) -> ResponsesResponse | None:
    """Answers a conversation of items, rendered with the model's own chat template

     Answers a conversation of items, rendered with the model's own chat template. With `stream`, the
    response is a stream of server-sent events from `response.created` to `response.completed` or
    `response.incomplete`. Responses are not stored.

    Also served at `/v1/responses`.

    Args:
        body (ResponsesRequest): Request body of `responses`. Unknown fields are refused. A known
            field that is not supported is refused unless it has
            no effect.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ResponsesResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ResponsesRequest,
) -> Response[ResponsesResponse]:
    """Answers a conversation of items, rendered with the model's own chat template

     Answers a conversation of items, rendered with the model's own chat template. With `stream`, the
    response is a stream of server-sent events from `response.created` to `response.completed` or
    `response.incomplete`. Responses are not stored.

    Also served at `/v1/responses`.

    Args:
        body (ResponsesRequest): Request body of `responses`. Unknown fields are refused. A known
            field that is not supported is refused unless it has
            no effect.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ResponsesResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: ResponsesRequest,
) -> ResponsesResponse | None:
    """Answers a conversation of items, rendered with the model's own chat template

     Answers a conversation of items, rendered with the model's own chat template. With `stream`, the
    response is a stream of server-sent events from `response.created` to `response.completed` or
    `response.incomplete`. Responses are not stored.

    Also served at `/v1/responses`.

    Args:
        body (ResponsesRequest): Request body of `responses`. Unknown fields are refused. A known
            field that is not supported is refused unless it has
            no effect.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ResponsesResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
