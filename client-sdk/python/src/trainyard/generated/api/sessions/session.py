from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.session_response import SessionResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    session_id: str,
    *,
    access_scope: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["access_scope"] = access_scope

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/sessions/{session_id}".format(
            session_id=quote(str(session_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> SessionResponse | None:
    if response.status_code == 200:
        response_200 = SessionResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[SessionResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    session_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> Response[SessionResponse]:
    """Returns a session with its runs and samplers

     Returns a session with its runs and samplers.

    Args:
        session_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SessionResponse]
    """

    kwargs = _get_kwargs(
        session_id=session_id,
        access_scope=access_scope,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    session_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> SessionResponse | None:
    """Returns a session with its runs and samplers

     Returns a session with its runs and samplers.

    Args:
        session_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SessionResponse
    """

    return sync_detailed(
        session_id=session_id,
        client=client,
        access_scope=access_scope,
    ).parsed


async def asyncio_detailed(
    session_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> Response[SessionResponse]:
    """Returns a session with its runs and samplers

     Returns a session with its runs and samplers.

    Args:
        session_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SessionResponse]
    """

    kwargs = _get_kwargs(
        session_id=session_id,
        access_scope=access_scope,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    session_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> SessionResponse | None:
    """Returns a session with its runs and samplers

     Returns a session with its runs and samplers.

    Args:
        session_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SessionResponse
    """

    return (
        await asyncio_detailed(
            session_id=session_id,
            client=client,
            access_scope=access_scope,
        )
    ).parsed
