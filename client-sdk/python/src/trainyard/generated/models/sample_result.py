from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.prompt_alt_tokens_result import PromptAltTokensResult
    from ..models.sequence_result import SequenceResult
    from ..models.tensor_data import TensorData


T = TypeVar("T", bound="SampleResult")


@_attrs_define
class SampleResult:
    """Result of `asample`, which `retrieve_future` returns.

    Attributes:
        prompt_cache_hit_tokens (int): Number of prompt tokens that the prefix cache served.
        sequences (list[SequenceResult]): Sequences in the order of the submission's sequence ids.
        type_ (str): Always the text `sample`.
        prompt_alt_tokens (None | PromptAltTokensResult | Unset):
        prompt_logprobs (list[float | None] | None | Unset): Log-probabilities of the prompt, one per token; null for
            the first one.
        target_prompt_logprobs (None | TensorData | Unset):
        topk_prompt_logprobs (list[list[list[float]] | None] | None | Unset): Up to k pairs of token id and log-
            probability for each prompt token; null for the first one.
    """

    prompt_cache_hit_tokens: int
    sequences: list[SequenceResult]
    type_: str
    prompt_alt_tokens: None | PromptAltTokensResult | Unset = UNSET
    prompt_logprobs: list[float | None] | None | Unset = UNSET
    target_prompt_logprobs: None | TensorData | Unset = UNSET
    topk_prompt_logprobs: list[list[list[float]] | None] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.prompt_alt_tokens_result import PromptAltTokensResult
        from ..models.tensor_data import TensorData

        prompt_cache_hit_tokens = self.prompt_cache_hit_tokens

        sequences = []
        for sequences_item_data in self.sequences:
            sequences_item = sequences_item_data.to_dict()
            sequences.append(sequences_item)

        type_ = self.type_

        prompt_alt_tokens: dict[str, Any] | None | Unset
        if isinstance(self.prompt_alt_tokens, Unset):
            prompt_alt_tokens = UNSET
        elif isinstance(self.prompt_alt_tokens, PromptAltTokensResult):
            prompt_alt_tokens = self.prompt_alt_tokens.to_dict()
        else:
            prompt_alt_tokens = self.prompt_alt_tokens

        prompt_logprobs: list[float | None] | None | Unset
        if isinstance(self.prompt_logprobs, Unset):
            prompt_logprobs = UNSET
        elif isinstance(self.prompt_logprobs, list):
            prompt_logprobs = []
            for prompt_logprobs_type_0_item_data in self.prompt_logprobs:
                prompt_logprobs_type_0_item: float | None
                prompt_logprobs_type_0_item = prompt_logprobs_type_0_item_data
                prompt_logprobs.append(prompt_logprobs_type_0_item)

        else:
            prompt_logprobs = self.prompt_logprobs

        target_prompt_logprobs: dict[str, Any] | None | Unset
        if isinstance(self.target_prompt_logprobs, Unset):
            target_prompt_logprobs = UNSET
        elif isinstance(self.target_prompt_logprobs, TensorData):
            target_prompt_logprobs = self.target_prompt_logprobs.to_dict()
        else:
            target_prompt_logprobs = self.target_prompt_logprobs

        topk_prompt_logprobs: list[list[list[float]] | None] | None | Unset
        if isinstance(self.topk_prompt_logprobs, Unset):
            topk_prompt_logprobs = UNSET
        elif isinstance(self.topk_prompt_logprobs, list):
            topk_prompt_logprobs = []
            for topk_prompt_logprobs_type_0_item_data in self.topk_prompt_logprobs:
                topk_prompt_logprobs_type_0_item: list[list[float]] | None
                if isinstance(topk_prompt_logprobs_type_0_item_data, list):
                    topk_prompt_logprobs_type_0_item = []
                    for (
                        topk_prompt_logprobs_type_0_item_type_0_item_data
                    ) in topk_prompt_logprobs_type_0_item_data:
                        topk_prompt_logprobs_type_0_item_type_0_item = (
                            topk_prompt_logprobs_type_0_item_type_0_item_data
                        )

                        topk_prompt_logprobs_type_0_item.append(
                            topk_prompt_logprobs_type_0_item_type_0_item
                        )

                else:
                    topk_prompt_logprobs_type_0_item = (
                        topk_prompt_logprobs_type_0_item_data
                    )
                topk_prompt_logprobs.append(topk_prompt_logprobs_type_0_item)

        else:
            topk_prompt_logprobs = self.topk_prompt_logprobs

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "prompt_cache_hit_tokens": prompt_cache_hit_tokens,
                "sequences": sequences,
                "type": type_,
            }
        )
        if prompt_alt_tokens is not UNSET:
            field_dict["prompt_alt_tokens"] = prompt_alt_tokens
        if prompt_logprobs is not UNSET:
            field_dict["prompt_logprobs"] = prompt_logprobs
        if target_prompt_logprobs is not UNSET:
            field_dict["target_prompt_logprobs"] = target_prompt_logprobs
        if topk_prompt_logprobs is not UNSET:
            field_dict["topk_prompt_logprobs"] = topk_prompt_logprobs

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.prompt_alt_tokens_result import PromptAltTokensResult
        from ..models.sequence_result import SequenceResult
        from ..models.tensor_data import TensorData

        d = dict(src_dict)
        prompt_cache_hit_tokens = d.pop("prompt_cache_hit_tokens")

        sequences = []
        _sequences = d.pop("sequences")
        for sequences_item_data in _sequences:
            sequences_item = SequenceResult.from_dict(sequences_item_data)

            sequences.append(sequences_item)

        type_ = d.pop("type")

        def _parse_prompt_alt_tokens(
            data: object,
        ) -> None | PromptAltTokensResult | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                prompt_alt_tokens_type_0 = PromptAltTokensResult.from_dict(data)

                return prompt_alt_tokens_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PromptAltTokensResult | Unset, data)

        prompt_alt_tokens = _parse_prompt_alt_tokens(d.pop("prompt_alt_tokens", UNSET))

        def _parse_prompt_logprobs(data: object) -> list[float | None] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                prompt_logprobs_type_0 = []
                _prompt_logprobs_type_0 = data
                for prompt_logprobs_type_0_item_data in _prompt_logprobs_type_0:

                    def _parse_prompt_logprobs_type_0_item(
                        data: object,
                    ) -> float | None:
                        if data is None:
                            return data
                        return cast(float | None, data)

                    prompt_logprobs_type_0_item = _parse_prompt_logprobs_type_0_item(
                        prompt_logprobs_type_0_item_data
                    )

                    prompt_logprobs_type_0.append(prompt_logprobs_type_0_item)

                return prompt_logprobs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[float | None] | None | Unset, data)

        prompt_logprobs = _parse_prompt_logprobs(d.pop("prompt_logprobs", UNSET))

        def _parse_target_prompt_logprobs(data: object) -> None | TensorData | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                target_prompt_logprobs_type_0 = TensorData.from_dict(data)

                return target_prompt_logprobs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TensorData | Unset, data)

        target_prompt_logprobs = _parse_target_prompt_logprobs(
            d.pop("target_prompt_logprobs", UNSET)
        )

        def _parse_topk_prompt_logprobs(
            data: object,
        ) -> list[list[list[float]] | None] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                topk_prompt_logprobs_type_0 = []
                _topk_prompt_logprobs_type_0 = data
                for (
                    topk_prompt_logprobs_type_0_item_data
                ) in _topk_prompt_logprobs_type_0:

                    def _parse_topk_prompt_logprobs_type_0_item(
                        data: object,
                    ) -> list[list[float]] | None:
                        if data is None:
                            return data
                        try:
                            if not isinstance(data, list):
                                raise TypeError()
                            topk_prompt_logprobs_type_0_item_type_0 = []
                            _topk_prompt_logprobs_type_0_item_type_0 = data
                            for (
                                topk_prompt_logprobs_type_0_item_type_0_item_data
                            ) in _topk_prompt_logprobs_type_0_item_type_0:
                                topk_prompt_logprobs_type_0_item_type_0_item = cast(
                                    list[float],
                                    topk_prompt_logprobs_type_0_item_type_0_item_data,
                                )

                                topk_prompt_logprobs_type_0_item_type_0.append(
                                    topk_prompt_logprobs_type_0_item_type_0_item
                                )

                            return topk_prompt_logprobs_type_0_item_type_0
                        except (TypeError, ValueError, AttributeError, KeyError):
                            pass
                        return cast(list[list[float]] | None, data)

                    topk_prompt_logprobs_type_0_item = (
                        _parse_topk_prompt_logprobs_type_0_item(
                            topk_prompt_logprobs_type_0_item_data
                        )
                    )

                    topk_prompt_logprobs_type_0.append(topk_prompt_logprobs_type_0_item)

                return topk_prompt_logprobs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[list[list[float]] | None] | None | Unset, data)

        topk_prompt_logprobs = _parse_topk_prompt_logprobs(
            d.pop("topk_prompt_logprobs", UNSET)
        )

        sample_result = cls(
            prompt_cache_hit_tokens=prompt_cache_hit_tokens,
            sequences=sequences,
            type_=type_,
            prompt_alt_tokens=prompt_alt_tokens,
            prompt_logprobs=prompt_logprobs,
            target_prompt_logprobs=target_prompt_logprobs,
            topk_prompt_logprobs=topk_prompt_logprobs,
        )

        sample_result.additional_properties = d
        return sample_result

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
