from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="IndexResponse")


@_attrs_define
class IndexResponse:
    """Response body of `/`: the service, and the paths of its description and health.

    Attributes:
        api (str): Path of the Tinker API.
        docs (str): Path of the page that shows this document.
        health (str): Path that reports whether the models are loaded.
        liveness (str): Path that reports whether the process runs.
        name (str): Always the text `Trainyard`.
        openapi (str): Path of this document.
        readiness (str): Path that reports whether requests should be sent to this server.
        version (str): Version of the program.
        console (None | str | Unset): Path of the console; absent if it is not served.
    """

    api: str
    docs: str
    health: str
    liveness: str
    name: str
    openapi: str
    readiness: str
    version: str
    console: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        api = self.api

        docs = self.docs

        health = self.health

        liveness = self.liveness

        name = self.name

        openapi = self.openapi

        readiness = self.readiness

        version = self.version

        console: None | str | Unset
        if isinstance(self.console, Unset):
            console = UNSET
        else:
            console = self.console

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "api": api,
                "docs": docs,
                "health": health,
                "liveness": liveness,
                "name": name,
                "openapi": openapi,
                "readiness": readiness,
                "version": version,
            }
        )
        if console is not UNSET:
            field_dict["console"] = console

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        api = d.pop("api")

        docs = d.pop("docs")

        health = d.pop("health")

        liveness = d.pop("liveness")

        name = d.pop("name")

        openapi = d.pop("openapi")

        readiness = d.pop("readiness")

        version = d.pop("version")

        def _parse_console(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        console = _parse_console(d.pop("console", UNSET))

        index_response = cls(
            api=api,
            docs=docs,
            health=health,
            liveness=liveness,
            name=name,
            openapi=openapi,
            readiness=readiness,
            version=version,
            console=console,
        )

        index_response.additional_properties = d
        return index_response

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
