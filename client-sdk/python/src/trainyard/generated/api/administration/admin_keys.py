from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.keys_response import KeysResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    organisation: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["organisation"] = organisation

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/admin/keys",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> KeysResponse | None:
    if response.status_code == 200:
        response_200 = KeysResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[KeysResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    organisation: str | Unset = UNSET,
) -> Response[KeysResponse]:
    """Lists the API keys of an organisation, including expired and revoked ones

     Lists the API keys of an organisation, including expired and revoked ones.

    Args:
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[KeysResponse]
    """

    kwargs = _get_kwargs(
        organisation=organisation,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    organisation: str | Unset = UNSET,
) -> KeysResponse | None:
    """Lists the API keys of an organisation, including expired and revoked ones

     Lists the API keys of an organisation, including expired and revoked ones.

    Args:
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        KeysResponse
    """

    return sync_detailed(
        client=client,
        organisation=organisation,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    organisation: str | Unset = UNSET,
) -> Response[KeysResponse]:
    """Lists the API keys of an organisation, including expired and revoked ones

     Lists the API keys of an organisation, including expired and revoked ones.

    Args:
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[KeysResponse]
    """

    kwargs = _get_kwargs(
        organisation=organisation,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    organisation: str | Unset = UNSET,
) -> KeysResponse | None:
    """Lists the API keys of an organisation, including expired and revoked ones

     Lists the API keys of an organisation, including expired and revoked ones.

    Args:
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        KeysResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            organisation=organisation,
        )
    ).parsed
