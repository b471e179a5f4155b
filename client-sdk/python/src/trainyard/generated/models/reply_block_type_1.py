from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.reply_block_type_1_type import ReplyBlockType1Type

T = TypeVar("T", bound="ReplyBlockType1")


@_attrs_define
class ReplyBlockType1:
    """Thoughts that precede the answer.

    Attributes:
        signature (str): Always the empty text.
        thinking (str): Text of the thoughts.
        type_ (ReplyBlockType1Type):
    """

    signature: str
    thinking: str
    type_: ReplyBlockType1Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        signature = self.signature

        thinking = self.thinking

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "signature": signature,
                "thinking": thinking,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        signature = d.pop("signature")

        thinking = d.pop("thinking")

        type_ = ReplyBlockType1Type(d.pop("type"))

        reply_block_type_1 = cls(
            signature=signature,
            thinking=thinking,
            type_=type_,
        )

        reply_block_type_1.additional_properties = d
        return reply_block_type_1

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
