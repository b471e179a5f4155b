from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.agent_session_response import AgentSessionResponse
from ...types import Response


def _get_kwargs(
    agent_session_id: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/agent_sessions/{agent_session_id}".format(
            agent_session_id=quote(str(agent_session_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AgentSessionResponse | None:
    if response.status_code == 200:
        response_200 = AgentSessionResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AgentSessionResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[AgentSessionResponse]:
    """Returns an agent session with its limits and what is used of them

     Returns an agent session with its limits and what is used of them.

    Args:
        agent_session_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AgentSessionResponse]
    """

    kwargs = _get_kwargs(
        agent_session_id=agent_session_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> AgentSessionResponse | None:
    """Returns an agent session with its limits and what is used of them

     Returns an agent session with its limits and what is used of them.

    Args:
        agent_session_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AgentSessionResponse
    """

    return sync_detailed(
        agent_session_id=agent_session_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[AgentSessionResponse]:
    """Returns an agent session with its limits and what is used of them

     Returns an agent session with its limits and what is used of them.

    Args:
        agent_session_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AgentSessionResponse]
    """

    kwargs = _get_kwargs(
        agent_session_id=agent_session_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> AgentSessionResponse | None:
    """Returns an agent session with its limits and what is used of them

     Returns an agent session with its limits and what is used of them.

    Args:
        agent_session_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AgentSessionResponse
    """

    return (
        await asyncio_detailed(
            agent_session_id=agent_session_id,
            client=client,
        )
    ).parsed
