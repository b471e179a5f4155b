from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    run_id: str,
    *,
    metrics: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    from_step: int | Unset = UNSET,
    to_step: int | Unset = UNSET,
    from_time: str | Unset = UNSET,
    to_time: str | Unset = UNSET,
    format_: str | Unset = "jsonl",
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["metrics"] = metrics

    params["kind"] = kind

    params["from_step"] = from_step

    params["to_step"] = to_step

    params["from_time"] = from_time

    params["to_time"] = to_time

    params["format"] = format_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/training_runs/{run_id}/metrics/export".format(
            run_id=quote(str(run_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> File | None:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[File]:
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
    metrics: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    from_step: int | Unset = UNSET,
    to_step: int | Unset = UNSET,
    from_time: str | Unset = UNSET,
    to_time: str | Unset = UNSET,
    format_: str | Unset = "jsonl",
) -> Response[File]:
    """Downloads a run's metrics as a file with a row for each request

     Downloads a run's metrics as a file with a row for each request. The format is JSON Lines, or
    Parquet with a column for each metric.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        format_ (str | Unset):  Default: 'jsonl'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[File]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        metrics=metrics,
        kind=kind,
        from_step=from_step,
        to_step=to_step,
        from_time=from_time,
        to_time=to_time,
        format_=format_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    run_id: str,
    *,
    client: AuthenticatedClient | Client,
    metrics: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    from_step: int | Unset = UNSET,
    to_step: int | Unset = UNSET,
    from_time: str | Unset = UNSET,
    to_time: str | Unset = UNSET,
    format_: str | Unset = "jsonl",
) -> File | None:
    """Downloads a run's metrics as a file with a row for each request

     Downloads a run's metrics as a file with a row for each request. The format is JSON Lines, or
    Parquet with a column for each metric.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        format_ (str | Unset):  Default: 'jsonl'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        File
    """

    return sync_detailed(
        run_id=run_id,
        client=client,
        metrics=metrics,
        kind=kind,
        from_step=from_step,
        to_step=to_step,
        from_time=from_time,
        to_time=to_time,
        format_=format_,
    ).parsed


async def asyncio_detailed(
    run_id: str,
    *,
    client: AuthenticatedClient | Client,
    metrics: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    from_step: int | Unset = UNSET,
    to_step: int | Unset = UNSET,
    from_time: str | Unset = UNSET,
    to_time: str | Unset = UNSET,
    format_: str | Unset = "jsonl",
) -> Response[File]:
    """Downloads a run's metrics as a file with a row for each request

     Downloads a run's metrics as a file with a row for each request. The format is JSON Lines, or
    Parquet with a column for each metric.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        format_ (str | Unset):  Default: 'jsonl'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[File]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        metrics=metrics,
        kind=kind,
        from_step=from_step,
        to_step=to_step,
        from_time=from_time,
        to_time=to_time,
        format_=format_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    run_id: str,
    *,
    client: AuthenticatedClient | Client,
    metrics: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    from_step: int | Unset = UNSET,
    to_step: int | Unset = UNSET,
    from_time: str | Unset = UNSET,
    to_time: str | Unset = UNSET,
    format_: str | Unset = "jsonl",
) -> File | None:
    """Downloads a run's metrics as a file with a row for each request

     Downloads a run's metrics as a file with a row for each request. The format is JSON Lines, or
    Parquet with a column for each metric.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        format_ (str | Unset):  Default: 'jsonl'.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        File
    """

    return (
        await asyncio_detailed(
            run_id=run_id,
            client=client,
            metrics=metrics,
            kind=kind,
            from_step=from_step,
            to_step=to_step,
            from_time=from_time,
            to_time=to_time,
            format_=format_,
        )
    ).parsed
