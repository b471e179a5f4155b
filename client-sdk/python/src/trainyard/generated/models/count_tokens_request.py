from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.anthropic_message import AnthropicMessage
    from ..models.anthropic_tool import AnthropicTool
    from ..models.block import Block
    from ..models.output_config import OutputConfig
    from ..models.thinking import Thinking
    from ..models.tool_choice import ToolChoice


T = TypeVar("T", bound="CountTokensRequest")


@_attrs_define
class CountTokensRequest:
    """Request body of `messages/count_tokens`. Unknown fields are refused.

    Attributes:
        messages (list[AnthropicMessage]): Same as `messages` of `messages`.
        model (str): Same as `model` of `messages`.
        cache_control (Any | Unset): Accepted, but has no effect.
        output_config (None | OutputConfig | Unset):
        system (list[Block] | None | str | Unset):
        thinking (None | Thinking | Unset):
        tool_choice (None | ToolChoice | Unset):
        tools (list[AnthropicTool] | None | Unset): Same as `tools` of `messages`.
    """

    messages: list[AnthropicMessage]
    model: str
    cache_control: Any | Unset = UNSET
    output_config: None | OutputConfig | Unset = UNSET
    system: list[Block] | None | str | Unset = UNSET
    thinking: None | Thinking | Unset = UNSET
    tool_choice: None | ToolChoice | Unset = UNSET
    tools: list[AnthropicTool] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.output_config import OutputConfig
        from ..models.thinking import Thinking
        from ..models.tool_choice import ToolChoice

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        model = self.model

        cache_control = self.cache_control

        output_config: dict[str, Any] | None | Unset
        if isinstance(self.output_config, Unset):
            output_config = UNSET
        elif isinstance(self.output_config, OutputConfig):
            output_config = self.output_config.to_dict()
        else:
            output_config = self.output_config

        system: list[dict[str, Any]] | None | str | Unset
        if isinstance(self.system, Unset):
            system = UNSET
        elif isinstance(self.system, list):
            system = []
            for componentsschemas_anthropic_content_type_1_item_data in self.system:
                componentsschemas_anthropic_content_type_1_item = (
                    componentsschemas_anthropic_content_type_1_item_data.to_dict()
                )
                system.append(componentsschemas_anthropic_content_type_1_item)

        else:
            system = self.system

        thinking: dict[str, Any] | None | Unset
        if isinstance(self.thinking, Unset):
            thinking = UNSET
        elif isinstance(self.thinking, Thinking):
            thinking = self.thinking.to_dict()
        else:
            thinking = self.thinking

        tool_choice: dict[str, Any] | None | Unset
        if isinstance(self.tool_choice, Unset):
            tool_choice = UNSET
        elif isinstance(self.tool_choice, ToolChoice):
            tool_choice = self.tool_choice.to_dict()
        else:
            tool_choice = self.tool_choice

        tools: list[dict[str, Any]] | None | Unset
        if isinstance(self.tools, Unset):
            tools = UNSET
        elif isinstance(self.tools, list):
            tools = []
            for tools_type_0_item_data in self.tools:
                tools_type_0_item = tools_type_0_item_data.to_dict()
                tools.append(tools_type_0_item)

        else:
            tools = self.tools

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "messages": messages,
                "model": model,
            }
        )
        if cache_control is not UNSET:
            field_dict["cache_control"] = cache_control
        if output_config is not UNSET:
            field_dict["output_config"] = output_config
        if system is not UNSET:
            field_dict["system"] = system
        if thinking is not UNSET:
            field_dict["thinking"] = thinking
        if tool_choice is not UNSET:
            field_dict["tool_choice"] = tool_choice
        if tools is not UNSET:
            field_dict["tools"] = tools

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.anthropic_message import AnthropicMessage
        from ..models.anthropic_tool import AnthropicTool
        from ..models.block import Block
        from ..models.output_config import OutputConfig
        from ..models.thinking import Thinking
        from ..models.tool_choice import ToolChoice

        d = dict(src_dict)
        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = AnthropicMessage.from_dict(messages_item_data)

            messages.append(messages_item)

        model = d.pop("model")

        cache_control = d.pop("cache_control", UNSET)

        def _parse_output_config(data: object) -> None | OutputConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                output_config_type_0 = OutputConfig.from_dict(data)

                return output_config_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OutputConfig | Unset, data)

        output_config = _parse_output_config(d.pop("output_config", UNSET))

        def _parse_system(data: object) -> list[Block] | None | str | Unset:
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

        system = _parse_system(d.pop("system", UNSET))

        def _parse_thinking(data: object) -> None | Thinking | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                thinking_type_0 = Thinking.from_dict(data)

                return thinking_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Thinking | Unset, data)

        thinking = _parse_thinking(d.pop("thinking", UNSET))

        def _parse_tool_choice(data: object) -> None | ToolChoice | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                tool_choice_type_0 = ToolChoice.from_dict(data)

                return tool_choice_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ToolChoice | Unset, data)

        tool_choice = _parse_tool_choice(d.pop("tool_choice", UNSET))

        def _parse_tools(data: object) -> list[AnthropicTool] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                tools_type_0 = []
                _tools_type_0 = data
                for tools_type_0_item_data in _tools_type_0:
                    tools_type_0_item = AnthropicTool.from_dict(tools_type_0_item_data)

                    tools_type_0.append(tools_type_0_item)

                return tools_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[AnthropicTool] | None | Unset, data)

        tools = _parse_tools(d.pop("tools", UNSET))

        count_tokens_request = cls(
            messages=messages,
            model=model,
            cache_control=cache_control,
            output_config=output_config,
            system=system,
            thinking=thinking,
            tool_choice=tool_choice,
            tools=tools,
        )

        return count_tokens_request
