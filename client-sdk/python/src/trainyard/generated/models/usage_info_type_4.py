from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.usage_info_type_4_type import UsageInfoType4Type

T = TypeVar("T", bound="UsageInfoType4")


@_attrs_define
class UsageInfoType4:
    """Checkpoints that were stored.

    Attributes:
        gigabyte_hours (float): Storage in units of 10^9 bytes, multiplied by hours.
        type_ (UsageInfoType4Type):
    """

    gigabyte_hours: float
    type_: UsageInfoType4Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        gigabyte_hours = self.gigabyte_hours

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "gigabyte_hours": gigabyte_hours,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        gigabyte_hours = d.pop("gigabyte_hours")

        type_ = UsageInfoType4Type(d.pop("type"))

        usage_info_type_4 = cls(
            gigabyte_hours=gigabyte_hours,
            type_=type_,
        )

        usage_info_type_4.additional_properties = d
        return usage_info_type_4

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
