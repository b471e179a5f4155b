from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.change_limits_request import ChangeLimitsRequest
from ...models.limits_response import LimitsResponse
from ...types import Response


def _get_kwargs(
    organisation: str,
    *,
    body: ChangeLimitsRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/admin/organisations/{organisation}/limits".format(
            organisation=quote(str(organisation), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> LimitsResponse | None:
    if response.status_code == 200:
        response_200 = LimitsResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[LimitsResponse]:
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
    body: ChangeLimitsRequest,
) -> Response[LimitsResponse]:
    """Sets and unsets the weight and the quotas of an organisation; for admins of operators

     Sets and unsets the weight and the quotas of an organisation; for admins of operators. Absent fields
    keep their values, and `null` unsets a limit. Every server enforces the new limits within a second;
    requests that were accepted or started earlier are not affected. A limit that the configuration file
    sets can't be changed.

    Args:
        organisation (str):
        body (ChangeLimitsRequest): Request body of `PUT
            admin/organisations/{organisation}/limits`. Absent fields keep their values; `null` unsets
            a
            limit.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LimitsResponse]
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
    body: ChangeLimitsRequest,
) -> LimitsResponse | None:
    """Sets and unsets the weight and the quotas of an organisation; for admins of operators

     Sets and unsets the weight and the quotas of an organisation; for admins of operators. Absent fields
    keep their values, and `null` unsets a limit. Every server enforces the new limits within a second;
    requests that were accepted or started earlier are not affected. A limit that the configuration file
    sets can't be changed.

    Args:
        organisation (str):
        body (ChangeLimitsRequest): Request body of `PUT
            admin/organisations/{organisation}/limits`. Absent fields keep their values; `null` unsets
            a
            limit.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LimitsResponse
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
    body: ChangeLimitsRequest,
) -> Response[LimitsResponse]:
    """Sets and unsets the weight and the quotas of an organisation; for admins of operators

     Sets and unsets the weight and the quotas of an organisation; for admins of operators. Absent fields
    keep their values, and `null` unsets a limit. Every server enforces the new limits within a second;
    requests that were accepted or started earlier are not affected. A limit that the configuration file
    sets can't be changed.

    Args:
        organisation (str):
        body (ChangeLimitsRequest): Request body of `PUT
            admin/organisations/{organisation}/limits`. Absent fields keep their values; `null` unsets
            a
            limit.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LimitsResponse]
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
    body: ChangeLimitsRequest,
) -> LimitsResponse | None:
    """Sets and unsets the weight and the quotas of an organisation; for admins of operators

     Sets and unsets the weight and the quotas of an organisation; for admins of operators. Absent fields
    keep their values, and `null` unsets a limit. Every server enforces the new limits within a second;
    requests that were accepted or started earlier are not affected. A limit that the configuration file
    sets can't be changed.

    Args:
        organisation (str):
        body (ChangeLimitsRequest): Request body of `PUT
            admin/organisations/{organisation}/limits`. Absent fields keep their values; `null` unsets
            a
            limit.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LimitsResponse
    """

    return (
        await asyncio_detailed(
            organisation=organisation,
            client=client,
            body=body,
        )
    ).parsed
