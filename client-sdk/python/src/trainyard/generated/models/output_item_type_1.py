from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.output_item_type_1_type import OutputItemType1Type

if TYPE_CHECKING:
    from ..models.output_text import OutputText


T = TypeVar("T", bound="OutputItemType1")


@_attrs_define
class OutputItemType1:
    """Text that the model wrote.

    Attributes:
        content (list[OutputText]): The text, as one part.
        id (str): Id of the item.
        role (str): Always the text `assistant`.
        status (str): `in_progress`, `completed` or `incomplete`.
        type_ (OutputItemType1Type):
    """

    content: list[OutputText]
    id: str
    role: str
    status: str
    type_: OutputItemType1Type
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = []
        for content_item_data in self.content:
            content_item = content_item_data.to_dict()
            content.append(content_item)

        id = self.id

        role = self.role

        status = self.status

        type_ = self.type_.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "content": content,
                "id": id,
                "role": role,
                "status": status,
                "type": type_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.output_text import OutputText

        d = dict(src_dict)
        content = []
        _content = d.pop("content")
        for content_item_data in _content:
            content_item = OutputText.from_dict(content_item_data)

            content.append(content_item)

        id = d.pop("id")

        role = d.pop("role")

        status = d.pop("status")

        type_ = OutputItemType1Type(d.pop("type"))

        output_item_type_1 = cls(
            content=content,
            id=id,
            role=role,
            status=status,
            type_=type_,
        )

        output_item_type_1.additional_properties = d
        return output_item_type_1

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
