from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.input_item import InputItem
    from ..models.reasoning_config import ReasoningConfig
    from ..models.responses_request_chat_template_kwargs_type_0 import (
        ResponsesRequestChatTemplateKwargsType0,
    )
    from ..models.responses_request_metadata_type_0 import ResponsesRequestMetadataType0
    from ..models.responses_request_tools_type_0_item import (
        ResponsesRequestToolsType0Item,
    )
    from ..models.responses_stream_options import ResponsesStreamOptions
    from ..models.text_config import TextConfig


T = TypeVar("T", bound="ResponsesRequest")


@_attrs_define
class ResponsesRequest:
    """Request body of `responses`. Unknown fields are refused. A known field that is not supported is refused unless it
    has
    no effect.

        Attributes:
            input_ (list[InputItem] | str): The conversation of a request: a text of the user, or a list of items.
            model (str): A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
            background (bool | None | Unset): Refused if true: background responses are not supported.
            chat_template_kwargs (None | ResponsesRequestChatTemplateKwargsType0 | Unset): Further variables for the model's
                chat template. An extension of the API.
            context_management (Any | Unset): Refused: the server does not shorten conversations.
            conversation (Any | Unset): Refused, because conversations are not stored: send the whole conversation.
            include (list[str] | None | Unset): Additions to the response. `reasoning.encrypted_content` has no effect,
                because thoughts are returned in the clear;
                others are refused.
            instructions (None | str | Unset): A system message before the conversation.
            max_output_tokens (int | None | Unset): Maximum number of tokens to sample; by default, up to the context limit.
            max_tool_calls (int | None | Unset): Accepted, but has no effect: it counts calls of tools that the server runs.
            metadata (None | ResponsesRequestMetadataType0 | Unset): Repeated in the response; it has no other effect.
            moderation (Any | Unset): Refused: replies are not moderated.
            parallel_tool_calls (bool | None | Unset): Whether there may be several calls; false requires a `tool_choice`
                that requires a call, if there are tools.
            previous_response_id (None | str | Unset): Refused, because responses are not stored: send the whole
                conversation.
            prompt (Any | Unset): Refused: prompts are not stored.
            prompt_cache_key (None | str | Unset): Accepted, but has no effect.
            prompt_cache_options (Any | Unset): Accepted, but has no effect: prompts are always cached.
            prompt_cache_retention (None | str | Unset): Accepted, but has no effect: prompts are always cached.
            reasoning (None | ReasoningConfig | Unset):
            return_token_ids (bool | Unset): Whether to return the ids of the prompt's tokens and of those that were
                sampled, so that a trainer need not encode
                texts again. An extension of the API.
            safety_identifier (None | str | Unset): Accepted, but has no effect.
            seed (int | None | Unset): Seed that makes sampling repeatable. An extension of the API.
            service_tier (None | str | Unset): Refused unless it is `auto` or `default`.
            store (bool | None | Unset): Accepted with any value: responses are not stored. Agent sessions record turns in
                any case.
            stream (bool | Unset): Whether to respond with server-sent events.
            stream_options (None | ResponsesStreamOptions | Unset):
            temperature (float | None | Unset): Divisor of the logits, 1 by default; 0 decodes greedily.
            text (None | TextConfig | Unset):
            tool_choice (Any | Unset): Whether the model calls tools: `auto` (the default), `none`, `required`, or the one
                that it must call:
                `{"type": "function", "name": …}`. The arguments of required calls follow the tool's schema.
            tools (list[ResponsesRequestToolsType0Item] | None | Unset): Functions that the model may call: `{"type":
                "function", "name": …, "parameters": …}`. Other types are refused.
            top_k (int | None | Unset): Samples only from this many most likely tokens; -1 and 0 turn this off. An extension
                of the API.
            top_logprobs (int | None | Unset): Refused unless it is 0: responses have no log-probabilities.
            top_p (float | None | Unset): Samples only from the smallest set of tokens whose total probability reaches this
                value; 1 (the default) turns
                this off.
            truncation (None | str | Unset): Refused unless it is `disabled`: the server does not shorten conversations.
            user (None | str | Unset): Accepted, but has no effect.
    """

    input_: list[InputItem] | str
    model: str
    background: bool | None | Unset = UNSET
    chat_template_kwargs: None | ResponsesRequestChatTemplateKwargsType0 | Unset = UNSET
    context_management: Any | Unset = UNSET
    conversation: Any | Unset = UNSET
    include: list[str] | None | Unset = UNSET
    instructions: None | str | Unset = UNSET
    max_output_tokens: int | None | Unset = UNSET
    max_tool_calls: int | None | Unset = UNSET
    metadata: None | ResponsesRequestMetadataType0 | Unset = UNSET
    moderation: Any | Unset = UNSET
    parallel_tool_calls: bool | None | Unset = UNSET
    previous_response_id: None | str | Unset = UNSET
    prompt: Any | Unset = UNSET
    prompt_cache_key: None | str | Unset = UNSET
    prompt_cache_options: Any | Unset = UNSET
    prompt_cache_retention: None | str | Unset = UNSET
    reasoning: None | ReasoningConfig | Unset = UNSET
    return_token_ids: bool | Unset = UNSET
    safety_identifier: None | str | Unset = UNSET
    seed: int | None | Unset = UNSET
    service_tier: None | str | Unset = UNSET
    store: bool | None | Unset = UNSET
    stream: bool | Unset = UNSET
    stream_options: None | ResponsesStreamOptions | Unset = UNSET
    temperature: float | None | Unset = UNSET
    text: None | TextConfig | Unset = UNSET
    tool_choice: Any | Unset = UNSET
    tools: list[ResponsesRequestToolsType0Item] | None | Unset = UNSET
    top_k: int | None | Unset = UNSET
    top_logprobs: int | None | Unset = UNSET
    top_p: float | None | Unset = UNSET
    truncation: None | str | Unset = UNSET
    user: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.reasoning_config import ReasoningConfig
        from ..models.responses_request_chat_template_kwargs_type_0 import (
            ResponsesRequestChatTemplateKwargsType0,
        )
        from ..models.responses_request_metadata_type_0 import (
            ResponsesRequestMetadataType0,
        )
        from ..models.responses_stream_options import ResponsesStreamOptions
        from ..models.text_config import TextConfig

        input_: list[dict[str, Any]] | str
        if isinstance(self.input_, list):
            input_ = []
            for componentsschemas_responses_input_type_1_item_data in self.input_:
                componentsschemas_responses_input_type_1_item = (
                    componentsschemas_responses_input_type_1_item_data.to_dict()
                )
                input_.append(componentsschemas_responses_input_type_1_item)

        else:
            input_ = self.input_

        model = self.model

        background: bool | None | Unset
        if isinstance(self.background, Unset):
            background = UNSET
        else:
            background = self.background

        chat_template_kwargs: dict[str, Any] | None | Unset
        if isinstance(self.chat_template_kwargs, Unset):
            chat_template_kwargs = UNSET
        elif isinstance(
            self.chat_template_kwargs, ResponsesRequestChatTemplateKwargsType0
        ):
            chat_template_kwargs = self.chat_template_kwargs.to_dict()
        else:
            chat_template_kwargs = self.chat_template_kwargs

        context_management = self.context_management

        conversation = self.conversation

        include: list[str] | None | Unset
        if isinstance(self.include, Unset):
            include = UNSET
        elif isinstance(self.include, list):
            include = self.include

        else:
            include = self.include

        instructions: None | str | Unset
        if isinstance(self.instructions, Unset):
            instructions = UNSET
        else:
            instructions = self.instructions

        max_output_tokens: int | None | Unset
        if isinstance(self.max_output_tokens, Unset):
            max_output_tokens = UNSET
        else:
            max_output_tokens = self.max_output_tokens

        max_tool_calls: int | None | Unset
        if isinstance(self.max_tool_calls, Unset):
            max_tool_calls = UNSET
        else:
            max_tool_calls = self.max_tool_calls

        metadata: dict[str, Any] | None | Unset
        if isinstance(self.metadata, Unset):
            metadata = UNSET
        elif isinstance(self.metadata, ResponsesRequestMetadataType0):
            metadata = self.metadata.to_dict()
        else:
            metadata = self.metadata

        moderation = self.moderation

        parallel_tool_calls: bool | None | Unset
        if isinstance(self.parallel_tool_calls, Unset):
            parallel_tool_calls = UNSET
        else:
            parallel_tool_calls = self.parallel_tool_calls

        previous_response_id: None | str | Unset
        if isinstance(self.previous_response_id, Unset):
            previous_response_id = UNSET
        else:
            previous_response_id = self.previous_response_id

        prompt = self.prompt

        prompt_cache_key: None | str | Unset
        if isinstance(self.prompt_cache_key, Unset):
            prompt_cache_key = UNSET
        else:
            prompt_cache_key = self.prompt_cache_key

        prompt_cache_options = self.prompt_cache_options

        prompt_cache_retention: None | str | Unset
        if isinstance(self.prompt_cache_retention, Unset):
            prompt_cache_retention = UNSET
        else:
            prompt_cache_retention = self.prompt_cache_retention

        reasoning: dict[str, Any] | None | Unset
        if isinstance(self.reasoning, Unset):
            reasoning = UNSET
        elif isinstance(self.reasoning, ReasoningConfig):
            reasoning = self.reasoning.to_dict()
        else:
            reasoning = self.reasoning

        return_token_ids = self.return_token_ids

        safety_identifier: None | str | Unset
        if isinstance(self.safety_identifier, Unset):
            safety_identifier = UNSET
        else:
            safety_identifier = self.safety_identifier

        seed: int | None | Unset
        if isinstance(self.seed, Unset):
            seed = UNSET
        else:
            seed = self.seed

        service_tier: None | str | Unset
        if isinstance(self.service_tier, Unset):
            service_tier = UNSET
        else:
            service_tier = self.service_tier

        store: bool | None | Unset
        if isinstance(self.store, Unset):
            store = UNSET
        else:
            store = self.store

        stream = self.stream

        stream_options: dict[str, Any] | None | Unset
        if isinstance(self.stream_options, Unset):
            stream_options = UNSET
        elif isinstance(self.stream_options, ResponsesStreamOptions):
            stream_options = self.stream_options.to_dict()
        else:
            stream_options = self.stream_options

        temperature: float | None | Unset
        if isinstance(self.temperature, Unset):
            temperature = UNSET
        else:
            temperature = self.temperature

        text: dict[str, Any] | None | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        elif isinstance(self.text, TextConfig):
            text = self.text.to_dict()
        else:
            text = self.text

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

        top_logprobs: int | None | Unset
        if isinstance(self.top_logprobs, Unset):
            top_logprobs = UNSET
        else:
            top_logprobs = self.top_logprobs

        top_p: float | None | Unset
        if isinstance(self.top_p, Unset):
            top_p = UNSET
        else:
            top_p = self.top_p

        truncation: None | str | Unset
        if isinstance(self.truncation, Unset):
            truncation = UNSET
        else:
            truncation = self.truncation

        user: None | str | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        else:
            user = self.user

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "input": input_,
                "model": model,
            }
        )
        if background is not UNSET:
            field_dict["background"] = background
        if chat_template_kwargs is not UNSET:
            field_dict["chat_template_kwargs"] = chat_template_kwargs
        if context_management is not UNSET:
            field_dict["context_management"] = context_management
        if conversation is not UNSET:
            field_dict["conversation"] = conversation
        if include is not UNSET:
            field_dict["include"] = include
        if instructions is not UNSET:
            field_dict["instructions"] = instructions
        if max_output_tokens is not UNSET:
            field_dict["max_output_tokens"] = max_output_tokens
        if max_tool_calls is not UNSET:
            field_dict["max_tool_calls"] = max_tool_calls
        if metadata is not UNSET:
            field_dict["metadata"] = metadata
        if moderation is not UNSET:
            field_dict["moderation"] = moderation
        if parallel_tool_calls is not UNSET:
            field_dict["parallel_tool_calls"] = parallel_tool_calls
        if previous_response_id is not UNSET:
            field_dict["previous_response_id"] = previous_response_id
        if prompt is not UNSET:
            field_dict["prompt"] = prompt
        if prompt_cache_key is not UNSET:
            field_dict["prompt_cache_key"] = prompt_cache_key
        if prompt_cache_options is not UNSET:
            field_dict["prompt_cache_options"] = prompt_cache_options
        if prompt_cache_retention is not UNSET:
            field_dict["prompt_cache_retention"] = prompt_cache_retention
        if reasoning is not UNSET:
            field_dict["reasoning"] = reasoning
        if return_token_ids is not UNSET:
            field_dict["return_token_ids"] = return_token_ids
        if safety_identifier is not UNSET:
            field_dict["safety_identifier"] = safety_identifier
        if seed is not UNSET:
            field_dict["seed"] = seed
        if service_tier is not UNSET:
            field_dict["service_tier"] = service_tier
        if store is not UNSET:
            field_dict["store"] = store
        if stream is not UNSET:
            field_dict["stream"] = stream
        if stream_options is not UNSET:
            field_dict["stream_options"] = stream_options
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
        if text is not UNSET:
            field_dict["text"] = text
        if tool_choice is not UNSET:
            field_dict["tool_choice"] = tool_choice
        if tools is not UNSET:
            field_dict["tools"] = tools
        if top_k is not UNSET:
            field_dict["top_k"] = top_k
        if top_logprobs is not UNSET:
            field_dict["top_logprobs"] = top_logprobs
        if top_p is not UNSET:
            field_dict["top_p"] = top_p
        if truncation is not UNSET:
            field_dict["truncation"] = truncation
        if user is not UNSET:
            field_dict["user"] = user

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.input_item import InputItem
        from ..models.reasoning_config import ReasoningConfig
        from ..models.responses_request_chat_template_kwargs_type_0 import (
            ResponsesRequestChatTemplateKwargsType0,
        )
        from ..models.responses_request_metadata_type_0 import (
            ResponsesRequestMetadataType0,
        )
        from ..models.responses_request_tools_type_0_item import (
            ResponsesRequestToolsType0Item,
        )
        from ..models.responses_stream_options import ResponsesStreamOptions
        from ..models.text_config import TextConfig

        d = dict(src_dict)

        def _parse_input_(data: object) -> list[InputItem] | str:
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_responses_input_type_1 = []
                _componentsschemas_responses_input_type_1 = data
                for (
                    componentsschemas_responses_input_type_1_item_data
                ) in _componentsschemas_responses_input_type_1:
                    componentsschemas_responses_input_type_1_item = InputItem.from_dict(
                        componentsschemas_responses_input_type_1_item_data
                    )

                    componentsschemas_responses_input_type_1.append(
                        componentsschemas_responses_input_type_1_item
                    )

                return componentsschemas_responses_input_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[InputItem] | str, data)

        input_ = _parse_input_(d.pop("input"))

        model = d.pop("model")

        def _parse_background(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        background = _parse_background(d.pop("background", UNSET))

        def _parse_chat_template_kwargs(
            data: object,
        ) -> None | ResponsesRequestChatTemplateKwargsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                chat_template_kwargs_type_0 = (
                    ResponsesRequestChatTemplateKwargsType0.from_dict(data)
                )

                return chat_template_kwargs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ResponsesRequestChatTemplateKwargsType0 | Unset, data)

        chat_template_kwargs = _parse_chat_template_kwargs(
            d.pop("chat_template_kwargs", UNSET)
        )

        context_management = d.pop("context_management", UNSET)

        conversation = d.pop("conversation", UNSET)

        def _parse_include(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                include_type_0 = cast(list[str], data)

                return include_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        include = _parse_include(d.pop("include", UNSET))

        def _parse_instructions(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        instructions = _parse_instructions(d.pop("instructions", UNSET))

        def _parse_max_output_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_output_tokens = _parse_max_output_tokens(d.pop("max_output_tokens", UNSET))

        def _parse_max_tool_calls(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_tool_calls = _parse_max_tool_calls(d.pop("max_tool_calls", UNSET))

        def _parse_metadata(
            data: object,
        ) -> None | ResponsesRequestMetadataType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                metadata_type_0 = ResponsesRequestMetadataType0.from_dict(data)

                return metadata_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ResponsesRequestMetadataType0 | Unset, data)

        metadata = _parse_metadata(d.pop("metadata", UNSET))

        moderation = d.pop("moderation", UNSET)

        def _parse_parallel_tool_calls(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        parallel_tool_calls = _parse_parallel_tool_calls(
            d.pop("parallel_tool_calls", UNSET)
        )

        def _parse_previous_response_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        previous_response_id = _parse_previous_response_id(
            d.pop("previous_response_id", UNSET)
        )

        prompt = d.pop("prompt", UNSET)

        def _parse_prompt_cache_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        prompt_cache_key = _parse_prompt_cache_key(d.pop("prompt_cache_key", UNSET))

        prompt_cache_options = d.pop("prompt_cache_options", UNSET)

        def _parse_prompt_cache_retention(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        prompt_cache_retention = _parse_prompt_cache_retention(
            d.pop("prompt_cache_retention", UNSET)
        )

        def _parse_reasoning(data: object) -> None | ReasoningConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                reasoning_type_0 = ReasoningConfig.from_dict(data)

                return reasoning_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ReasoningConfig | Unset, data)

        reasoning = _parse_reasoning(d.pop("reasoning", UNSET))

        return_token_ids = d.pop("return_token_ids", UNSET)

        def _parse_safety_identifier(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        safety_identifier = _parse_safety_identifier(d.pop("safety_identifier", UNSET))

        def _parse_seed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seed = _parse_seed(d.pop("seed", UNSET))

        def _parse_service_tier(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        service_tier = _parse_service_tier(d.pop("service_tier", UNSET))

        def _parse_store(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        store = _parse_store(d.pop("store", UNSET))

        stream = d.pop("stream", UNSET)

        def _parse_stream_options(
            data: object,
        ) -> None | ResponsesStreamOptions | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                stream_options_type_0 = ResponsesStreamOptions.from_dict(data)

                return stream_options_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ResponsesStreamOptions | Unset, data)

        stream_options = _parse_stream_options(d.pop("stream_options", UNSET))

        def _parse_temperature(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        temperature = _parse_temperature(d.pop("temperature", UNSET))

        def _parse_text(data: object) -> None | TextConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                text_type_0 = TextConfig.from_dict(data)

                return text_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TextConfig | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        tool_choice = d.pop("tool_choice", UNSET)

        def _parse_tools(
            data: object,
        ) -> list[ResponsesRequestToolsType0Item] | None | Unset:
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
                    tools_type_0_item = ResponsesRequestToolsType0Item.from_dict(
                        tools_type_0_item_data
                    )

                    tools_type_0.append(tools_type_0_item)

                return tools_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[ResponsesRequestToolsType0Item] | None | Unset, data)

        tools = _parse_tools(d.pop("tools", UNSET))

        def _parse_top_k(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        top_k = _parse_top_k(d.pop("top_k", UNSET))

        def _parse_top_logprobs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        top_logprobs = _parse_top_logprobs(d.pop("top_logprobs", UNSET))

        def _parse_top_p(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        top_p = _parse_top_p(d.pop("top_p", UNSET))

        def _parse_truncation(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        truncation = _parse_truncation(d.pop("truncation", UNSET))

        def _parse_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user = _parse_user(d.pop("user", UNSET))

        responses_request = cls(
            input_=input_,
            model=model,
            background=background,
            chat_template_kwargs=chat_template_kwargs,
            context_management=context_management,
            conversation=conversation,
            include=include,
            instructions=instructions,
            max_output_tokens=max_output_tokens,
            max_tool_calls=max_tool_calls,
            metadata=metadata,
            moderation=moderation,
            parallel_tool_calls=parallel_tool_calls,
            previous_response_id=previous_response_id,
            prompt=prompt,
            prompt_cache_key=prompt_cache_key,
            prompt_cache_options=prompt_cache_options,
            prompt_cache_retention=prompt_cache_retention,
            reasoning=reasoning,
            return_token_ids=return_token_ids,
            safety_identifier=safety_identifier,
            seed=seed,
            service_tier=service_tier,
            store=store,
            stream=stream,
            stream_options=stream_options,
            temperature=temperature,
            text=text,
            tool_choice=tool_choice,
            tools=tools,
            top_k=top_k,
            top_logprobs=top_logprobs,
            top_p=top_p,
            truncation=truncation,
            user=user,
        )

        return responses_request
