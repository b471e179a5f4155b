from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.client_config_request import ClientConfigRequest
from ...models.client_dynamic_config_response import ClientDynamicConfigResponse
from ...types import Response


def _get_kwargs(
    *,
    body: ClientConfigRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/client/dynamic_config",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ClientDynamicConfigResponse | None:
    if response.status_code == 200:
        response_200 = ClientDynamicConfigResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ClientDynamicConfigResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ClientConfigRequest,
) -> Response[ClientDynamicConfigResponse]:
    """Returns settings that a client polls periodically

     Returns settings that a client polls periodically.

    Args:
        body (ClientConfigRequest): Request body of `client/config` and `client/dynamic_config`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ClientDynamicConfigResponse]
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
    body: ClientConfigRequest,
) -> ClientDynamicConfigResponse | None:
    """Returns settings that a client polls periodically

     Returns settings that a client polls periodically.

    Args:
        body (ClientConfigRequest): Request body of `client/config` and `client/dynamic_config`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ClientDynamicConfigResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: ClientConfigRequest,
) -> Response[ClientDynamicConfigResponse]:
    """Returns settings that a client polls periodically

     Returns settings that a client polls periodically.

    Args:
        body (ClientConfigRequest): Request body of `client/config` and `client/dynamic_config`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ClientDynamicConfigResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: ClientConfigRequest,
) -> ClientDynamicConfigResponse | None:
    """Returns settings that a client polls periodically

     Returns settings that a client polls periodically.

    Args:
        body (ClientConfigRequest): Request body of `client/config` and `client/dynamic_config`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ClientDynamicConfigResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
