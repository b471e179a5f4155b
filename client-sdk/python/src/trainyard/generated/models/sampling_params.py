from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SamplingParams")


@_attrs_define
class SamplingParams:
    """How tokens are sampled. Unknown fields are refused, because a setting that is ignored would mislead.

    Attributes:
        frequency_penalty (float | Unset): Subtracted from a token's logit for each time that the token occurs in the
            completion. Default: 0.0.
        json_schema (Any | Unset): JSON schema that the completion must follow.
        logit_bias (Any | Unset): Values between -100 and 100 that are added to the logits of tokens, by token id.
        max_tokens (int | None | Unset): Maximum number of tokens to sample; by default, up to the context limit.
        min_p (float | Unset): Excludes tokens that are less likely than this fraction of the most likely one; 0 turns
            this off. Default: 0.0.
        presence_penalty (float | Unset): Subtracted from a token's logit if the token occurs in the completion.
            Default: 0.0.
        repetition_penalty (float | Unset): Divides positive logits, and multiplies negative ones, of tokens in the
            prompt or the completion; 1 turns this
            off. Default: 1.0.
        seed (int | None | Unset): Seed that makes sampling repeatable.
        stop (Any | Unset): Stop condition: a string, strings or token ids. An empty list turns all stopping off; by
            default, the model's
            end tokens stop.
        temperature (float | Unset): Divisor of the logits; 0 decodes greedily. Default: 1.0.
        top_k (int | Unset): Samples only from this many most likely tokens; -1 turns this off. Default: -1.
        top_p (float | Unset): Samples only from the smallest set of tokens whose total probability reaches this value;
            1 turns this off. Default: 1.0.
    """

    frequency_penalty: float | Unset = 0.0
    json_schema: Any | Unset = UNSET
    logit_bias: Any | Unset = UNSET
    max_tokens: int | None | Unset = UNSET
    min_p: float | Unset = 0.0
    presence_penalty: float | Unset = 0.0
    repetition_penalty: float | Unset = 1.0
    seed: int | None | Unset = UNSET
    stop: Any | Unset = UNSET
    temperature: float | Unset = 1.0
    top_k: int | Unset = -1
    top_p: float | Unset = 1.0

    def to_dict(self) -> dict[str, Any]:
        frequency_penalty = self.frequency_penalty

        json_schema = self.json_schema

        logit_bias = self.logit_bias

        max_tokens: int | None | Unset
        if isinstance(self.max_tokens, Unset):
            max_tokens = UNSET
        else:
            max_tokens = self.max_tokens

        min_p = self.min_p

        presence_penalty = self.presence_penalty

        repetition_penalty = self.repetition_penalty

        seed: int | None | Unset
        if isinstance(self.seed, Unset):
            seed = UNSET
        else:
            seed = self.seed

        stop = self.stop

        temperature = self.temperature

        top_k = self.top_k

        top_p = self.top_p

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if frequency_penalty is not UNSET:
            field_dict["frequency_penalty"] = frequency_penalty
        if json_schema is not UNSET:
            field_dict["json_schema"] = json_schema
        if logit_bias is not UNSET:
            field_dict["logit_bias"] = logit_bias
        if max_tokens is not UNSET:
            field_dict["max_tokens"] = max_tokens
        if min_p is not UNSET:
            field_dict["min_p"] = min_p
        if presence_penalty is not UNSET:
            field_dict["presence_penalty"] = presence_penalty
        if repetition_penalty is not UNSET:
            field_dict["repetition_penalty"] = repetition_penalty
        if seed is not UNSET:
            field_dict["seed"] = seed
        if stop is not UNSET:
            field_dict["stop"] = stop
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
        if top_k is not UNSET:
            field_dict["top_k"] = top_k
        if top_p is not UNSET:
            field_dict["top_p"] = top_p

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        frequency_penalty = d.pop("frequency_penalty", UNSET)

        json_schema = d.pop("json_schema", UNSET)

        logit_bias = d.pop("logit_bias", UNSET)

        def _parse_max_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_tokens = _parse_max_tokens(d.pop("max_tokens", UNSET))

        min_p = d.pop("min_p", UNSET)

        presence_penalty = d.pop("presence_penalty", UNSET)

        repetition_penalty = d.pop("repetition_penalty", UNSET)

        def _parse_seed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seed = _parse_seed(d.pop("seed", UNSET))

        stop = d.pop("stop", UNSET)

        temperature = d.pop("temperature", UNSET)

        top_k = d.pop("top_k", UNSET)

        top_p = d.pop("top_p", UNSET)

        sampling_params = cls(
            frequency_penalty=frequency_penalty,
            json_schema=json_schema,
            logit_bias=logit_bias,
            max_tokens=max_tokens,
            min_p=min_p,
            presence_penalty=presence_penalty,
            repetition_penalty=repetition_penalty,
            seed=seed,
            stop=stop,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )

        return sampling_params
