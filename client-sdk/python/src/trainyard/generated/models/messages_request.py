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


T = TypeVar("T", bound="MessagesRequest")


@_attrs_define
class MessagesRequest:
    """Request body of `messages`. Unknown fields are refused.

    Attributes:
        max_tokens (int): Maximum number of tokens to sample.
        messages (list[AnthropicMessage]): The conversation so far. If the last message is the assistant's, the reply
            continues it.
        model (str): A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
        cache_control (Any | Unset): Accepted, but ignored: prompts are always cached.
        container (Any | Unset): Refused: containers are not supported.
        context_management (Any | Unset): Refused: editing of contexts is not supported.
        mcp_servers (list[Any] | None | Unset): Refused unless it is empty.
        metadata (Any | Unset): Accepted, but has no effect.
        output_config (None | OutputConfig | Unset):
        service_tier (None | str | Unset): Refused unless it is `auto` or `standard_only`.
        stop_sequences (list[str] | None | Unset): Texts that end the reply. The one that is found is not part of the
            reply.
        stream (bool | Unset): Whether to respond with server-sent events.
        system (list[Block] | None | str | Unset):
        temperature (float | None | Unset): Divisor of the logits, 1 by default; 0 decodes greedily.
        thinking (None | Thinking | Unset):
        tool_choice (None | ToolChoice | Unset):
        tools (list[AnthropicTool] | None | Unset): Tools that the model may call.
        top_k (int | None | Unset): Samples only from this many most likely tokens; -1 and 0 turn this off.
        top_p (float | None | Unset): Samples only from the smallest set of tokens whose total probability reaches this
            value; 1 (the default) turns
            this off.
    """

    max_tokens: int
    messages: list[AnthropicMessage]
    model: str
    cache_control: Any | Unset = UNSET
    container: Any | Unset = UNSET
    context_management: Any | Unset = UNSET
    mcp_servers: list[Any] | None | Unset = UNSET
    metadata: Any | Unset = UNSET
    output_config: None | OutputConfig | Unset = UNSET
    service_tier: None | str | Unset = UNSET
    stop_sequences: list[str] | None | Unset = UNSET
    stream: bool | Unset = UNSET
    system: list[Block] | None | str | Unset = UNSET
    temperature: float | None | Unset = UNSET
    thinking: None | Thinking | Unset = UNSET
    tool_choice: None | ToolChoice | Unset = UNSET
    tools: list[AnthropicTool] | None | Unset = UNSET
    top_k: int | None | Unset = UNSET
    top_p: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.output_config import OutputConfig
        from ..models.thinking import Thinking
        from ..models.tool_choice import ToolChoice

        max_tokens = self.max_tokens

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        model = self.model

        cache_control = self.cache_control

        container = self.container

        context_management = self.context_management

        mcp_servers: list[Any] | None | Unset
        if isinstance(self.mcp_servers, Unset):
            mcp_servers = UNSET
        elif isinstance(self.mcp_servers, list):
            mcp_servers = self.mcp_servers

        else:
            mcp_servers = self.mcp_servers

        metadata = self.metadata

        output_config: dict[str, Any] | None | Unset
        if isinstance(self.output_config, Unset):
            output_config = UNSET
        elif isinstance(self.output_config, OutputConfig):
            output_config = self.output_config.to_dict()
        else:
            output_config = self.output_config

        service_tier: None | str | Unset
        if isinstance(self.service_tier, Unset):
            service_tier = UNSET
        else:
            service_tier = self.service_tier

        stop_sequences: list[str] | None | Unset
        if isinstance(self.stop_sequences, Unset):
            stop_sequences = UNSET
        elif isinstance(self.stop_sequences, list):
            stop_sequences = self.stop_sequences

        else:
            stop_sequences = self.stop_sequences

        stream = self.stream

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

        temperature: float | None | Unset
        if isinstance(self.temperature, Unset):
            temperature = UNSET
        else:
            temperature = self.temperature

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

        top_k: int | None | Unset
        if isinstance(self.top_k, Unset):
            top_k = UNSET
        else:
            top_k = self.top_k

        top_p: float | None | Unset
        if isinstance(self.top_p, Unset):
            top_p = UNSET
        else:
            top_p = self.top_p

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "max_tokens": max_tokens,
                "messages": messages,
                "model": model,
            }
        )
        if cache_control is not UNSET:
            field_dict["cache_control"] = cache_control
        if container is not UNSET:
            field_dict["container"] = container
        if context_management is not UNSET:
            field_dict["context_management"] = context_management
        if mcp_servers is not UNSET:
            field_dict["mcp_servers"] = mcp_servers
        if metadata is not UNSET:
            field_dict["metadata"] = metadata
        if output_config is not UNSET:
            field_dict["output_config"] = output_config
        if service_tier is not UNSET:
            field_dict["service_tier"] = service_tier
        if stop_sequences is not UNSET:
            field_dict["stop_sequences"] = stop_sequences
        if stream is not UNSET:
            field_dict["stream"] = stream
        if system is not UNSET:
            field_dict["system"] = system
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
        if thinking is not UNSET:
            field_dict["thinking"] = thinking
        if tool_choice is not UNSET:
            field_dict["tool_choice"] = tool_choice
        if tools is not UNSET:
            field_dict["tools"] = tools
        if top_k is not UNSET:
            field_dict["top_k"] = top_k
        if top_p is not UNSET:
            field_dict["top_p"] = top_p

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
        max_tokens = d.pop("max_tokens")

        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = AnthropicMessage.from_dict(messages_item_data)

            messages.append(messages_item)

        model = d.pop("model")

        cache_control = d.pop("cache_control", UNSET)

        container = d.pop("container", UNSET)

        context_management = d.pop("context_management", UNSET)

        def _parse_mcp_servers(data: object) -> list[Any] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                mcp_servers_type_0 = cast(list[Any], data)

                return mcp_servers_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Any] | None | Unset, data)

        mcp_servers = _parse_mcp_servers(d.pop("mcp_servers", UNSET))

        metadata = d.pop("metadata", UNSET)

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

        def _parse_service_tier(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        service_tier = _parse_service_tier(d.pop("service_tier", UNSET))

        def _parse_stop_sequences(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                stop_sequences_type_0 = cast(list[str], data)

                return stop_sequences_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        stop_sequences = _parse_stop_sequences(d.pop("stop_sequences", UNSET))

        stream = d.pop("stream", UNSET)

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

        def _parse_temperature(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        temperature = _parse_temperature(d.pop("temperature", UNSET))

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

        def _parse_top_k(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        top_k = _parse_top_k(d.pop("top_k", UNSET))

        def _parse_top_p(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        top_p = _parse_top_p(d.pop("top_p", UNSET))

        messages_request = cls(
            max_tokens=max_tokens,
            messages=messages,
            model=model,
            cache_control=cache_control,
            container=container,
            context_management=context_management,
            mcp_servers=mcp_servers,
            metadata=metadata,
            output_config=output_config,
            service_tier=service_tier,
            stop_sequences=stop_sequences,
            stream=stream,
            system=system,
            temperature=temperature,
            thinking=thinking,
            tool_choice=tool_choice,
            tools=tools,
            top_k=top_k,
            top_p=top_p,
        )

        return messages_request
