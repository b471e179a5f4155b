from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.limits_response import LimitsResponse
from ...types import Response


def _get_kwargs(
    organisation: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/admin/organisations/{organisation}/limits".format(
            organisation=quote(str(organisation), safe=""),
        ),
    }

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
) -> Response[LimitsResponse]:
    """Returns the weight and the quotas of an organisation, and where each one is set

     Returns the weight and the quotas of an organisation, and where each one is set.

    Args:
        organisation (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LimitsResponse]
    """

    kwargs = _get_kwargs(
        organisation=organisation,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    organisation: str,
    *,
    client: AuthenticatedClient | Client,
) -> LimitsResponse | None:
    """Returns the weight and the quotas of an organisation, and where each one is set

     Returns the weight and the quotas of an organisation, and where each one is set.

    Args:
        organisation (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LimitsResponse
    """

    return sync_detailed(
        organisation=organisation,
        client=client,
    ).parsed


async def asyncio_detailed(
    organisation: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[LimitsResponse]:
    """Returns the weight and the quotas of an organisation, and where each one is set

     Returns the weight and the quotas of an organisation, and where each one is set.

    Args:
        organisation (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LimitsResponse]
    """

    kwargs = _get_kwargs(
        organisation=organisation,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    organisation: str,
    *,
    client: AuthenticatedClient | Client,
) -> LimitsResponse | None:
    """Returns the weight and the quotas of an organisation, and where each one is set

     Returns the weight and the quotas of an organisation, and where each one is set.

    Args:
        organisation (str):

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
        )
    ).parsed
