from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.agent_reward_request import AgentRewardRequest
from ...models.agent_reward_response import AgentRewardResponse
from ...types import Response


def _get_kwargs(
    agent_session_id: str,
    *,
    body: AgentRewardRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/agent_sessions/{agent_session_id}/rewards".format(
            agent_session_id=quote(str(agent_session_id), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AgentRewardResponse | None:
    if response.status_code == 200:
        response_200 = AgentRewardResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AgentRewardResponse]:
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
    body: AgentRewardRequest,
) -> Response[AgentRewardResponse]:
    """Sets the reward of a turn, of the branch that ends with a turn, or of the whole session

     Sets the reward of a turn, of the branch that ends with a turn, or of the whole session. A later
    call replaces it.

    Args:
        agent_session_id (str):
        body (AgentRewardRequest): Request body of `POST agent_sessions/{id}/rewards`. Without
            `turn_id` and `branch` it concerns the whole session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AgentRewardResponse]
    """

    kwargs = _get_kwargs(
        agent_session_id=agent_session_id,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: AgentRewardRequest,
) -> AgentRewardResponse | None:
    """Sets the reward of a turn, of the branch that ends with a turn, or of the whole session

     Sets the reward of a turn, of the branch that ends with a turn, or of the whole session. A later
    call replaces it.

    Args:
        agent_session_id (str):
        body (AgentRewardRequest): Request body of `POST agent_sessions/{id}/rewards`. Without
            `turn_id` and `branch` it concerns the whole session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AgentRewardResponse
    """

    return sync_detailed(
        agent_session_id=agent_session_id,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: AgentRewardRequest,
) -> Response[AgentRewardResponse]:
    """Sets the reward of a turn, of the branch that ends with a turn, or of the whole session

     Sets the reward of a turn, of the branch that ends with a turn, or of the whole session. A later
    call replaces it.

    Args:
        agent_session_id (str):
        body (AgentRewardRequest): Request body of `POST agent_sessions/{id}/rewards`. Without
            `turn_id` and `branch` it concerns the whole session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AgentRewardResponse]
    """

    kwargs = _get_kwargs(
        agent_session_id=agent_session_id,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
    body: AgentRewardRequest,
) -> AgentRewardResponse | None:
    """Sets the reward of a turn, of the branch that ends with a turn, or of the whole session

     Sets the reward of a turn, of the branch that ends with a turn, or of the whole session. A later
    call replaces it.

    Args:
        agent_session_id (str):
        body (AgentRewardRequest): Request body of `POST agent_sessions/{id}/rewards`. Without
            `turn_id` and `branch` it concerns the whole session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AgentRewardResponse
    """

    return (
        await asyncio_detailed(
            agent_session_id=agent_session_id,
            client=client,
            body=body,
        )
    ).parsed
