from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.completion_request_logit_bias_type_0 import (
        CompletionRequestLogitBiasType0,
    )
    from ..models.stream_options import StreamOptions


T = TypeVar("T", bound="CompletionRequest")


@_attrs_define
class CompletionRequest:
    """Request body of `completions`. Unknown fields are refused.

    Attributes:
        model (str): A base model, a `tinker://` path of a sampler checkpoint, or `<base>;<path>`.
        prompt (list[int] | list[list[int]] | list[str] | str): Prompts of a request: a text, a list of texts, a list of
            token ids, or a list of such lists.
        best_of (int | None | Unset): Refused unless equal to `n`.
        echo (bool | Unset): Whether to return the prompt before the completion.
        frequency_penalty (float | None | Unset): Subtracted from a token's logit for each time that the token occurs in
            the completion.
        logit_bias (CompletionRequestLogitBiasType0 | None | Unset): Values between -100 and 100 that are added to the
            logits of tokens, by token id.
        logprobs (int | None | Unset): Returns the log-probability of each token and of this many candidates for it.
        max_tokens (int | None | Unset): Maximum number of tokens to sample, 16 by default. 0 is allowed with `echo`.
        min_p (float | None | Unset): Excludes tokens that are less likely than this fraction of the most likely one; 0
            turns this off.
        n (int | None | Unset): Number of completions for each prompt, 1 by default.
        presence_penalty (float | None | Unset): Subtracted from a token's logit if the token occurs in the completion.
        repetition_penalty (float | None | Unset): Divides positive logits, and multiplies negative ones, of tokens in
            the prompt or the completion; 1 turns this
            off.
        return_token_ids (bool | Unset): Whether to return the ids of the prompt's tokens and of those that were
            sampled, so that a trainer need not encode
            texts again.
        seed (int | None | Unset): Seed that makes sampling repeatable.
        stop (list[str] | None | str | Unset):
        stream (bool | Unset): Whether to respond with server-sent events.
        stream_options (None | StreamOptions | Unset):
        suffix (None | str | Unset): Refused unless it is empty.
        temperature (float | None | Unset): Divisor of the logits, 1 by default; 0 decodes greedily.
        top_k (int | None | Unset): Samples only from this many most likely tokens; -1 and 0 turn this off.
        top_p (float | None | Unset): Samples only from the smallest set of tokens whose total probability reaches this
            value; 1 (the default) turns
            this off.
        user (None | str | Unset): Accepted, but has no effect.
    """

    model: str
    prompt: list[int] | list[list[int]] | list[str] | str
    best_of: int | None | Unset = UNSET
    echo: bool | Unset = UNSET
    frequency_penalty: float | None | Unset = UNSET
    logit_bias: CompletionRequestLogitBiasType0 | None | Unset = UNSET
    logprobs: int | None | Unset = UNSET
    max_tokens: int | None | Unset = UNSET
    min_p: float | None | Unset = UNSET
    n: int | None | Unset = UNSET
    presence_penalty: float | None | Unset = UNSET
    repetition_penalty: float | None | Unset = UNSET
    return_token_ids: bool | Unset = UNSET
    seed: int | None | Unset = UNSET
    stop: list[str] | None | str | Unset = UNSET
    stream: bool | Unset = UNSET
    stream_options: None | StreamOptions | Unset = UNSET
    suffix: None | str | Unset = UNSET
    temperature: float | None | Unset = UNSET
    top_k: int | None | Unset = UNSET
    top_p: float | None | Unset = UNSET
    user: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.completion_request_logit_bias_type_0 import (
            CompletionRequestLogitBiasType0,
        )
        from ..models.stream_options import StreamOptions

        model = self.model

        prompt: list[int] | list[list[int]] | list[str] | str
        if isinstance(self.prompt, list) or isinstance(self.prompt, list):
            prompt = self.prompt

        elif isinstance(self.prompt, list):
            prompt = []
            for componentsschemas_completion_prompt_type_3_item_data in self.prompt:
                componentsschemas_completion_prompt_type_3_item = (
                    componentsschemas_completion_prompt_type_3_item_data
                )

                prompt.append(componentsschemas_completion_prompt_type_3_item)

        else:
            prompt = self.prompt

        best_of: int | None | Unset
        if isinstance(self.best_of, Unset):
            best_of = UNSET
        else:
            best_of = self.best_of

        echo = self.echo

        frequency_penalty: float | None | Unset
        if isinstance(self.frequency_penalty, Unset):
            frequency_penalty = UNSET
        else:
            frequency_penalty = self.frequency_penalty

        logit_bias: dict[str, Any] | None | Unset
        if isinstance(self.logit_bias, Unset):
            logit_bias = UNSET
        elif isinstance(self.logit_bias, CompletionRequestLogitBiasType0):
            logit_bias = self.logit_bias.to_dict()
        else:
            logit_bias = self.logit_bias

        logprobs: int | None | Unset
        if isinstance(self.logprobs, Unset):
            logprobs = UNSET
        else:
            logprobs = self.logprobs

        max_tokens: int | None | Unset
        if isinstance(self.max_tokens, Unset):
            max_tokens = UNSET
        else:
            max_tokens = self.max_tokens

        min_p: float | None | Unset
        if isinstance(self.min_p, Unset):
            min_p = UNSET
        else:
            min_p = self.min_p

        n: int | None | Unset
        if isinstance(self.n, Unset):
            n = UNSET
        else:
            n = self.n

        presence_penalty: float | None | Unset
        if isinstance(self.presence_penalty, Unset):
            presence_penalty = UNSET
        else:
            presence_penalty = self.presence_penalty

        repetition_penalty: float | None | Unset
        if isinstance(self.repetition_penalty, Unset):
            repetition_penalty = UNSET
        else:
            repetition_penalty = self.repetition_penalty

        return_token_ids = self.return_token_ids

        seed: int | None | Unset
        if isinstance(self.seed, Unset):
            seed = UNSET
        else:
            seed = self.seed

        stop: list[str] | None | str | Unset
        if isinstance(self.stop, Unset):
            stop = UNSET
        elif isinstance(self.stop, list):
            stop = self.stop

        else:
            stop = self.stop

        stream = self.stream

        stream_options: dict[str, Any] | None | Unset
        if isinstance(self.stream_options, Unset):
            stream_options = UNSET
        elif isinstance(self.stream_options, StreamOptions):
            stream_options = self.stream_options.to_dict()
        else:
            stream_options = self.stream_options

        suffix: None | str | Unset
        if isinstance(self.suffix, Unset):
            suffix = UNSET
        else:
            suffix = self.suffix

        temperature: float | None | Unset
        if isinstance(self.temperature, Unset):
            temperature = UNSET
        else:
            temperature = self.temperature

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

        user: None | str | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        else:
            user = self.user

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "model": model,
                "prompt": prompt,
            }
        )
        if best_of is not UNSET:
            field_dict["best_of"] = best_of
        if echo is not UNSET:
            field_dict["echo"] = echo
        if frequency_penalty is not UNSET:
            field_dict["frequency_penalty"] = frequency_penalty
        if logit_bias is not UNSET:
            field_dict["logit_bias"] = logit_bias
        if logprobs is not UNSET:
            field_dict["logprobs"] = logprobs
        if max_tokens is not UNSET:
            field_dict["max_tokens"] = max_tokens
        if min_p is not UNSET:
            field_dict["min_p"] = min_p
        if n is not UNSET:
            field_dict["n"] = n
        if presence_penalty is not UNSET:
            field_dict["presence_penalty"] = presence_penalty
        if repetition_penalty is not UNSET:
            field_dict["repetition_penalty"] = repetition_penalty
        if return_token_ids is not UNSET:
            field_dict["return_token_ids"] = return_token_ids
        if seed is not UNSET:
            field_dict["seed"] = seed
        if stop is not UNSET:
            field_dict["stop"] = stop
        if stream is not UNSET:
            field_dict["stream"] = stream
        if stream_options is not UNSET:
            field_dict["stream_options"] = stream_options
        if suffix is not UNSET:
            field_dict["suffix"] = suffix
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
        if top_k is not UNSET:
            field_dict["top_k"] = top_k
        if top_p is not UNSET:
            field_dict["top_p"] = top_p
        if user is not UNSET:
            field_dict["user"] = user

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.completion_request_logit_bias_type_0 import (
            CompletionRequestLogitBiasType0,
        )
        from ..models.stream_options import StreamOptions

        d = dict(src_dict)
        model = d.pop("model")

        def _parse_prompt(
            data: object,
        ) -> list[int] | list[list[int]] | list[str] | str:
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_completion_prompt_type_1 = cast(list[str], data)

                return componentsschemas_completion_prompt_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_completion_prompt_type_2 = cast(list[int], data)

                return componentsschemas_completion_prompt_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_completion_prompt_type_3 = []
                _componentsschemas_completion_prompt_type_3 = data
                for (
                    componentsschemas_completion_prompt_type_3_item_data
                ) in _componentsschemas_completion_prompt_type_3:
                    componentsschemas_completion_prompt_type_3_item = cast(
                        list[int], componentsschemas_completion_prompt_type_3_item_data
                    )

                    componentsschemas_completion_prompt_type_3.append(
                        componentsschemas_completion_prompt_type_3_item
                    )

                return componentsschemas_completion_prompt_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | list[list[int]] | list[str] | str, data)

        prompt = _parse_prompt(d.pop("prompt"))

        def _parse_best_of(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        best_of = _parse_best_of(d.pop("best_of", UNSET))

        echo = d.pop("echo", UNSET)

        def _parse_frequency_penalty(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        frequency_penalty = _parse_frequency_penalty(d.pop("frequency_penalty", UNSET))

        def _parse_logit_bias(
            data: object,
        ) -> CompletionRequestLogitBiasType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                logit_bias_type_0 = CompletionRequestLogitBiasType0.from_dict(data)

                return logit_bias_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompletionRequestLogitBiasType0 | None | Unset, data)

        logit_bias = _parse_logit_bias(d.pop("logit_bias", UNSET))

        def _parse_logprobs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        logprobs = _parse_logprobs(d.pop("logprobs", UNSET))

        def _parse_max_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_tokens = _parse_max_tokens(d.pop("max_tokens", UNSET))

        def _parse_min_p(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        min_p = _parse_min_p(d.pop("min_p", UNSET))

        def _parse_n(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        n = _parse_n(d.pop("n", UNSET))

        def _parse_presence_penalty(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        presence_penalty = _parse_presence_penalty(d.pop("presence_penalty", UNSET))

        def _parse_repetition_penalty(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        repetition_penalty = _parse_repetition_penalty(
            d.pop("repetition_penalty", UNSET)
        )

        return_token_ids = d.pop("return_token_ids", UNSET)

        def _parse_seed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seed = _parse_seed(d.pop("seed", UNSET))

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

        def _parse_suffix(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        suffix = _parse_suffix(d.pop("suffix", UNSET))

        def _parse_temperature(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        temperature = _parse_temperature(d.pop("temperature", UNSET))

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

        def _parse_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user = _parse_user(d.pop("user", UNSET))

        completion_request = cls(
            model=model,
            prompt=prompt,
            best_of=best_of,
            echo=echo,
            frequency_penalty=frequency_penalty,
            logit_bias=logit_bias,
            logprobs=logprobs,
            max_tokens=max_tokens,
            min_p=min_p,
            n=n,
            presence_penalty=presence_penalty,
            repetition_penalty=repetition_penalty,
            return_token_ids=return_token_ids,
            seed=seed,
            stop=stop,
            stream=stream,
            stream_options=stream_options,
            suffix=suffix,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            user=user,
        )

        return completion_request
