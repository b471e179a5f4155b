from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chat_message import ChatMessage
    from ..models.chat_request_chat_template_kwargs_type_0 import (
        ChatRequestChatTemplateKwargsType0,
    )
    from ..models.chat_request_logit_bias_type_0 import ChatRequestLogitBiasType0
    from ..models.chat_request_tools_type_0_item import ChatRequestToolsType0Item
    from ..models.response_format import ResponseFormat
    from ..models.stream_options import StreamOptions


T = TypeVar("T", bound="ChatRequest")


@_attrs_define
class ChatRequest:
    """Request body of `chat/completions`. Unknown fields are refused. A known field that is not supported is refused
    unless it has no effect.

        Attributes:
            messages (list[ChatMessage]): The conversation so far.
            model (str): A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
            audio (Any | Unset): Refused: audio is not supported.
            chat_template_kwargs (ChatRequestChatTemplateKwargsType0 | None | Unset): Further variables for the model's chat
                template.
            frequency_penalty (float | None | Unset): Subtracted from a token's logit for each time that the token occurs in
                the completion.
            function_call (Any | Unset): Refused: use `tool_choice` instead.
            functions (Any | Unset): Refused: use `tools` instead.
            logit_bias (ChatRequestLogitBiasType0 | None | Unset): Values between -100 and 100 that are added to the logits
                of tokens, by token id.
            logprobs (bool | Unset): Whether to return the log-probabilities of the tokens.
            max_completion_tokens (int | None | Unset): Newer name of `max_tokens`.
            max_tokens (int | None | Unset): Maximum number of tokens to sample; by default, up to the context limit.
            metadata (Any | Unset): Accepted, but has no effect.
            min_p (float | None | Unset): Excludes tokens that are less likely than this fraction of the most likely one; 0
                turns this off.
            modalities (list[str] | None | Unset): Refused unless it is `["text"]`.
            n (int | None | Unset): Number of replies, 1 by default.
            parallel_tool_calls (bool | None | Unset): Whether there may be several calls; false requires a `tool_choice`
                that requires a call, if there are tools.
            prediction (Any | Unset): Refused: predicted outputs are not supported.
            presence_penalty (float | None | Unset): Subtracted from a token's logit if the token occurs in the completion.
            prompt_cache_key (None | str | Unset): Accepted, but has no effect.
            reasoning_effort (Any | Unset): A preset such as `low`, or a number, if the model's chat template supports it.
            repetition_penalty (float | None | Unset): Divides positive logits, and multiplies negative ones, of tokens in
                the prompt or the completion; 1 turns this
                off.
            response_format (None | ResponseFormat | Unset):
            return_token_ids (bool | Unset): Whether to return the ids of the prompt's tokens and of those that were
                sampled, so that a trainer need not encode
                texts again.
            safety_identifier (None | str | Unset): Accepted, but has no effect.
            seed (int | None | Unset): Seed that makes sampling repeatable.
            service_tier (None | str | Unset): Refused unless it is `auto` or `default`.
            stop (list[str] | None | str | Unset):
            store (bool | None | Unset): Refused if true: replies are not stored.
            stream (bool | Unset): Whether to respond with server-sent events.
            stream_options (None | StreamOptions | Unset):
            temperature (float | None | Unset): Divisor of the logits, 1 by default; 0 decodes greedily.
            tool_choice (Any | Unset): Whether the model calls tools: `auto` (the default), `none`, `required`, or the one
                that it must call:
                `{"type": "function", "function": {"name": …}}`. The arguments of required calls follow the tool's schema.
            tools (list[ChatRequestToolsType0Item] | None | Unset): Functions that the model may call: `{"type": "function",
                "function": {"name": …, "parameters": …}}`.
            top_k (int | None | Unset): Samples only from this many most likely tokens; -1 and 0 turn this off.
            top_logprobs (int | None | Unset): Number of candidates to return per token.
            top_p (float | None | Unset): Samples only from the smallest set of tokens whose total probability reaches this
                value; 1 (the default) turns
                this off.
            user (None | str | Unset): Accepted, but has no effect.
            verbosity (None | str | Unset): Refused unless it is `medium`.
            web_search_options (Any | Unset): Refused: web search is not supported.
    """

    messages: list[ChatMessage]
    model: str
    audio: Any | Unset = UNSET
    chat_template_kwargs: ChatRequestChatTemplateKwargsType0 | None | Unset = UNSET
    frequency_penalty: float | None | Unset = UNSET
    function_call: Any | Unset = UNSET
    functions: Any | Unset = UNSET
    logit_bias: ChatRequestLogitBiasType0 | None | Unset = UNSET
    logprobs: bool | Unset = UNSET
    max_completion_tokens: int | None | Unset = UNSET
    max_tokens: int | None | Unset = UNSET
    metadata: Any | Unset = UNSET
    min_p: float | None | Unset = UNSET
    modalities: list[str] | None | Unset = UNSET
    n: int | None | Unset = UNSET
    parallel_tool_calls: bool | None | Unset = UNSET
    prediction: Any | Unset = UNSET
    presence_penalty: float | None | Unset = UNSET
    prompt_cache_key: None | str | Unset = UNSET
    reasoning_effort: Any | Unset = UNSET
    repetition_penalty: float | None | Unset = UNSET
    response_format: None | ResponseFormat | Unset = UNSET
    return_token_ids: bool | Unset = UNSET
    safety_identifier: None | str | Unset = UNSET
    seed: int | None | Unset = UNSET
    service_tier: None | str | Unset = UNSET
    stop: list[str] | None | str | Unset = UNSET
    store: bool | None | Unset = UNSET
    stream: bool | Unset = UNSET
    stream_options: None | StreamOptions | Unset = UNSET
    temperature: float | None | Unset = UNSET
    tool_choice: Any | Unset = UNSET
    tools: list[ChatRequestToolsType0Item] | None | Unset = UNSET
    top_k: int | None | Unset = UNSET
    top_logprobs: int | None | Unset = UNSET
    top_p: float | None | Unset = UNSET
    user: None | str | Unset = UNSET
    verbosity: None | str | Unset = UNSET
    web_search_options: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.chat_request_chat_template_kwargs_type_0 import (
            ChatRequestChatTemplateKwargsType0,
        )
        from ..models.chat_request_logit_bias_type_0 import ChatRequestLogitBiasType0
        from ..models.response_format import ResponseFormat
        from ..models.stream_options import StreamOptions

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        model = self.model

        audio = self.audio

        chat_template_kwargs: dict[str, Any] | None | Unset
        if isinstance(self.chat_template_kwargs, Unset):
            chat_template_kwargs = UNSET
        elif isinstance(self.chat_template_kwargs, ChatRequestChatTemplateKwargsType0):
            chat_template_kwargs = self.chat_template_kwargs.to_dict()
        else:
            chat_template_kwargs = self.chat_template_kwargs

        frequency_penalty: float | None | Unset
        if isinstance(self.frequency_penalty, Unset):
            frequency_penalty = UNSET
        else:
            frequency_penalty = self.frequency_penalty

        function_call = self.function_call

        functions = self.functions

        logit_bias: dict[str, Any] | None | Unset
        if isinstance(self.logit_bias, Unset):
            logit_bias = UNSET
        elif isinstance(self.logit_bias, ChatRequestLogitBiasType0):
            logit_bias = self.logit_bias.to_dict()
        else:
            logit_bias = self.logit_bias

        logprobs = self.logprobs

        max_completion_tokens: int | None | Unset
        if isinstance(self.max_completion_tokens, Unset):
            max_completion_tokens = UNSET
        else:
            max_completion_tokens = self.max_completion_tokens

        max_tokens: int | None | Unset
        if isinstance(self.max_tokens, Unset):
            max_tokens = UNSET
        else:
            max_tokens = self.max_tokens

        metadata = self.metadata

        min_p: float | None | Unset
        if isinstance(self.min_p, Unset):
            min_p = UNSET
        else:
            min_p = self.min_p

        modalities: list[str] | None | Unset
        if isinstance(self.modalities, Unset):
            modalities = UNSET
        elif isinstance(self.modalities, list):
            modalities = self.modalities

        else:
            modalities = self.modalities

        n: int | None | Unset
        if isinstance(self.n, Unset):
            n = UNSET
        else:
            n = self.n

        parallel_tool_calls: bool | None | Unset
        if isinstance(self.parallel_tool_calls, Unset):
            parallel_tool_calls = UNSET
        else:
            parallel_tool_calls = self.parallel_tool_calls

        prediction = self.prediction

        presence_penalty: float | None | Unset
        if isinstance(self.presence_penalty, Unset):
            presence_penalty = UNSET
        else:
            presence_penalty = self.presence_penalty

        prompt_cache_key: None | str | Unset
        if isinstance(self.prompt_cache_key, Unset):
            prompt_cache_key = UNSET
        else:
            prompt_cache_key = self.prompt_cache_key

        reasoning_effort = self.reasoning_effort

        repetition_penalty: float | None | Unset
        if isinstance(self.repetition_penalty, Unset):
            repetition_penalty = UNSET
        else:
            repetition_penalty = self.repetition_penalty

        response_format: dict[str, Any] | None | Unset
        if isinstance(self.response_format, Unset):
            response_format = UNSET
        elif isinstance(self.response_format, ResponseFormat):
            response_format = self.response_format.to_dict()
        else:
            response_format = self.response_format

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

        stop: list[str] | None | str | Unset
        if isinstance(self.stop, Unset):
            stop = UNSET
        elif isinstance(self.stop, list):
            stop = self.stop

        else:
            stop = self.stop

        store: bool | None | Unset
        if isinstance(self.store, Unset):
            store = UNSET
        else:
            store = self.store

        stream = self.stream

        stream_options: dict[str, Any] | None | Unset
        if isinstance(self.stream_options, Unset):
            stream_options = UNSET
        elif isinstance(self.stream_options, StreamOptions):
            stream_options = self.stream_options.to_dict()
        else:
            stream_options = self.stream_options

        temperature: float | None | Unset
        if isinstance(self.temperature, Unset):
            temperature = UNSET
        else:
            temperature = self.temperature

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

        user: None | str | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        else:
            user = self.user

        verbosity: None | str | Unset
        if isinstance(self.verbosity, Unset):
            verbosity = UNSET
        else:
            verbosity = self.verbosity

        web_search_options = self.web_search_options

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "messages": messages,
                "model": model,
            }
        )
        if audio is not UNSET:
            field_dict["audio"] = audio
        if chat_template_kwargs is not UNSET:
            field_dict["chat_template_kwargs"] = chat_template_kwargs
        if frequency_penalty is not UNSET:
            field_dict["frequency_penalty"] = frequency_penalty
        if function_call is not UNSET:
            field_dict["function_call"] = function_call
        if functions is not UNSET:
            field_dict["functions"] = functions
        if logit_bias is not UNSET:
            field_dict["logit_bias"] = logit_bias
        if logprobs is not UNSET:
            field_dict["logprobs"] = logprobs
        if max_completion_tokens is not UNSET:
            field_dict["max_completion_tokens"] = max_completion_tokens
        if max_tokens is not UNSET:
            field_dict["max_tokens"] = max_tokens
        if metadata is not UNSET:
            field_dict["metadata"] = metadata
        if min_p is not UNSET:
            field_dict["min_p"] = min_p
        if modalities is not UNSET:
            field_dict["modalities"] = modalities
        if n is not UNSET:
            field_dict["n"] = n
        if parallel_tool_calls is not UNSET:
            field_dict["parallel_tool_calls"] = parallel_tool_calls
        if prediction is not UNSET:
            field_dict["prediction"] = prediction
        if presence_penalty is not UNSET:
            field_dict["presence_penalty"] = presence_penalty
        if prompt_cache_key is not UNSET:
            field_dict["prompt_cache_key"] = prompt_cache_key
        if reasoning_effort is not UNSET:
            field_dict["reasoning_effort"] = reasoning_effort
        if repetition_penalty is not UNSET:
            field_dict["repetition_penalty"] = repetition_penalty
        if response_format is not UNSET:
            field_dict["response_format"] = response_format
        if return_token_ids is not UNSET:
            field_dict["return_token_ids"] = return_token_ids
        if safety_identifier is not UNSET:
            field_dict["safety_identifier"] = safety_identifier
        if seed is not UNSET:
            field_dict["seed"] = seed
        if service_tier is not UNSET:
            field_dict["service_tier"] = service_tier
        if stop is not UNSET:
            field_dict["stop"] = stop
        if store is not UNSET:
            field_dict["store"] = store
        if stream is not UNSET:
            field_dict["stream"] = stream
        if stream_options is not UNSET:
            field_dict["stream_options"] = stream_options
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
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
        if user is not UNSET:
            field_dict["user"] = user
        if verbosity is not UNSET:
            field_dict["verbosity"] = verbosity
        if web_search_options is not UNSET:
            field_dict["web_search_options"] = web_search_options

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.chat_message import ChatMessage
        from ..models.chat_request_chat_template_kwargs_type_0 import (
            ChatRequestChatTemplateKwargsType0,
        )
        from ..models.chat_request_logit_bias_type_0 import ChatRequestLogitBiasType0
        from ..models.chat_request_tools_type_0_item import ChatRequestToolsType0Item
        from ..models.response_format import ResponseFormat
        from ..models.stream_options import StreamOptions

        d = dict(src_dict)
        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = ChatMessage.from_dict(messages_item_data)

            messages.append(messages_item)

        model = d.pop("model")

        audio = d.pop("audio", UNSET)

        def _parse_chat_template_kwargs(
            data: object,
        ) -> ChatRequestChatTemplateKwargsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                chat_template_kwargs_type_0 = (
                    ChatRequestChatTemplateKwargsType0.from_dict(data)
                )

                return chat_template_kwargs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ChatRequestChatTemplateKwargsType0 | None | Unset, data)

        chat_template_kwargs = _parse_chat_template_kwargs(
            d.pop("chat_template_kwargs", UNSET)
        )

        def _parse_frequency_penalty(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        frequency_penalty = _parse_frequency_penalty(d.pop("frequency_penalty", UNSET))

        function_call = d.pop("function_call", UNSET)

        functions = d.pop("functions", UNSET)

        def _parse_logit_bias(data: object) -> ChatRequestLogitBiasType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                logit_bias_type_0 = ChatRequestLogitBiasType0.from_dict(data)

                return logit_bias_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ChatRequestLogitBiasType0 | None | Unset, data)

        logit_bias = _parse_logit_bias(d.pop("logit_bias", UNSET))

        logprobs = d.pop("logprobs", UNSET)

        def _parse_max_completion_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_completion_tokens = _parse_max_completion_tokens(
            d.pop("max_completion_tokens", UNSET)
        )

        def _parse_max_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_tokens = _parse_max_tokens(d.pop("max_tokens", UNSET))

        metadata = d.pop("metadata", UNSET)

        def _parse_min_p(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        min_p = _parse_min_p(d.pop("min_p", UNSET))

        def _parse_modalities(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                modalities_type_0 = cast(list[str], data)

                return modalities_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        modalities = _parse_modalities(d.pop("modalities", UNSET))

        def _parse_n(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        n = _parse_n(d.pop("n", UNSET))

        def _parse_parallel_tool_calls(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        parallel_tool_calls = _parse_parallel_tool_calls(
            d.pop("parallel_tool_calls", UNSET)
        )

        prediction = d.pop("prediction", UNSET)

        def _parse_presence_penalty(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        presence_penalty = _parse_presence_penalty(d.pop("presence_penalty", UNSET))

        def _parse_prompt_cache_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        prompt_cache_key = _parse_prompt_cache_key(d.pop("prompt_cache_key", UNSET))

        reasoning_effort = d.pop("reasoning_effort", UNSET)

        def _parse_repetition_penalty(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        repetition_penalty = _parse_repetition_penalty(
            d.pop("repetition_penalty", UNSET)
        )

        def _parse_response_format(data: object) -> None | ResponseFormat | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                response_format_type_0 = ResponseFormat.from_dict(data)

                return response_format_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ResponseFormat | Unset, data)

        response_format = _parse_response_format(d.pop("response_format", UNSET))

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

        def _parse_stop(data: object) -> list[str] | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_stop_strings_type_1 = cast(list[str], data)

                return componentsschemas_stop_strings_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | str | Unset, data)

        stop = _parse_stop(d.pop("stop", UNSET))

        def _parse_store(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        store = _parse_store(d.pop("store", UNSET))

        stream = d.pop("stream", UNSET)

        def _parse_stream_options(data: object) -> None | StreamOptions | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                stream_options_type_0 = StreamOptions.from_dict(data)

                return stream_options_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StreamOptions | Unset, data)

        stream_options = _parse_stream_options(d.pop("stream_options", UNSET))

        def _parse_temperature(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        temperature = _parse_temperature(d.pop("temperature", UNSET))

        tool_choice = d.pop("tool_choice", UNSET)

        def _parse_tools(
            data: object,
        ) -> list[ChatRequestToolsType0Item] | None | Unset:
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
                    tools_type_0_item = ChatRequestToolsType0Item.from_dict(
                        tools_type_0_item_data
                    )

                    tools_type_0.append(tools_type_0_item)

                return tools_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[ChatRequestToolsType0Item] | None | Unset, data)

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

        def _parse_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user = _parse_user(d.pop("user", UNSET))

        def _parse_verbosity(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        verbosity = _parse_verbosity(d.pop("verbosity", UNSET))

        web_search_options = d.pop("web_search_options", UNSET)

        chat_request = cls(
            messages=messages,
            model=model,
            audio=audio,
            chat_template_kwargs=chat_template_kwargs,
            frequency_penalty=frequency_penalty,
            function_call=function_call,
            functions=functions,
            logit_bias=logit_bias,
            logprobs=logprobs,
            max_completion_tokens=max_completion_tokens,
            max_tokens=max_tokens,
            metadata=metadata,
            min_p=min_p,
            modalities=modalities,
            n=n,
            parallel_tool_calls=parallel_tool_calls,
            prediction=prediction,
            presence_penalty=presence_penalty,
            prompt_cache_key=prompt_cache_key,
            reasoning_effort=reasoning_effort,
            repetition_penalty=repetition_penalty,
            response_format=response_format,
            return_token_ids=return_token_ids,
            safety_identifier=safety_identifier,
            seed=seed,
            service_tier=service_tier,
            stop=stop,
            store=store,
            stream=stream,
            stream_options=stream_options,
            temperature=temperature,
            tool_choice=tool_choice,
            tools=tools,
            top_k=top_k,
            top_logprobs=top_logprobs,
            top_p=top_p,
            user=user,
            verbosity=verbosity,
            web_search_options=web_search_options,
        )

        return chat_request
