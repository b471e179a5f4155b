from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.create_project_request import CreateProjectRequest
from ...models.project import Project
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: CreateProjectRequest,
    organisation: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["organisation"] = organisation

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/admin/projects",
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Project | None:
    if response.status_code == 200:
        response_200 = Project.from_dict(response.json())

        return response_200

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Project]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateProjectRequest,
    organisation: str | Unset = UNSET,
) -> Response[Project]:
    """Creates a project in an organisation

     Creates a project in an organisation.

    Args:
        organisation (str | Unset):
        body (CreateProjectRequest): Request body of `POST admin/projects`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Project]
    """

    kwargs = _get_kwargs(
        body=body,
        organisation=organisation,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: CreateProjectRequest,
    organisation: str | Unset = UNSET,
) -> Project | None:
    """Creates a project in an organisation

     Creates a project in an organisation.

    Args:
        organisation (str | Unset):
        body (CreateProjectRequest): Request body of `POST admin/projects`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Project
    """

    return sync_detailed(
        client=client,
        body=body,
        organisation=organisation,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: CreateProjectRequest,
    organisation: str | Unset = UNSET,
) -> Response[Project]:
    """Creates a project in an organisation

     Creates a project in an organisation.

    Args:
        organisation (str | Unset):
        body (CreateProjectRequest): Request body of `POST admin/projects`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Project]
    """

    kwargs = _get_kwargs(
        body=body,
        organisation=organisation,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: CreateProjectRequest,
    organisation: str | Unset = UNSET,
) -> Project | None:
    """Creates a project in an organisation

     Creates a project in an organisation.

    Args:
        organisation (str | Unset):
        body (CreateProjectRequest): Request body of `POST admin/projects`.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Project
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            organisation=organisation,
        )
    ).parsed
