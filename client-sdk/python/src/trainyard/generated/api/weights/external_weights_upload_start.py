from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.upload_start_request import UploadStartRequest
from ...models.upload_start_response import UploadStartResponse
from ...types import Response


def _get_kwargs(
    *,
    body: UploadStartRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/external_weights_upload_start",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> UploadStartResponse | None:
    if response.status_code == 200:
        response_200 = UploadStartResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[UploadStartResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: UploadStartRequest,
) -> Response[UploadStartResponse]:
    """Starts the upload of an adapter in PEFT's format

     Starts the upload of an adapter in PEFT's format. The client sends both files to the URLs of the
    response, and `external_weights_upload_finish` creates a checkpoint from them.

    Args:
        body (UploadStartRequest): Request body of `external_weights_upload_start`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadStartResponse]
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
    body: UploadStartRequest,
) -> UploadStartResponse | None:
    """Starts the upload of an adapter in PEFT's format

     Starts the upload of an adapter in PEFT's format. The client sends both files to the URLs of the
    response, and `external_weights_upload_finish` creates a checkpoint from them.

    Args:
        body (UploadStartRequest): Request body of `external_weights_upload_start`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadStartResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: UploadStartRequest,
) -> Response[UploadStartResponse]:
    """Starts the upload of an adapter in PEFT's format

     Starts the upload of an adapter in PEFT's format. The client sends both files to the URLs of the
    response, and `external_weights_upload_finish` creates a checkpoint from them.

    Args:
        body (UploadStartRequest): Request body of `external_weights_upload_start`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadStartResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: UploadStartRequest,
) -> UploadStartResponse | None:
    """Starts the upload of an adapter in PEFT's format

     Starts the upload of an adapter in PEFT's format. The client sends both files to the URLs of the
    response, and `external_weights_upload_finish` creates a checkpoint from them.

    Args:
        body (UploadStartRequest): Request body of `external_weights_upload_start`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadStartResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
