from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.jwks_response import JwksResponse
from ...types import Response


def _get_kwargs() -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/.well-known/jwks.json",
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> JwksResponse | None:
    if response.status_code == 200:
        response_200 = JwksResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[JwksResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
) -> Response[JwksResponse]:
    """Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517)

     Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517). Needs
    no key.

    The set is empty before the first token. A new key is published five minutes before it signs. A
    former key stays until the last token that it signed has expired.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[JwksResponse]
    """

    kwargs = _get_kwargs()

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
) -> JwksResponse | None:
    """Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517)

     Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517). Needs
    no key.

    The set is empty before the first token. A new key is published five minutes before it signs. A
    former key stays until the last token that it signed has expired.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        JwksResponse
    """

    return sync_detailed(
        client=client,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
) -> Response[JwksResponse]:
    """Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517)

     Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517). Needs
    no key.

    The set is empty before the first token. A new key is published five minutes before it signs. A
    former key stays until the last token that it signed has expired.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[JwksResponse]
    """

    kwargs = _get_kwargs()

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
) -> JwksResponse | None:
    """Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517)

     Returns the public keys that verify tokens of `auth/token`, as a JSON Web Key Set (RFC 7517). Needs
    no key.

    The set is empty before the first token. A new key is published five minutes before it signs. A
    former key stays until the last token that it signed has expired.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        JwksResponse
    """

    return (
        await asyncio_detailed(
            client=client,
        )
    ).parsed
