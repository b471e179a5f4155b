from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.upload_finish_request import UploadFinishRequest
from ...models.upload_finish_response import UploadFinishResponse
from ...types import Response


def _get_kwargs(
    *,
    body: UploadFinishRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/external_weights_upload_finish",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> UploadFinishResponse | None:
    if response.status_code == 200:
        response_200 = UploadFinishResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[UploadFinishResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: UploadFinishRequest,
) -> Response[UploadFinishResponse]:
    """Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it

     Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it.
    Training and sampling can start from the checkpoint. A repeated call returns the same checkpoint or
    refusal. While the check continues or waits for other work, the response is 503: repeat the call.

    Args:
        body (UploadFinishRequest): Request body of `external_weights_upload_finish`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadFinishResponse]
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
    body: UploadFinishRequest,
) -> UploadFinishResponse | None:
    """Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it

     Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it.
    Training and sampling can start from the checkpoint. A repeated call returns the same checkpoint or
    refusal. While the check continues or waits for other work, the response is 503: repeat the call.

    Args:
        body (UploadFinishRequest): Request body of `external_weights_upload_finish`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadFinishResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: UploadFinishRequest,
) -> Response[UploadFinishResponse]:
    """Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it

     Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it.
    Training and sampling can start from the checkpoint. A repeated call returns the same checkpoint or
    refusal. While the check continues or waits for other work, the response is 503: repeat the call.

    Args:
        body (UploadFinishRequest): Request body of `external_weights_upload_finish`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadFinishResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: UploadFinishRequest,
) -> UploadFinishResponse | None:
    """Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it

     Checks an upload whose files have arrived, tensor by tensor, and creates a checkpoint from it.
    Training and sampling can start from the checkpoint. A repeated call returns the same checkpoint or
    refusal. While the check continues or waits for other work, the response is 503: repeat the call.

    Args:
        body (UploadFinishRequest): Request body of `external_weights_upload_finish`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadFinishResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
