from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.storage_response import StorageResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    project_id: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["project_id"] = project_id

    params["organisation"] = organisation

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/billing/usage/checkpoints/current",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> StorageResponse | None:
    if response.status_code == 200:
        response_200 = StorageResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[StorageResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    project_id: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> Response[StorageResponse]:
    """Returns the checkpoints that an organisation stores now, by project and user; for admins

     Returns the checkpoints that an organisation stores now, by project and user; for admins.

    Args:
        project_id (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[StorageResponse]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        organisation=organisation,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    project_id: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> StorageResponse | None:
    """Returns the checkpoints that an organisation stores now, by project and user; for admins

     Returns the checkpoints that an organisation stores now, by project and user; for admins.

    Args:
        project_id (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        StorageResponse
    """

    return sync_detailed(
        client=client,
        project_id=project_id,
        organisation=organisation,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    project_id: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> Response[StorageResponse]:
    """Returns the checkpoints that an organisation stores now, by project and user; for admins

     Returns the checkpoints that an organisation stores now, by project and user; for admins.

    Args:
        project_id (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[StorageResponse]
    """

    kwargs = _get_kwargs(
        project_id=project_id,
        organisation=organisation,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    project_id: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> StorageResponse | None:
    """Returns the checkpoints that an organisation stores now, by project and user; for admins

     Returns the checkpoints that an organisation stores now, by project and user; for admins.

    Args:
        project_id (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        StorageResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            project_id=project_id,
            organisation=organisation,
        )
    ).parsed
