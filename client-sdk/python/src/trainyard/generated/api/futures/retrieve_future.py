from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.failed_response import FailedResponse
from ...models.retrieve_future_request import RetrieveFutureRequest
from ...models.retrieve_future_response_type_4 import RetrieveFutureResponseType4
from ...models.sample_result import SampleResult
from ...models.training_result import TrainingResult
from ...models.try_again_response import TryAgainResponse
from ...types import Response


def _get_kwargs(
    *,
    body: RetrieveFutureRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/retrieve_future",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> (
    FailedResponse
    | RetrieveFutureResponseType4
    | SampleResult
    | TrainingResult
    | TryAgainResponse
    | None
):
    if response.status_code == 200:

        def _parse_response_200(
            data: object,
        ) -> (
            FailedResponse
            | RetrieveFutureResponseType4
            | SampleResult
            | TrainingResult
            | TryAgainResponse
        ):
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_retrieve_future_response_type_0 = (
                    TryAgainResponse.from_dict(data)
                )

                return componentsschemas_retrieve_future_response_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_retrieve_future_response_type_1 = (
                    FailedResponse.from_dict(data)
                )

                return componentsschemas_retrieve_future_response_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_retrieve_future_response_type_2 = (
                    SampleResult.from_dict(data)
                )

                return componentsschemas_retrieve_future_response_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_retrieve_future_response_type_3 = (
                    TrainingResult.from_dict(data)
                )

                return componentsschemas_retrieve_future_response_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_retrieve_future_response_type_4 = (
                RetrieveFutureResponseType4.from_dict(data)
            )

            return componentsschemas_retrieve_future_response_type_4

        response_200 = _parse_response_200(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[
    FailedResponse
    | RetrieveFutureResponseType4
    | SampleResult
    | TrainingResult
    | TryAgainResponse
]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: RetrieveFutureRequest,
) -> Response[
    FailedResponse
    | RetrieveFutureResponseType4
    | SampleResult
    | TrainingResult
    | TryAgainResponse
]:
    """Waits up to half a minute for a request to finish, and returns its result

     Waits up to half a minute for a request to finish, and returns its result. A result can be read
    repeatedly. Failed requests are answered with status 200 and a key `error`, pending ones with
    `try_again`.

    All responses are JSON, except for clients that send `Accept: application/x-protobuf`: these receive
    results of samples and training passes as protobuf. Both forms contain the same numbers.

    Args:
        body (RetrieveFutureRequest): Request body of `retrieve_future`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FailedResponse | RetrieveFutureResponseType4 | SampleResult | TrainingResult | TryAgainResponse]
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
    body: RetrieveFutureRequest,
) -> (
    FailedResponse
    | RetrieveFutureResponseType4
    | SampleResult
    | TrainingResult
    | TryAgainResponse
    | None
):
    """Waits up to half a minute for a request to finish, and returns its result

     Waits up to half a minute for a request to finish, and returns its result. A result can be read
    repeatedly. Failed requests are answered with status 200 and a key `error`, pending ones with
    `try_again`.

    All responses are JSON, except for clients that send `Accept: application/x-protobuf`: these receive
    results of samples and training passes as protobuf. Both forms contain the same numbers.

    Args:
        body (RetrieveFutureRequest): Request body of `retrieve_future`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FailedResponse | RetrieveFutureResponseType4 | SampleResult | TrainingResult | TryAgainResponse
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: RetrieveFutureRequest,
) -> Response[
    FailedResponse
    | RetrieveFutureResponseType4
    | SampleResult
    | TrainingResult
    | TryAgainResponse
]:
    """Waits up to half a minute for a request to finish, and returns its result

     Waits up to half a minute for a request to finish, and returns its result. A result can be read
    repeatedly. Failed requests are answered with status 200 and a key `error`, pending ones with
    `try_again`.

    All responses are JSON, except for clients that send `Accept: application/x-protobuf`: these receive
    results of samples and training passes as protobuf. Both forms contain the same numbers.

    Args:
        body (RetrieveFutureRequest): Request body of `retrieve_future`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FailedResponse | RetrieveFutureResponseType4 | SampleResult | TrainingResult | TryAgainResponse]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: RetrieveFutureRequest,
) -> (
    FailedResponse
    | RetrieveFutureResponseType4
    | SampleResult
    | TrainingResult
    | TryAgainResponse
    | None
):
    """Waits up to half a minute for a request to finish, and returns its result

     Waits up to half a minute for a request to finish, and returns its result. A result can be read
    repeatedly. Failed requests are answered with status 200 and a key `error`, pending ones with
    `try_again`.

    All responses are JSON, except for clients that send `Accept: application/x-protobuf`: these receive
    results of samples and training passes as protobuf. Both forms contain the same numbers.

    Args:
        body (RetrieveFutureRequest): Request body of `retrieve_future`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FailedResponse | RetrieveFutureResponseType4 | SampleResult | TrainingResult | TryAgainResponse
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
