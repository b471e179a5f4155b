from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.rotate_signing_response import RotateSigningResponse
from ...types import Response


def _get_kwargs() -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/admin/signing_keys/rotate",
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> RotateSigningResponse | None:
    if response.status_code == 200:
        response_200 = RotateSigningResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[RotateSigningResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
) -> Response[RotateSigningResponse]:
    """Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators

     Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators. Use this if a signing key may have become known. Every server refuses the
    earlier tokens within a second. Clients that exchange API keys for tokens obtain new ones by
    themselves.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RotateSigningResponse]
    """

    kwargs = _get_kwargs()

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
) -> RotateSigningResponse | None:
    """Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators

     Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators. Use this if a signing key may have become known. Every server refuses the
    earlier tokens within a second. Clients that exchange API keys for tokens obtain new ones by
    themselves.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RotateSigningResponse
    """

    return sync_detailed(
        client=client,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
) -> Response[RotateSigningResponse]:
    """Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators

     Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators. Use this if a signing key may have become known. Every server refuses the
    earlier tokens within a second. Clients that exchange API keys for tokens obtain new ones by
    themselves.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RotateSigningResponse]
    """

    kwargs = _get_kwargs()

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
) -> RotateSigningResponse | None:
    """Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators

     Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for
    admins of operators. Use this if a signing key may have become known. Every server refuses the
    earlier tokens within a second. Clients that exchange API keys for tokens obtain new ones by
    themselves.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RotateSigningResponse
    """

    return (
        await asyncio_detailed(
            client=client,
        )
    ).parsed
