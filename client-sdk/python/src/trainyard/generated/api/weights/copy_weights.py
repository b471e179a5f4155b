from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.copy_weights_request import CopyWeightsRequest
from ...models.copy_weights_response import CopyWeightsResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: CopyWeightsRequest,
    x_idempotency_key: None | str | Unset = UNSET,
    x_tinker_weights_access_token: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(x_idempotency_key, Unset):
        headers["x-idempotency-key"] = x_idempotency_key

    if not isinstance(x_tinker_weights_access_token, Unset):
        headers["x-tinker-weights-access-token"] = x_tinker_weights_access_token

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/copy_weights",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> CopyWeightsResponse | None:
    if response.status_code == 200:
        response_200 = CopyWeightsResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[CopyWeightsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CopyWeightsRequest,
    x_idempotency_key: None | str | Unset = UNSET,
    x_tinker_weights_access_token: None | str | Unset = UNSET,
) -> Response[CopyWeightsResponse]:
    """Copies a checkpoint that the caller may read

     Copies a checkpoint that the caller may read. A new run, which can't be trained, holds a checkpoint
    of the same kind and name with the same files. A call that is repeated with the same `x-idempotency-
    key`, or with the same run, returns the same copy.

    Args:
        x_idempotency_key (None | str | Unset):
        x_tinker_weights_access_token (None | str | Unset):
        body (CopyWeightsRequest): Request body of `copy_weights`. The copy belongs to the run
            that `session_id` and `model_seq_id` identify, or, if
            they are absent, to the run of a new session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CopyWeightsResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        x_idempotency_key=x_idempotency_key,
        x_tinker_weights_access_token=x_tinker_weights_access_token,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: CopyWeightsRequest,
    x_idempotency_key: None | str | Unset = UNSET,
    x_tinker_weights_access_token: None | str | Unset = UNSET,
) -> CopyWeightsResponse | None:
    """Copies a checkpoint that the caller may read

     Copies a checkpoint that the caller may read. A new run, which can't be trained, holds a checkpoint
    of the same kind and name with the same files. A call that is repeated with the same `x-idempotency-
    key`, or with the same run, returns the same copy.

    Args:
        x_idempotency_key (None | str | Unset):
        x_tinker_weights_access_token (None | str | Unset):
        body (CopyWeightsRequest): Request body of `copy_weights`. The copy belongs to the run
            that `session_id` and `model_seq_id` identify, or, if
            they are absent, to the run of a new session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CopyWeightsResponse
    """

    return sync_detailed(
        client=client,
        body=body,
        x_idempotency_key=x_idempotency_key,
        x_tinker_weights_access_token=x_tinker_weights_access_token,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CopyWeightsRequest,
    x_idempotency_key: None | str | Unset = UNSET,
    x_tinker_weights_access_token: None | str | Unset = UNSET,
) -> Response[CopyWeightsResponse]:
    """Copies a checkpoint that the caller may read

     Copies a checkpoint that the caller may read. A new run, which can't be trained, holds a checkpoint
    of the same kind and name with the same files. A call that is repeated with the same `x-idempotency-
    key`, or with the same run, returns the same copy.

    Args:
        x_idempotency_key (None | str | Unset):
        x_tinker_weights_access_token (None | str | Unset):
        body (CopyWeightsRequest): Request body of `copy_weights`. The copy belongs to the run
            that `session_id` and `model_seq_id` identify, or, if
            they are absent, to the run of a new session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[CopyWeightsResponse]
    """

    kwargs = _get_kwargs(
        body=body,
        x_idempotency_key=x_idempotency_key,
        x_tinker_weights_access_token=x_tinker_weights_access_token,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CopyWeightsRequest,
    x_idempotency_key: None | str | Unset = UNSET,
    x_tinker_weights_access_token: None | str | Unset = UNSET,
) -> CopyWeightsResponse | None:
    """Copies a checkpoint that the caller may read

     Copies a checkpoint that the caller may read. A new run, which can't be trained, holds a checkpoint
    of the same kind and name with the same files. A call that is repeated with the same `x-idempotency-
    key`, or with the same run, returns the same copy.

    Args:
        x_idempotency_key (None | str | Unset):
        x_tinker_weights_access_token (None | str | Unset):
        body (CopyWeightsRequest): Request body of `copy_weights`. The copy belongs to the run
            that `session_id` and `model_seq_id` identify, or, if
            they are absent, to the run of a new session.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        CopyWeightsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            x_idempotency_key=x_idempotency_key,
            x_tinker_weights_access_token=x_tinker_weights_access_token,
        )
    ).parsed
