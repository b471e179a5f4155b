from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.reply_block_type_2_type import ReplyBlockType2Type

T = TypeVar("T", bound="ReplyBlockType2")


@_attrs_define
class ReplyBlockType2:
    """A call of a tool.

    Attributes:
        id (str): Id of the call.
        input_ (Any): Arguments of the call, an object.
        name (str): Name of the tool.
        type_ (ReplyBlockType2Type):
    """

    id: str
    input_: Any
    name: str
    type_: ReplyBlockType2Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        input_ = self.input_

        name = self.name

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "input": input_,
                "name": name,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = d.pop("id")

        input_ = d.pop("input")

        name = d.pop("name")

        type_ = ReplyBlockType2Type(d.pop("type"))

        reply_block_type_2 = cls(
            id=id,
            input_=input_,
            name=name,
            type_=type_,
        )

        reply_block_type_2.additional_properties = d
        return reply_block_type_2

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
