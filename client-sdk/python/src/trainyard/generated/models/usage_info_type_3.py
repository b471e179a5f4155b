from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.usage_info_type_3_type import UsageInfoType3Type

T = TypeVar("T", bound="UsageInfoType3")


@_attrs_define
class UsageInfoType3:
    """Checkpoints that were saved.

    Attributes:
        count (int): Number of these checkpoints.
        type_ (UsageInfoType3Type):
    """

    count: int
    type_: UsageInfoType3Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        count = d.pop("count")

        type_ = UsageInfoType3Type(d.pop("type"))

        usage_info_type_3 = cls(
            count=count,
            type_=type_,
        )

        usage_info_type_3.additional_properties = d
        return usage_info_type_3

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
