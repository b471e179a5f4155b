from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.agent_sessions_response import AgentSessionsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    limit: int | Unset = 20,
    offset: int | Unset = UNSET,
    access_scope: str | Unset = UNSET,
    project_id: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["offset"] = offset

    params["access_scope"] = access_scope

    params["project_id"] = project_id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/agent_sessions",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AgentSessionsResponse | None:
    if response.status_code == 200:
        response_200 = AgentSessionsResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AgentSessionsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    offset: int | Unset = UNSET,
    access_scope: str | Unset = UNSET,
    project_id: str | Unset = UNSET,
) -> Response[AgentSessionsResponse]:
    """Lists the caller's agent sessions, newest first, until their retention is over

     Lists the caller's agent sessions, newest first, until their retention is over.

    Args:
        limit (int | Unset):  Default: 20.
        offset (int | Unset):
        access_scope (str | Unset):
        project_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AgentSessionsResponse]
    """

    kwargs = _get_kwargs(
        limit=limit,
        offset=offset,
        access_scope=access_scope,
        project_id=project_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    offset: int | Unset = UNSET,
    access_scope: str | Unset = UNSET,
    project_id: str | Unset = UNSET,
) -> AgentSessionsResponse | None:
    """Lists the caller's agent sessions, newest first, until their retention is over

     Lists the caller's agent sessions, newest first, until their retention is over.

    Args:
        limit (int | Unset):  Default: 20.
        offset (int | Unset):
        access_scope (str | Unset):
        project_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AgentSessionsResponse
    """

    return sync_detailed(
        client=client,
        limit=limit,
        offset=offset,
        access_scope=access_scope,
        project_id=project_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    offset: int | Unset = UNSET,
    access_scope: str | Unset = UNSET,
    project_id: str | Unset = UNSET,
) -> Response[AgentSessionsResponse]:
    """Lists the caller's agent sessions, newest first, until their retention is over

     Lists the caller's agent sessions, newest first, until their retention is over.

    Args:
        limit (int | Unset):  Default: 20.
        offset (int | Unset):
        access_scope (str | Unset):
        project_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AgentSessionsResponse]
    """

    kwargs = _get_kwargs(
        limit=limit,
        offset=offset,
        access_scope=access_scope,
        project_id=project_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 20,
    offset: int | Unset = UNSET,
    access_scope: str | Unset = UNSET,
    project_id: str | Unset = UNSET,
) -> AgentSessionsResponse | None:
    """Lists the caller's agent sessions, newest first, until their retention is over

     Lists the caller's agent sessions, newest first, until their retention is over.

    Args:
        limit (int | Unset):  Default: 20.
        offset (int | Unset):
        access_scope (str | Unset):
        project_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AgentSessionsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            limit=limit,
            offset=offset,
            access_scope=access_scope,
            project_id=project_id,
        )
    ).parsed
