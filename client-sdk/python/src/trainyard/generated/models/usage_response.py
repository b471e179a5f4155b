from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.usage_event import UsageEvent
    from ..models.usage_response_sessions import UsageResponseSessions


T = TypeVar("T", bound="UsageResponse")


@_attrs_define
class UsageResponse:
    """Response body of `billing/usage/events`.

    Attributes:
        data (list[UsageEvent]): Usage by hour, and within an hour by tokens in descending order.
        sessions (UsageResponseSessions): Sessions that `data` names, unless they were deleted.
    """

    data: list[UsageEvent]
    sessions: UsageResponseSessions
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        data = []
        for data_item_data in self.data:
            data_item = data_item_data.to_dict()
            data.append(data_item)

        sessions = self.sessions.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "data": data,
                "sessions": sessions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.usage_event import UsageEvent
        from ..models.usage_response_sessions import UsageResponseSessions

        d = dict(src_dict)
        data = []
        _data = d.pop("data")
        for data_item_data in _data:
            data_item = UsageEvent.from_dict(data_item_data)

            data.append(data_item)

        sessions = UsageResponseSessions.from_dict(d.pop("sessions"))

        usage_response = cls(
            data=data,
            sessions=sessions,
        )

        usage_response.additional_properties = d
        return usage_response

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
