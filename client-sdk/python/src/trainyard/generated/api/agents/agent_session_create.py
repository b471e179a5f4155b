from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.create_agent_session_request import CreateAgentSessionRequest
from ...models.create_agent_session_response import CreateAgentSessionResponse
from ...types import Response


def _get_kwargs(
    *,
    body: CreateAgentSessionRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/agent_sessions",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CreateAgentSessionResponse | None:
    if response.status_code == 200:
        response_200 = CreateAgentSessionResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CreateAgentSessionResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateAgentSessionRequest,
) -> Response[CreateAgentSessionResponse]:
    """Creates a session with a key of its own

     Creates a session with a key of its own. Programs that speak the OpenAI or Anthropic API sample with
    the key.

    The key serves only these APIs. Their field `model` may have any value: the session's weights are
    sampled. Replies are recorded with their tokens, and a conversation continues from the tokens that
    were recorded.

    Args:
        body (CreateAgentSessionRequest): Request body of `POST agent_sessions`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateAgentSessionResponse]
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
    body: CreateAgentSessionRequest,
) -> CreateAgentSessionResponse | None:
    """Creates a session with a key of its own

     Creates a session with a key of its own. Programs that speak the OpenAI or Anthropic API sample with
    the key.

    The key serves only these APIs. Their field `model` may have any value: the session's weights are
    sampled. Replies are recorded with their tokens, and a conversation continues from the tokens that
    were recorded.

    Args:
        body (CreateAgentSessionRequest): Request body of `POST agent_sessions`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateAgentSessionResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateAgentSessionRequest,
) -> Response[CreateAgentSessionResponse]:
    """Creates a session with a key of its own

     Creates a session with a key of its own. Programs that speak the OpenAI or Anthropic API sample with
    the key.

    The key serves only these APIs. Their field `model` may have any value: the session's weights are
    sampled. Replies are recorded with their tokens, and a conversation continues from the tokens that
    were recorded.

    Args:
        body (CreateAgentSessionRequest): Request body of `POST agent_sessions`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CreateAgentSessionResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateAgentSessionRequest,
) -> CreateAgentSessionResponse | None:
    """Creates a session with a key of its own

     Creates a session with a key of its own. Programs that speak the OpenAI or Anthropic API sample with
    the key.

    The key serves only these APIs. Their field `model` may have any value: the session's weights are
    sampled. Replies are recorded with their tokens, and a conversation continues from the tokens that
    were recorded.

    Args:
        body (CreateAgentSessionRequest): Request body of `POST agent_sessions`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CreateAgentSessionResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
