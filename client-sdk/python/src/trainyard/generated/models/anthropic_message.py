from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.block import Block


T = TypeVar("T", bound="AnthropicMessage")


@_attrs_define
class AnthropicMessage:
    """A message of a conversation.

    Attributes:
        content (list[Block] | str): Content of a message: a text, or a list of blocks.
        role (str): Author of the message: `user` or `assistant`.
    """

    content: list[Block] | str
    role: str

    def to_dict(self) -> dict[str, Any]:
        content: list[dict[str, Any]] | str
        if isinstance(self.content, list):
            content = []
            for componentsschemas_anthropic_content_type_1_item_data in self.content:
                componentsschemas_anthropic_content_type_1_item = (
                    componentsschemas_anthropic_content_type_1_item_data.to_dict()
                )
                content.append(componentsschemas_anthropic_content_type_1_item)

        else:
            content = self.content

        role = self.role

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "content": content,
                "role": role,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.block import Block

        d = dict(src_dict)

        def _parse_content(data: object) -> list[Block] | str:
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_anthropic_content_type_1 = []
                _componentsschemas_anthropic_content_type_1 = data
                for (
                    componentsschemas_anthropic_content_type_1_item_data
                ) in _componentsschemas_anthropic_content_type_1:
                    componentsschemas_anthropic_content_type_1_item = Block.from_dict(
                        componentsschemas_anthropic_content_type_1_item_data
                    )

                    componentsschemas_anthropic_content_type_1.append(
                        componentsschemas_anthropic_content_type_1_item
                    )

                return componentsschemas_anthropic_content_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Block] | str, data)

        content = _parse_content(d.pop("content"))

        role = d.pop("role")

        anthropic_message = cls(
            content=content,
            role=role,
        )

        return anthropic_message
