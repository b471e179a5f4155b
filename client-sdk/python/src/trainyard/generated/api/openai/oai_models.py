from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.models_response import ModelsResponse
from ...types import Response


def _get_kwargs() -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/oai/api/v1/models",
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ModelsResponse | None:
    if response.status_code == 200:
        response_200 = ModelsResponse.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ModelsResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
) -> Response[ModelsResponse]:
    """Lists the models that the field `model` of the OpenAI and Anthropic APIs may name

     Lists the models that the field `model` of the OpenAI and Anthropic APIs may name. These are the
    base models and the caller's sampler checkpoints. The key of an agent session lists the session's
    weights.

    Also served at `/v1/models`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ModelsResponse]
    """

    kwargs = _get_kwargs()

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
) -> ModelsResponse | None:
    """Lists the models that the field `model` of the OpenAI and Anthropic APIs may name

     Lists the models that the field `model` of the OpenAI and Anthropic APIs may name. These are the
    base models and the caller's sampler checkpoints. The key of an agent session lists the session's
    weights.

    Also served at `/v1/models`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ModelsResponse
    """

    return sync_detailed(
        client=client,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
) -> Response[ModelsResponse]:
    """Lists the models that the field `model` of the OpenAI and Anthropic APIs may name

     Lists the models that the field `model` of the OpenAI and Anthropic APIs may name. These are the
    base models and the caller's sampler checkpoints. The key of an agent session lists the session's
    weights.

    Also served at `/v1/models`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ModelsResponse]
    """

    kwargs = _get_kwargs()

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
) -> ModelsResponse | None:
    """Lists the models that the field `model` of the OpenAI and Anthropic APIs may name

     Lists the models that the field `model` of the OpenAI and Anthropic APIs may name. These are the
    base models and the caller's sampler checkpoints. The key of an agent session lists the session's
    weights.

    Also served at `/v1/models`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ModelsResponse
    """

    return (
        await asyncio_detailed(
            client=client,
        )
    ).parsed
