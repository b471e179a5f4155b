from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.sampler_response import SamplerResponse
from ...types import Response


def _get_kwargs(
    sampler_id: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/samplers/{sampler_id}".format(
            sampler_id=quote(str(sampler_id), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> SamplerResponse | None:
    if response.status_code == 200:
        response_200 = SamplerResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[SamplerResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sampler_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[SamplerResponse]:
    """Returns the model that a sampling session samples from

     Returns the model that a sampling session samples from.

    Args:
        sampler_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SamplerResponse]
    """

    kwargs = _get_kwargs(
        sampler_id=sampler_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sampler_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> SamplerResponse | None:
    """Returns the model that a sampling session samples from

     Returns the model that a sampling session samples from.

    Args:
        sampler_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SamplerResponse
    """

    return sync_detailed(
        sampler_id=sampler_id,
        client=client,
    ).parsed


async def asyncio_detailed(
    sampler_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[SamplerResponse]:
    """Returns the model that a sampling session samples from

     Returns the model that a sampling session samples from.

    Args:
        sampler_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[SamplerResponse]
    """

    kwargs = _get_kwargs(
        sampler_id=sampler_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sampler_id: str,
    *,
    client: AuthenticatedClient | Client,
) -> SamplerResponse | None:
    """Returns the model that a sampling session samples from

     Returns the model that a sampling session samples from.

    Args:
        sampler_id (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        SamplerResponse
    """

    return (
        await asyncio_detailed(
            sampler_id=sampler_id,
            client=client,
        )
    ).parsed
