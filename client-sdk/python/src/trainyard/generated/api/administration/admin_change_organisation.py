from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.change_organisation_request import ChangeOrganisationRequest
from ...models.organisation import Organisation
from ...types import Response


def _get_kwargs(
    organisation: str,
    *,
    body: ChangeOrganisationRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/admin/organisations/{organisation}".format(
            organisation=quote(str(organisation), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Organisation | None:
    if response.status_code == 200:
        response_200 = Organisation.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Organisation]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    organisation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChangeOrganisationRequest,
) -> Response[Organisation]:
    """Changes an organisation's display name, or disables or enables it

     Changes an organisation's display name, or disables or enables it. Absent fields keep their values.
    Every server answers the keys and tokens of a disabled organisation with 401 within a second. Its
    sessions expire, which cancels waiting requests and all samples; its objects stay. Only admins of
    operators can disable and enable organisations, but not their own.

    Args:
        organisation (str):
        body (ChangeOrganisationRequest): Request body of `PUT
            admin/organisations/{organisation}`. Absent fields keep their values.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Organisation]
    """

    kwargs = _get_kwargs(
        organisation=organisation,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    organisation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChangeOrganisationRequest,
) -> Organisation | None:
    """Changes an organisation's display name, or disables or enables it

     Changes an organisation's display name, or disables or enables it. Absent fields keep their values.
    Every server answers the keys and tokens of a disabled organisation with 401 within a second. Its
    sessions expire, which cancels waiting requests and all samples; its objects stay. Only admins of
    operators can disable and enable organisations, but not their own.

    Args:
        organisation (str):
        body (ChangeOrganisationRequest): Request body of `PUT
            admin/organisations/{organisation}`. Absent fields keep their values.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Organisation
    """

    return sync_detailed(
        organisation=organisation,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    organisation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChangeOrganisationRequest,
) -> Response[Organisation]:
    """Changes an organisation's display name, or disables or enables it

     Changes an organisation's display name, or disables or enables it. Absent fields keep their values.
    Every server answers the keys and tokens of a disabled organisation with 401 within a second. Its
    sessions expire, which cancels waiting requests and all samples; its objects stay. Only admins of
    operators can disable and enable organisations, but not their own.

    Args:
        organisation (str):
        body (ChangeOrganisationRequest): Request body of `PUT
            admin/organisations/{organisation}`. Absent fields keep their values.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Organisation]
    """

    kwargs = _get_kwargs(
        organisation=organisation,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    organisation: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChangeOrganisationRequest,
) -> Organisation | None:
    """Changes an organisation's display name, or disables or enables it

     Changes an organisation's display name, or disables or enables it. Absent fields keep their values.
    Every server answers the keys and tokens of a disabled organisation with 401 within a second. Its
    sessions expire, which cancels waiting requests and all samples; its objects stay. Only admins of
    operators can disable and enable organisations, but not their own.

    Args:
        organisation (str):
        body (ChangeOrganisationRequest): Request body of `PUT
            admin/organisations/{organisation}`. Absent fields keep their values.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Organisation
    """

    return (
        await asyncio_detailed(
            organisation=organisation,
            client=client,
            body=body,
        )
    ).parsed
