from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.metrics_response import MetricsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    run_id: str,
    *,
    metrics: str | Unset = UNSET,
    kind: str | Unset = UNSET,
    from_step: int | Unset = UNSET,
    to_step: int | Unset = UNSET,
    from_time: str | Unset = UNSET,
    to_time: str | Unset = UNSET,
    points: int | Unset = 1000,
    by: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["metrics"] = metrics

    params["kind"] = kind

    params["from_step"] = from_step

    params["to_step"] = to_step

    params["from_time"] = from_time

    params["to_time"] = to_time

    params["points"] = points

    params["by"] = by

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/training_runs/{run_id}/metrics".format(
            run_id=quote(str(run_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> MetricsResponse | None:
    if response.status_code == 200:
        response_200 = MetricsResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[MetricsResponse]:
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
    points: int | Unset = 1000,
    by: str | Unset = UNSET,
) -> Response[MetricsResponse]:
    """Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time

     Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time.

    A curve with more values than `points` is thinned out: it is divided into intervals of equal width,
    and the smallest and the largest value of each are returned. Spikes are therefore never lost.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        points (int | Unset):  Default: 1000.
        by (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MetricsResponse]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        metrics=metrics,
        kind=kind,
        from_step=from_step,
        to_step=to_step,
        from_time=from_time,
        to_time=to_time,
        points=points,
        by=by,
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
    points: int | Unset = 1000,
    by: str | Unset = UNSET,
) -> MetricsResponse | None:
    """Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time

     Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time.

    A curve with more values than `points` is thinned out: it is divided into intervals of equal width,
    and the smallest and the largest value of each are returned. Spikes are therefore never lost.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        points (int | Unset):  Default: 1000.
        by (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MetricsResponse
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
        points=points,
        by=by,
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
    points: int | Unset = 1000,
    by: str | Unset = UNSET,
) -> Response[MetricsResponse]:
    """Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time

     Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time.

    A curve with more values than `points` is thinned out: it is divided into intervals of equal width,
    and the smallest and the largest value of each are returned. Spikes are therefore never lost.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        points (int | Unset):  Default: 1000.
        by (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[MetricsResponse]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        metrics=metrics,
        kind=kind,
        from_step=from_step,
        to_step=to_step,
        from_time=from_time,
        to_time=to_time,
        points=points,
        by=by,
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
    points: int | Unset = 1000,
    by: str | Unset = UNSET,
) -> MetricsResponse | None:
    """Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time

     Returns the metrics of a run's forward passes, backward passes and optimizer steps as curves over
    steps and time.

    A curve with more values than `points` is thinned out: it is divided into intervals of equal width,
    and the smallest and the largest value of each are returned. Spikes are therefore never lost.

    Args:
        run_id (str):
        metrics (str | Unset):
        kind (str | Unset):
        from_step (int | Unset):
        to_step (int | Unset):
        from_time (str | Unset):
        to_time (str | Unset):
        points (int | Unset):  Default: 1000.
        by (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        MetricsResponse
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
            points=points,
            by=by,
        )
    ).parsed
