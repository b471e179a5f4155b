from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.trajectories_response import TrajectoriesResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    agent_session_id: str,
    *,
    limit: int | Unset = 1000,
    offset: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["limit"] = limit

    params["offset"] = offset

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/agent_sessions/{agent_session_id}/trajectories".format(
            agent_session_id=quote(str(agent_session_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> TrajectoriesResponse | None:
    if response.status_code == 200:
        response_200 = TrajectoriesResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[TrajectoriesResponse]:
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
    limit: int | Unset = 1000,
    offset: int | Unset = UNSET,
) -> Response[TrajectoriesResponse]:
    """Returns the branches of an agent session as examples for `forward_backward`

     Returns the branches of an agent session as examples for `forward_backward`.

    A branch has the turns from a first one to one that no other continues. Turns that several branches
    share are trained in the first one.

    Args:
        agent_session_id (str):
        limit (int | Unset):  Default: 1000.
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TrajectoriesResponse]
    """

    kwargs = _get_kwargs(
        agent_session_id=agent_session_id,
        limit=limit,
        offset=offset,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 1000,
    offset: int | Unset = UNSET,
) -> TrajectoriesResponse | None:
    """Returns the branches of an agent session as examples for `forward_backward`

     Returns the branches of an agent session as examples for `forward_backward`.

    A branch has the turns from a first one to one that no other continues. Turns that several branches
    share are trained in the first one.

    Args:
        agent_session_id (str):
        limit (int | Unset):  Default: 1000.
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TrajectoriesResponse
    """

    return sync_detailed(
        agent_session_id=agent_session_id,
        client=client,
        limit=limit,
        offset=offset,
    ).parsed


async def asyncio_detailed(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 1000,
    offset: int | Unset = UNSET,
) -> Response[TrajectoriesResponse]:
    """Returns the branches of an agent session as examples for `forward_backward`

     Returns the branches of an agent session as examples for `forward_backward`.

    A branch has the turns from a first one to one that no other continues. Turns that several branches
    share are trained in the first one.

    Args:
        agent_session_id (str):
        limit (int | Unset):  Default: 1000.
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TrajectoriesResponse]
    """

    kwargs = _get_kwargs(
        agent_session_id=agent_session_id,
        limit=limit,
        offset=offset,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    agent_session_id: str,
    *,
    client: AuthenticatedClient | Client,
    limit: int | Unset = 1000,
    offset: int | Unset = UNSET,
) -> TrajectoriesResponse | None:
    """Returns the branches of an agent session as examples for `forward_backward`

     Returns the branches of an agent session as examples for `forward_backward`.

    A branch has the turns from a first one to one that no other continues. Turns that several branches
    share are trained in the first one.

    Args:
        agent_session_id (str):
        limit (int | Unset):  Default: 1000.
        offset (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TrajectoriesResponse
    """

    return (
        await asyncio_detailed(
            agent_session_id=agent_session_id,
            client=client,
            limit=limit,
            offset=offset,
        )
    ).parsed
