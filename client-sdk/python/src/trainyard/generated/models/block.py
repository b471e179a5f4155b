from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.image_source import ImageSource


T = TypeVar("T", bound="Block")


@_attrs_define
class Block:
    """A part of a message: `text`, `image`, `thinking`, `redacted_thinking`, `tool_use` or `tool_result`. Other types are
    refused.

        Attributes:
            type_ (str): Type of the block, which determines its other fields.
            content (list[Block] | None | str | Unset):
            id (None | str | Unset): `tool_use` blocks: id of the call.
            input_ (Any | Unset): `tool_use` blocks: arguments of the call, an object.
            is_error (bool | None | Unset): `tool_result` blocks: accepted, but ignored; the content describes the error.
            name (None | str | Unset): `tool_use` blocks: name of the tool.
            source (ImageSource | None | Unset):
            text (None | str | Unset): `text` blocks: the text.
            thinking (None | str | Unset): `thinking` blocks: the thoughts.
            tool_use_id (None | str | Unset): `tool_result` blocks: id of the call that the result belongs to.
    """

    type_: str
    content: list[Block] | None | str | Unset = UNSET
    id: None | str | Unset = UNSET
    input_: Any | Unset = UNSET
    is_error: bool | None | Unset = UNSET
    name: None | str | Unset = UNSET
    source: ImageSource | None | Unset = UNSET
    text: None | str | Unset = UNSET
    thinking: None | str | Unset = UNSET
    tool_use_id: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.image_source import ImageSource

        type_ = self.type_

        content: list[dict[str, Any]] | None | str | Unset
        if isinstance(self.content, Unset):
            content = UNSET
        elif isinstance(self.content, list):
            content = []
            for componentsschemas_anthropic_content_type_1_item_data in self.content:
                componentsschemas_anthropic_content_type_1_item = (
                    componentsschemas_anthropic_content_type_1_item_data.to_dict()
                )
                content.append(componentsschemas_anthropic_content_type_1_item)

        else:
            content = self.content

        id: None | str | Unset
        if isinstance(self.id, Unset):
            id = UNSET
        else:
            id = self.id

        input_ = self.input_

        is_error: bool | None | Unset
        if isinstance(self.is_error, Unset):
            is_error = UNSET
        else:
            is_error = self.is_error

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        source: dict[str, Any] | None | Unset
        if isinstance(self.source, Unset):
            source = UNSET
        elif isinstance(self.source, ImageSource):
            source = self.source.to_dict()
        else:
            source = self.source

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        thinking: None | str | Unset
        if isinstance(self.thinking, Unset):
            thinking = UNSET
        else:
            thinking = self.thinking

        tool_use_id: None | str | Unset
        if isinstance(self.tool_use_id, Unset):
            tool_use_id = UNSET
        else:
            tool_use_id = self.tool_use_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
            }
        )
        if content is not UNSET:
            field_dict["content"] = content
        if id is not UNSET:
            field_dict["id"] = id
        if input_ is not UNSET:
            field_dict["input"] = input_
        if is_error is not UNSET:
            field_dict["is_error"] = is_error
        if name is not UNSET:
            field_dict["name"] = name
        if source is not UNSET:
            field_dict["source"] = source
        if text is not UNSET:
            field_dict["text"] = text
        if thinking is not UNSET:
            field_dict["thinking"] = thinking
        if tool_use_id is not UNSET:
            field_dict["tool_use_id"] = tool_use_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.image_source import ImageSource

        d = dict(src_dict)
        type_ = d.pop("type")

        def _parse_content(data: object) -> list[Block] | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
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
            return cast(list[Block] | None | str | Unset, data)

        content = _parse_content(d.pop("content", UNSET))

        def _parse_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id = _parse_id(d.pop("id", UNSET))

        input_ = d.pop("input", UNSET)

        def _parse_is_error(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        is_error = _parse_is_error(d.pop("is_error", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_source(data: object) -> ImageSource | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                source_type_0 = ImageSource.from_dict(data)

                return source_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ImageSource | None | Unset, data)

        source = _parse_source(d.pop("source", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        def _parse_thinking(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        thinking = _parse_thinking(d.pop("thinking", UNSET))

        def _parse_tool_use_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tool_use_id = _parse_tool_use_id(d.pop("tool_use_id", UNSET))

        block = cls(
            type_=type_,
            content=content,
            id=id,
            input_=input_,
            is_error=is_error,
            name=name,
            source=source,
            text=text,
            thinking=thinking,
            tool_use_id=tool_use_id,
        )

        block.additional_properties = d
        return block

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
