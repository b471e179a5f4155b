from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.content_part import ContentPart
    from ..models.tool_call import ToolCall


T = TypeVar("T", bound="ChatMessage")


@_attrs_define
class ChatMessage:
    """A message of a conversation.

    Attributes:
        role (str): Author of the message: `system`, `developer`, `user`, `assistant` or `tool`.
        annotations (list[Any] | None | Unset): Accepted, but has no effect.
        audio (Any | Unset): Refused unless it is null.
        content (list[ContentPart] | None | str | Unset):
        function_call (Any | Unset): Refused unless it is null.
        name (None | str | Unset): Name of the author.
        reasoning_content (None | str | Unset): Thoughts of the assistant.
        refusal (None | str | Unset): Used as the content if `content` is absent.
        tool_call_id (None | str | Unset): Id of the call that a message with the role `tool` answers.
        tool_calls (list[ToolCall] | None | Unset): Calls that the assistant made.
    """

    role: str
    annotations: list[Any] | None | Unset = UNSET
    audio: Any | Unset = UNSET
    content: list[ContentPart] | None | str | Unset = UNSET
    function_call: Any | Unset = UNSET
    name: None | str | Unset = UNSET
    reasoning_content: None | str | Unset = UNSET
    refusal: None | str | Unset = UNSET
    tool_call_id: None | str | Unset = UNSET
    tool_calls: list[ToolCall] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        role = self.role

        annotations: list[Any] | None | Unset
        if isinstance(self.annotations, Unset):
            annotations = UNSET
        elif isinstance(self.annotations, list):
            annotations = self.annotations

        else:
            annotations = self.annotations

        audio = self.audio

        content: list[dict[str, Any]] | None | str | Unset
        if isinstance(self.content, Unset):
            content = UNSET
        elif isinstance(self.content, list):
            content = []
            for componentsschemas_chat_content_type_1_item_data in self.content:
                componentsschemas_chat_content_type_1_item = (
                    componentsschemas_chat_content_type_1_item_data.to_dict()
                )
                content.append(componentsschemas_chat_content_type_1_item)

        else:
            content = self.content

        function_call = self.function_call

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        reasoning_content: None | str | Unset
        if isinstance(self.reasoning_content, Unset):
            reasoning_content = UNSET
        else:
            reasoning_content = self.reasoning_content

        refusal: None | str | Unset
        if isinstance(self.refusal, Unset):
            refusal = UNSET
        else:
            refusal = self.refusal

        tool_call_id: None | str | Unset
        if isinstance(self.tool_call_id, Unset):
            tool_call_id = UNSET
        else:
            tool_call_id = self.tool_call_id

        tool_calls: list[dict[str, Any]] | None | Unset
        if isinstance(self.tool_calls, Unset):
            tool_calls = UNSET
        elif isinstance(self.tool_calls, list):
            tool_calls = []
            for tool_calls_type_0_item_data in self.tool_calls:
                tool_calls_type_0_item = tool_calls_type_0_item_data.to_dict()
                tool_calls.append(tool_calls_type_0_item)

        else:
            tool_calls = self.tool_calls

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "role": role,
            }
        )
        if annotations is not UNSET:
            field_dict["annotations"] = annotations
        if audio is not UNSET:
            field_dict["audio"] = audio
        if content is not UNSET:
            field_dict["content"] = content
        if function_call is not UNSET:
            field_dict["function_call"] = function_call
        if name is not UNSET:
            field_dict["name"] = name
        if reasoning_content is not UNSET:
            field_dict["reasoning_content"] = reasoning_content
        if refusal is not UNSET:
            field_dict["refusal"] = refusal
        if tool_call_id is not UNSET:
            field_dict["tool_call_id"] = tool_call_id
        if tool_calls is not UNSET:
            field_dict["tool_calls"] = tool_calls

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.content_part import ContentPart
        from ..models.tool_call import ToolCall

        d = dict(src_dict)
        role = d.pop("role")

        def _parse_annotations(data: object) -> list[Any] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                annotations_type_0 = cast(list[Any], data)

                return annotations_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Any] | None | Unset, data)

        annotations = _parse_annotations(d.pop("annotations", UNSET))

        audio = d.pop("audio", UNSET)

        def _parse_content(data: object) -> list[ContentPart] | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_chat_content_type_1 = []
                _componentsschemas_chat_content_type_1 = data
                for (
                    componentsschemas_chat_content_type_1_item_data
                ) in _componentsschemas_chat_content_type_1:
                    componentsschemas_chat_content_type_1_item = ContentPart.from_dict(
                        componentsschemas_chat_content_type_1_item_data
                    )

                    componentsschemas_chat_content_type_1.append(
                        componentsschemas_chat_content_type_1_item
                    )

                return componentsschemas_chat_content_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[ContentPart] | None | str | Unset, data)

        content = _parse_content(d.pop("content", UNSET))

        function_call = d.pop("function_call", UNSET)

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_reasoning_content(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reasoning_content = _parse_reasoning_content(d.pop("reasoning_content", UNSET))

        def _parse_refusal(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        refusal = _parse_refusal(d.pop("refusal", UNSET))

        def _parse_tool_call_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tool_call_id = _parse_tool_call_id(d.pop("tool_call_id", UNSET))

        def _parse_tool_calls(data: object) -> list[ToolCall] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                tool_calls_type_0 = []
                _tool_calls_type_0 = data
                for tool_calls_type_0_item_data in _tool_calls_type_0:
                    tool_calls_type_0_item = ToolCall.from_dict(
                        tool_calls_type_0_item_data
                    )

                    tool_calls_type_0.append(tool_calls_type_0_item)

                return tool_calls_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[ToolCall] | None | Unset, data)

        tool_calls = _parse_tool_calls(d.pop("tool_calls", UNSET))

        chat_message = cls(
            role=role,
            annotations=annotations,
            audio=audio,
            content=content,
            function_call=function_call,
            name=name,
            reasoning_content=reasoning_content,
            refusal=refusal,
            tool_call_id=tool_call_id,
            tool_calls=tool_calls,
        )

        return chat_message
