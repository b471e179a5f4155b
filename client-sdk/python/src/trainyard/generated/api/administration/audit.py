from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.audit_response import AuditResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    event_type: str | Unset = UNSET,
    day: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["event_type"] = event_type

    params["day"] = day

    params["organisation"] = organisation

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/audit",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AuditResponse | None:
    if response.status_code == 200:
        response_200 = AuditResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AuditResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    event_type: str | Unset = UNSET,
    day: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> Response[AuditResponse]:
    """Returns what was done to an organisation and its objects on one day; for admins

     Returns what was done to an organisation and its objects on one day; for admins. The audit log
    contains administrative actions, publications, downloads and deletions.

    Args:
        event_type (str | Unset):
        day (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditResponse]
    """

    kwargs = _get_kwargs(
        event_type=event_type,
        day=day,
        organisation=organisation,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    event_type: str | Unset = UNSET,
    day: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> AuditResponse | None:
    """Returns what was done to an organisation and its objects on one day; for admins

     Returns what was done to an organisation and its objects on one day; for admins. The audit log
    contains administrative actions, publications, downloads and deletions.

    Args:
        event_type (str | Unset):
        day (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditResponse
    """

    return sync_detailed(
        client=client,
        event_type=event_type,
        day=day,
        organisation=organisation,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    event_type: str | Unset = UNSET,
    day: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> Response[AuditResponse]:
    """Returns what was done to an organisation and its objects on one day; for admins

     Returns what was done to an organisation and its objects on one day; for admins. The audit log
    contains administrative actions, publications, downloads and deletions.

    Args:
        event_type (str | Unset):
        day (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AuditResponse]
    """

    kwargs = _get_kwargs(
        event_type=event_type,
        day=day,
        organisation=organisation,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    event_type: str | Unset = UNSET,
    day: str | Unset = UNSET,
    organisation: str | Unset = UNSET,
) -> AuditResponse | None:
    """Returns what was done to an organisation and its objects on one day; for admins

     Returns what was done to an organisation and its objects on one day; for admins. The audit log
    contains administrative actions, publications, downloads and deletions.

    Args:
        event_type (str | Unset):
        day (str | Unset):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AuditResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            event_type=event_type,
            day=day,
            organisation=organisation,
        )
    ).parsed
