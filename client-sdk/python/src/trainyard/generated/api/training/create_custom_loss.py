from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.create_custom_loss_request import CreateCustomLossRequest
from ...models.submit_response import SubmitResponse
from ...types import Response


def _get_kwargs(
    *,
    body: CreateCustomLossRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/create_custom_loss",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> SubmitResponse | None:
    if response.status_code == 200:
        response_200 = SubmitResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[SubmitResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateCustomLossRequest,
) -> Response[SubmitResponse]:
    """Stores a loss function as a graph of allowed operations

     Stores a loss function as a graph of allowed operations. The session and `custom_loss_seq_id`
    identify it; its future is done at once. Requests of the session's runs use it as the loss function
    `custom` with the setting `loss_id`.

    Args:
        body (CreateCustomLossRequest): Request body of `create_custom_loss`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubmitResponse]
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
    body: CreateCustomLossRequest,
) -> SubmitResponse | None:
    """Stores a loss function as a graph of allowed operations

     Stores a loss function as a graph of allowed operations. The session and `custom_loss_seq_id`
    identify it; its future is done at once. Requests of the session's runs use it as the loss function
    `custom` with the setting `loss_id`.

    Args:
        body (CreateCustomLossRequest): Request body of `create_custom_loss`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubmitResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateCustomLossRequest,
) -> Response[SubmitResponse]:
    """Stores a loss function as a graph of allowed operations

     Stores a loss function as a graph of allowed operations. The session and `custom_loss_seq_id`
    identify it; its future is done at once. Requests of the session's runs use it as the loss function
    `custom` with the setting `loss_id`.

    Args:
        body (CreateCustomLossRequest): Request body of `create_custom_loss`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SubmitResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateCustomLossRequest,
) -> SubmitResponse | None:
    """Stores a loss function as a graph of allowed operations

     Stores a loss function as a graph of allowed operations. The session and `custom_loss_seq_id`
    identify it; its future is done at once. Requests of the session's runs use it as the loss function
    `custom` with the setting `loss_id`.

    Args:
        body (CreateCustomLossRequest): Request body of `create_custom_loss`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SubmitResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
