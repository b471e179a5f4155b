from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.auth_token_request import AuthTokenRequest
from ...models.auth_token_response import AuthTokenResponse
from ...types import Response


def _get_kwargs(
    *,
    body: AuthTokenRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/auth/token",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AuthTokenResponse | None:
    if response.status_code == 200:
        response_200 = AuthTokenResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AuthTokenResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: AuthTokenRequest,
) -> Response[AuthTokenResponse]:
    """Exchanges the caller's API key for a token with the same permissions and a short lifetime

     Exchanges the caller's API key for a token with the same permissions and a short lifetime.

    The token is signed with one of the keys of `/.well-known/jwks.json`. Its claims are `iss`, `aud`,
    `sub` (user or key), `tenant` (the organisation), `email`, `role`, `scopes`, `iat`, `nbf`, `exp` and
    `jti`. It does not outlive its API key. A caller that already sends a token of this server gets the
    same token.

    Args:
        body (AuthTokenRequest): Request body of `auth/token`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuthTokenResponse]
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
    body: AuthTokenRequest,
) -> AuthTokenResponse | None:
    """Exchanges the caller's API key for a token with the same permissions and a short lifetime

     Exchanges the caller's API key for a token with the same permissions and a short lifetime.

    The token is signed with one of the keys of `/.well-known/jwks.json`. Its claims are `iss`, `aud`,
    `sub` (user or key), `tenant` (the organisation), `email`, `role`, `scopes`, `iat`, `nbf`, `exp` and
    `jti`. It does not outlive its API key. A caller that already sends a token of this server gets the
    same token.

    Args:
        body (AuthTokenRequest): Request body of `auth/token`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuthTokenResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: AuthTokenRequest,
) -> Response[AuthTokenResponse]:
    """Exchanges the caller's API key for a token with the same permissions and a short lifetime

     Exchanges the caller's API key for a token with the same permissions and a short lifetime.

    The token is signed with one of the keys of `/.well-known/jwks.json`. Its claims are `iss`, `aud`,
    `sub` (user or key), `tenant` (the organisation), `email`, `role`, `scopes`, `iat`, `nbf`, `exp` and
    `jti`. It does not outlive its API key. A caller that already sends a token of this server gets the
    same token.

    Args:
        body (AuthTokenRequest): Request body of `auth/token`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuthTokenResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: AuthTokenRequest,
) -> AuthTokenResponse | None:
    """Exchanges the caller's API key for a token with the same permissions and a short lifetime

     Exchanges the caller's API key for a token with the same permissions and a short lifetime.

    The token is signed with one of the keys of `/.well-known/jwks.json`. Its claims are `iss`, `aud`,
    `sub` (user or key), `tenant` (the organisation), `email`, `role`, `scopes`, `iat`, `nbf`, `exp` and
    `jti`. It does not outlive its API key. A caller that already sends a token of this server gets the
    same token.

    Args:
        body (AuthTokenRequest): Request body of `auth/token`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuthTokenResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
