from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.usage_info_type_1_type import UsageInfoType1Type

T = TypeVar("T", bound="UsageInfoType1")


@_attrs_define
class UsageInfoType1:
    """Tokens of the prompts of samples.

    Attributes:
        cached (bool): Whether the prefix cache served the tokens.
        token_count (int): Number of these tokens.
        type_ (UsageInfoType1Type):
    """

    cached: bool
    token_count: int
    type_: UsageInfoType1Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cached = self.cached

        token_count = self.token_count

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "cached": cached,
                "token_count": token_count,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        cached = d.pop("cached")

        token_count = d.pop("token_count")

        type_ = UsageInfoType1Type(d.pop("type"))

        usage_info_type_1 = cls(
            cached=cached,
            token_count=token_count,
            type_=type_,
        )

        usage_info_type_1.additional_properties = d
        return usage_info_type_1

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
