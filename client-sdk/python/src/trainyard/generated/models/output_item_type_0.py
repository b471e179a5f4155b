from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.output_item_type_0_type import OutputItemType0Type

if TYPE_CHECKING:
    from ..models.reasoning_text import ReasoningText


T = TypeVar("T", bound="OutputItemType0")


@_attrs_define
class OutputItemType0:
    """Thoughts that precede the answer.

    Attributes:
        content (list[ReasoningText]): The thoughts, as one part.
        id (str): Id of the item.
        status (str): `in_progress`, `completed` or `incomplete`.
        summary (list[Any]): Always empty: thoughts are returned as they are.
        type_ (OutputItemType0Type):
    """

    content: list[ReasoningText]
    id: str
    status: str
    summary: list[Any]
    type_: OutputItemType0Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = []
        for content_item_data in self.content:
            content_item = content_item_data.to_dict()
            content.append(content_item)

        id = self.id

        status = self.status

        summary = self.summary

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "content": content,
                "id": id,
                "status": status,
                "summary": summary,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.reasoning_text import ReasoningText

        d = dict(src_dict)
        content = []
        _content = d.pop("content")
        for content_item_data in _content:
            content_item = ReasoningText.from_dict(content_item_data)

            content.append(content_item)

        id = d.pop("id")

        status = d.pop("status")

        summary = cast(list[Any], d.pop("summary"))

        type_ = OutputItemType0Type(d.pop("type"))

        output_item_type_0 = cls(
            content=content,
            id=id,
            status=status,
            summary=summary,
            type_=type_,
        )

        output_item_type_0.additional_properties = d
        return output_item_type_0

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
