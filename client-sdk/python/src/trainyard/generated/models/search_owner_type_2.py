from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.search_owner_type_2_type import SearchOwnerType2Type

T = TypeVar("T", bound="SearchOwnerType2")


@_attrs_define
class SearchOwnerType2:
    """The listed owners, as far as the caller may see their sessions.

    Attributes:
        owner_urns (list[str]): One to ten owners, in the form of `owner` in results.
        type_ (SearchOwnerType2Type):
    """

    owner_urns: list[str]
    type_: SearchOwnerType2Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        owner_urns = self.owner_urns

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "owner_urns": owner_urns,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        owner_urns = cast(list[str], d.pop("owner_urns"))

        type_ = SearchOwnerType2Type(d.pop("type"))

        search_owner_type_2 = cls(
            owner_urns=owner_urns,
            type_=type_,
        )

        search_owner_type_2.additional_properties = d
        return search_owner_type_2

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
