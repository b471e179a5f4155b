from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="TelemetryRequest")


@_attrs_define
class TelemetryRequest:
    """Request body of `telemetry`.

    Attributes:
        events (list[Any] | Unset): Events of the client; they are not stored.
        platform (str | Unset): Platform of the client.
        sdk_version (str | Unset): Version of the client.
        session_id (str | Unset): Id of the session, or `sessionless-<uuid>`.
    """

    events: list[Any] | Unset = UNSET
    platform: str | Unset = UNSET
    sdk_version: str | Unset = UNSET
    session_id: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        events: list[Any] | Unset = UNSET
        if not isinstance(self.events, Unset):
            events = self.events

        platform = self.platform

        sdk_version = self.sdk_version

        session_id = self.session_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if events is not UNSET:
            field_dict["events"] = events
        if platform is not UNSET:
            field_dict["platform"] = platform
        if sdk_version is not UNSET:
            field_dict["sdk_version"] = sdk_version
        if session_id is not UNSET:
            field_dict["session_id"] = session_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        events = cast(list[Any], d.pop("events", UNSET))

        platform = d.pop("platform", UNSET)

        sdk_version = d.pop("sdk_version", UNSET)

        session_id = d.pop("session_id", UNSET)

        telemetry_request = cls(
            events=events,
            platform=platform,
            sdk_version=sdk_version,
            session_id=session_id,
        )

        telemetry_request.additional_properties = d
        return telemetry_request

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
