from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    starting_on: str,
    ending_before: str,
    organisation: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["starting_on"] = starting_on

    params["ending_before"] = ending_before

    params["organisation"] = organisation

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/admin/usage.csv",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> str | None:
    if response.status_code == 200:
        response_200 = response.text
        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[str]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    starting_on: str,
    ending_before: str,
    organisation: str | Unset = UNSET,
) -> Response[str]:
    """Exports as CSV what each request of an organisation used; for admins

     Exports as CSV what each request of an organisation used; for admins. The file contains the requests
    that ended in the period. A period that begins before the time from which they are kept is refused
    with that time.

    Args:
        starting_on (str):
        ending_before (str):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[str]
    """

    kwargs = _get_kwargs(
        starting_on=starting_on,
        ending_before=ending_before,
        organisation=organisation,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    starting_on: str,
    ending_before: str,
    organisation: str | Unset = UNSET,
) -> str | None:
    """Exports as CSV what each request of an organisation used; for admins

     Exports as CSV what each request of an organisation used; for admins. The file contains the requests
    that ended in the period. A period that begins before the time from which they are kept is refused
    with that time.

    Args:
        starting_on (str):
        ending_before (str):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        str
    """

    return sync_detailed(
        client=client,
        starting_on=starting_on,
        ending_before=ending_before,
        organisation=organisation,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    starting_on: str,
    ending_before: str,
    organisation: str | Unset = UNSET,
) -> Response[str]:
    """Exports as CSV what each request of an organisation used; for admins

     Exports as CSV what each request of an organisation used; for admins. The file contains the requests
    that ended in the period. A period that begins before the time from which they are kept is refused
    with that time.

    Args:
        starting_on (str):
        ending_before (str):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[str]
    """

    kwargs = _get_kwargs(
        starting_on=starting_on,
        ending_before=ending_before,
        organisation=organisation,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    starting_on: str,
    ending_before: str,
    organisation: str | Unset = UNSET,
) -> str | None:
    """Exports as CSV what each request of an organisation used; for admins

     Exports as CSV what each request of an organisation used; for admins. The file contains the requests
    that ended in the period. A period that begins before the time from which they are kept is refused
    with that time.

    Args:
        starting_on (str):
        ending_before (str):
        organisation (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        str
    """

    return (
        await asyncio_detailed(
            client=client,
            starting_on=starting_on,
            ending_before=ending_before,
            organisation=organisation,
        )
    ).parsed
