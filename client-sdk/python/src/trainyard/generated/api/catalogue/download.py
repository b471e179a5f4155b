from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...types import UNSET, File, Response


def _get_kwargs(
    run_id: str,
    kind: str,
    name: str,
    file: str,
    *,
    tenant: str,
    expires: int,
    signature: str,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["tenant"] = tenant

    params["expires"] = expires

    params["signature"] = signature

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/downloads/{run_id}/{kind}/{name}/{file}".format(
            run_id=quote(str(run_id), safe=""),
            kind=quote(str(kind), safe=""),
            name=quote(str(name), safe=""),
            file=quote(str(file), safe=""),
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
    kind: str,
    name: str,
    file: str,
    *,
    client: AuthenticatedClient,
    tenant: str,
    expires: int,
    signature: str,
) -> Response[File]:
    """Downloads a file of a checkpoint's weights

     Downloads a file of a checkpoint's weights. The URL contains its authorisation.

    Args:
        run_id (str):
        kind (str):
        name (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[File]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        kind=kind,
        name=name,
        file=file,
        tenant=tenant,
        expires=expires,
        signature=signature,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    run_id: str,
    kind: str,
    name: str,
    file: str,
    *,
    client: AuthenticatedClient,
    tenant: str,
    expires: int,
    signature: str,
) -> File | None:
    """Downloads a file of a checkpoint's weights

     Downloads a file of a checkpoint's weights. The URL contains its authorisation.

    Args:
        run_id (str):
        kind (str):
        name (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        File
    """

    return sync_detailed(
        run_id=run_id,
        kind=kind,
        name=name,
        file=file,
        client=client,
        tenant=tenant,
        expires=expires,
        signature=signature,
    ).parsed


async def asyncio_detailed(
    run_id: str,
    kind: str,
    name: str,
    file: str,
    *,
    client: AuthenticatedClient,
    tenant: str,
    expires: int,
    signature: str,
) -> Response[File]:
    """Downloads a file of a checkpoint's weights

     Downloads a file of a checkpoint's weights. The URL contains its authorisation.

    Args:
        run_id (str):
        kind (str):
        name (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[File]
    """

    kwargs = _get_kwargs(
        run_id=run_id,
        kind=kind,
        name=name,
        file=file,
        tenant=tenant,
        expires=expires,
        signature=signature,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    run_id: str,
    kind: str,
    name: str,
    file: str,
    *,
    client: AuthenticatedClient,
    tenant: str,
    expires: int,
    signature: str,
) -> File | None:
    """Downloads a file of a checkpoint's weights

     Downloads a file of a checkpoint's weights. The URL contains its authorisation.

    Args:
        run_id (str):
        kind (str):
        name (str):
        file (str):
        tenant (str):
        expires (int):
        signature (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        File
    """

    return (
        await asyncio_detailed(
            run_id=run_id,
            kind=kind,
            name=name,
            file=file,
            client=client,
            tenant=tenant,
            expires=expires,
            signature=signature,
        )
    ).parsed
