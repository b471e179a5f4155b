from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.training_run import TrainingRun
from ...types import UNSET, Response, Unset


def _get_kwargs(
    run_id: str,
    *,
    access_scope: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["access_scope"] = access_scope

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/training_runs/{run_id}".format(
            run_id=quote(str(run_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> TrainingRun | None:
    if response.status_code == 200:
        response_200 = TrainingRun.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[TrainingRun]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    run_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> Response[TrainingRun]:
    """Returns a training run

     Returns a training run. With `access_scope=accessible`, it may belong to another tenant if it has a
    public checkpoint.

    Args:
        run_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TrainingRun]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        access_scope=access_scope,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    run_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> TrainingRun | None:
    """Returns a training run

     Returns a training run. With `access_scope=accessible`, it may belong to another tenant if it has a
    public checkpoint.

    Args:
        run_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TrainingRun
    """

    return sync_detailed(
        run_id=run_id,
        client=client,
        access_scope=access_scope,
    ).parsed


async def asyncio_detailed(
    run_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> Response[TrainingRun]:
    """Returns a training run

     Returns a training run. With `access_scope=accessible`, it may belong to another tenant if it has a
    public checkpoint.

    Args:
        run_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[TrainingRun]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        access_scope=access_scope,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    run_id: str,
    *,
    client: AuthenticatedClient | Client,
    access_scope: str | Unset = UNSET,
) -> TrainingRun | None:
    """Returns a training run

     Returns a training run. With `access_scope=accessible`, it may belong to another tenant if it has a
    public checkpoint.

    Args:
        run_id (str):
        access_scope (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        TrainingRun
    """

    return (
        await asyncio_detailed(
            run_id=run_id,
            client=client,
            access_scope=access_scope,
        )
    ).parsed
