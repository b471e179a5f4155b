from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.anthropic_usage import AnthropicUsage
    from ..models.reply_block_type_0 import ReplyBlockType0
    from ..models.reply_block_type_1 import ReplyBlockType1
    from ..models.reply_block_type_2 import ReplyBlockType2


T = TypeVar("T", bound="MessageResponse")


@_attrs_define
class MessageResponse:
    """Response body of `messages`, and the `message` of a stream's first event.

    Attributes:
        content (list[ReplyBlockType0 | ReplyBlockType1 | ReplyBlockType2]): Thoughts, text and tool calls, in order.
        id (str): Id of the request.
        model (str): The `model` of the request.
        role (str): Always the text `assistant`.
        type_ (str): Always the text `message`.
        usage (AnthropicUsage): Numbers of tokens in a request and its reply.
        stop_reason (None | str | Unset): Why the reply ended: `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.
        stop_sequence (None | str | Unset): The stop sequence that ended the reply.
    """

    content: list[ReplyBlockType0 | ReplyBlockType1 | ReplyBlockType2]
    id: str
    model: str
    role: str
    type_: str
    usage: AnthropicUsage
    stop_reason: None | str | Unset = UNSET
    stop_sequence: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.reply_block_type_0 import ReplyBlockType0
        from ..models.reply_block_type_1 import ReplyBlockType1

        content = []
        for content_item_data in self.content:
            content_item: dict[str, Any]
            if isinstance(content_item_data, ReplyBlockType0) or isinstance(
                content_item_data, ReplyBlockType1
            ):
                content_item = content_item_data.to_dict()
            else:
                content_item = content_item_data.to_dict()

            content.append(content_item)

        id = self.id

        model = self.model

        role = self.role

        type_ = self.type_

        usage = self.usage.to_dict()

        stop_reason: None | str | Unset
        if isinstance(self.stop_reason, Unset):
            stop_reason = UNSET
        else:
            stop_reason = self.stop_reason

        stop_sequence: None | str | Unset
        if isinstance(self.stop_sequence, Unset):
            stop_sequence = UNSET
        else:
            stop_sequence = self.stop_sequence

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "content": content,
                "id": id,
                "model": model,
                "role": role,
                "type": type_,
                "usage": usage,
            }
        )
        if stop_reason is not UNSET:
            field_dict["stop_reason"] = stop_reason
        if stop_sequence is not UNSET:
            field_dict["stop_sequence"] = stop_sequence

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.anthropic_usage import AnthropicUsage
        from ..models.reply_block_type_0 import ReplyBlockType0
        from ..models.reply_block_type_1 import ReplyBlockType1
        from ..models.reply_block_type_2 import ReplyBlockType2

        d = dict(src_dict)
        content = []
        _content = d.pop("content")
        for content_item_data in _content:

            def _parse_content_item(
                data: object,
            ) -> ReplyBlockType0 | ReplyBlockType1 | ReplyBlockType2:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_reply_block_type_0 = ReplyBlockType0.from_dict(
                        data
                    )

                    return componentsschemas_reply_block_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_reply_block_type_1 = ReplyBlockType1.from_dict(
                        data
                    )

                    return componentsschemas_reply_block_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_reply_block_type_2 = ReplyBlockType2.from_dict(data)

                return componentsschemas_reply_block_type_2

            content_item = _parse_content_item(content_item_data)

            content.append(content_item)

        id = d.pop("id")

        model = d.pop("model")

        role = d.pop("role")

        type_ = d.pop("type")

        usage = AnthropicUsage.from_dict(d.pop("usage"))

        def _parse_stop_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stop_reason = _parse_stop_reason(d.pop("stop_reason", UNSET))

        def _parse_stop_sequence(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stop_sequence = _parse_stop_sequence(d.pop("stop_sequence", UNSET))

        message_response = cls(
            content=content,
            id=id,
            model=model,
            role=role,
            type_=type_,
            usage=usage,
            stop_reason=stop_reason,
            stop_sequence=stop_sequence,
        )

        message_response.additional_properties = d
        return message_response

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
