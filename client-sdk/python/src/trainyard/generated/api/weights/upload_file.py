from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.uploaded_file_response import UploadedFileResponse
from ...types import UNSET, File, Response


def _get_kwargs(
    upload_id: str,
    file: str,
    *,
    body: File,
    tenant: str,
    expires: int,
    signature: str,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["tenant"] = tenant

    params["expires"] = expires

    params["signature"] = signature

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/uploads/{upload_id}/{file}".format(
            upload_id=quote(str(upload_id), safe=""),
            file=quote(str(file), safe=""),
        ),
        "params": params,
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/octet-stream"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> UploadedFileResponse | None:
    if response.status_code == 200:
        response_200 = UploadedFileResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[UploadedFileResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    upload_id: str,
    file: str,
    *,
    client: AuthenticatedClient,
    body: File,
    tenant: str,
    expires: int,
    signature: str,
) -> Response[UploadedFileResponse]:
    """Uploads a file of an adapter, or a part of one

     Uploads a file of an adapter, or a part of one. The URL contains its authorisation.

    Without `Content-Range`, the body is the whole file and replaces what arrived before. With `Content-
    Range: bytes <first>-<last>/<total>`, it is a part. Its first byte may lie at or before the end of
    what arrived; bytes that are already there are skipped. What arrived is kept if the connection
    breaks. `Content-Range: bytes */<total>` with an empty body asks how much that is. Status 200 means
    that the file is complete, 308 that more is missing; the header `Range` contains what arrived.
    `Content-Digest` (of the body) and `Repr-Digest` (of the whole file) are checked if they contain
    `sha-256`.

    Args:
        upload_id (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):
        body (File): A body of bytes instead of text.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadedFileResponse]
    """

    kwargs = _get_kwargs(
        upload_id=upload_id,
        file=file,
        body=body,
        tenant=tenant,
        expires=expires,
        signature=signature,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    upload_id: str,
    file: str,
    *,
    client: AuthenticatedClient,
    body: File,
    tenant: str,
    expires: int,
    signature: str,
) -> UploadedFileResponse | None:
    """Uploads a file of an adapter, or a part of one

     Uploads a file of an adapter, or a part of one. The URL contains its authorisation.

    Without `Content-Range`, the body is the whole file and replaces what arrived before. With `Content-
    Range: bytes <first>-<last>/<total>`, it is a part. Its first byte may lie at or before the end of
    what arrived; bytes that are already there are skipped. What arrived is kept if the connection
    breaks. `Content-Range: bytes */<total>` with an empty body asks how much that is. Status 200 means
    that the file is complete, 308 that more is missing; the header `Range` contains what arrived.
    `Content-Digest` (of the body) and `Repr-Digest` (of the whole file) are checked if they contain
    `sha-256`.

    Args:
        upload_id (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):
        body (File): A body of bytes instead of text.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadedFileResponse
    """

    return sync_detailed(
        upload_id=upload_id,
        file=file,
        client=client,
        body=body,
        tenant=tenant,
        expires=expires,
        signature=signature,
    ).parsed


async def asyncio_detailed(
    upload_id: str,
    file: str,
    *,
    client: AuthenticatedClient,
    body: File,
    tenant: str,
    expires: int,
    signature: str,
) -> Response[UploadedFileResponse]:
    """Uploads a file of an adapter, or a part of one

     Uploads a file of an adapter, or a part of one. The URL contains its authorisation.

    Without `Content-Range`, the body is the whole file and replaces what arrived before. With `Content-
    Range: bytes <first>-<last>/<total>`, it is a part. Its first byte may lie at or before the end of
    what arrived; bytes that are already there are skipped. What arrived is kept if the connection
    breaks. `Content-Range: bytes */<total>` with an empty body asks how much that is. Status 200 means
    that the file is complete, 308 that more is missing; the header `Range` contains what arrived.
    `Content-Digest` (of the body) and `Repr-Digest` (of the whole file) are checked if they contain
    `sha-256`.

    Args:
        upload_id (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):
        body (File): A body of bytes instead of text.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[UploadedFileResponse]
    """

    kwargs = _get_kwargs(
        upload_id=upload_id,
        file=file,
        body=body,
        tenant=tenant,
        expires=expires,
        signature=signature,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    upload_id: str,
    file: str,
    *,
    client: AuthenticatedClient,
    body: File,
    tenant: str,
    expires: int,
    signature: str,
) -> UploadedFileResponse | None:
    """Uploads a file of an adapter, or a part of one

     Uploads a file of an adapter, or a part of one. The URL contains its authorisation.

    Without `Content-Range`, the body is the whole file and replaces what arrived before. With `Content-
    Range: bytes <first>-<last>/<total>`, it is a part. Its first byte may lie at or before the end of
    what arrived; bytes that are already there are skipped. What arrived is kept if the connection
    breaks. `Content-Range: bytes */<total>` with an empty body asks how much that is. Status 200 means
    that the file is complete, 308 that more is missing; the header `Range` contains what arrived.
    `Content-Digest` (of the body) and `Repr-Digest` (of the whole file) are checked if they contain
    `sha-256`.

    Args:
        upload_id (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):
        body (File): A body of bytes instead of text.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        UploadedFileResponse
    """

    return (
        await asyncio_detailed(
            upload_id=upload_id,
            file=file,
            client=client,
            body=body,
            tenant=tenant,
            expires=expires,
            signature=signature,
        )
    ).parsed
