from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.create_key_request import CreateKeyRequest
from ...models.create_key_response import CreateKeyResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: CreateKeyRequest,
    organisation: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["organisation"] = organisation

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/admin/keys",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CreateKeyResponse | None:
    if response.status_code == 200:
        response_200 = CreateKeyResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateKeyResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateKeyRequest,
    organisation: str | Unset = UNSET,
) -> Response[CreateKeyResponse]:
    """Creates an API key

     Creates an API key. The key is returned only once; the server stores only its SHA-256.

    Args:
        organisation (str | Unset):
        body (CreateKeyRequest): Request body of `POST admin/keys`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateKeyResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        organisation=organisation,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: CreateKeyRequest,
    organisation: str | Unset = UNSET,
) -> CreateKeyResponse | None:
    """Creates an API key

     Creates an API key. The key is returned only once; the server stores only its SHA-256.

    Args:
        organisation (str | Unset):
        body (CreateKeyRequest): Request body of `POST admin/keys`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateKeyResponse
    """

    return sync_detailed(
        client=client,
        body=body,
        organisation=organisation,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateKeyRequest,
    organisation: str | Unset = UNSET,
) -> Response[CreateKeyResponse]:
    """Creates an API key

     Creates an API key. The key is returned only once; the server stores only its SHA-256.

    Args:
        organisation (str | Unset):
        body (CreateKeyRequest): Request body of `POST admin/keys`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateKeyResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        organisation=organisation,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateKeyRequest,
    organisation: str | Unset = UNSET,
) -> CreateKeyResponse | None:
    """Creates an API key

     Creates an API key. The key is returned only once; the server stores only its SHA-256.

    Args:
        organisation (str | Unset):
        body (CreateKeyRequest): Request body of `POST admin/keys`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateKeyResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            organisation=organisation,
        )
    ).parsed
