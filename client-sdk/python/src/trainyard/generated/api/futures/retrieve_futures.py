from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.retrieve_futures_request import RetrieveFuturesRequest
from ...models.retrieve_futures_response import RetrieveFuturesResponse
from ...types import Response


def _get_kwargs(
    *,
    body: RetrieveFuturesRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/retrieve_futures",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> RetrieveFuturesResponse | None:
    if response.status_code == 200:
        response_200 = RetrieveFuturesResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[RetrieveFuturesResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: RetrieveFuturesRequest,
) -> Response[RetrieveFuturesResponse]:
    """Waits for samples of a sampling session to finish

     Waits for samples of a sampling session to finish. The cursor covers exactly the samples that are
    returned.

    The results named in `retrieved_request_ids` are dropped some minutes later, unless the key has only
    read access.

    Args:
        body (RetrieveFuturesRequest): Request body of `retrieve_futures`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RetrieveFuturesResponse]
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
    body: RetrieveFuturesRequest,
) -> RetrieveFuturesResponse | None:
    """Waits for samples of a sampling session to finish

     Waits for samples of a sampling session to finish. The cursor covers exactly the samples that are
    returned.

    The results named in `retrieved_request_ids` are dropped some minutes later, unless the key has only
    read access.

    Args:
        body (RetrieveFuturesRequest): Request body of `retrieve_futures`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RetrieveFuturesResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: RetrieveFuturesRequest,
) -> Response[RetrieveFuturesResponse]:
    """Waits for samples of a sampling session to finish

     Waits for samples of a sampling session to finish. The cursor covers exactly the samples that are
    returned.

    The results named in `retrieved_request_ids` are dropped some minutes later, unless the key has only
    read access.

    Args:
        body (RetrieveFuturesRequest): Request body of `retrieve_futures`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[RetrieveFuturesResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: RetrieveFuturesRequest,
) -> RetrieveFuturesResponse | None:
    """Waits for samples of a sampling session to finish

     Waits for samples of a sampling session to finish. The cursor covers exactly the samples that are
    returned.

    The results named in `retrieved_request_ids` are dropped some minutes later, unless the key has only
    read access.

    Args:
        body (RetrieveFuturesRequest): Request body of `retrieve_futures`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        RetrieveFuturesResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
