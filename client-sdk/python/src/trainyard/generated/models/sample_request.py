from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.model_input import ModelInput
    from ..models.sampling_params import SamplingParams
    from ..models.tensor_data import TensorData


T = TypeVar("T", bound="SampleRequest")


@_attrs_define
class SampleRequest:
    """Request body of `asample`.

    Attributes:
        prompt (ModelInput): Input of a model, as a list of pieces.
        sampling_session_id (str): Id of the sampling session.
        seq_id (int): Identifies the request within the sampling session.
        num_samples (int | Unset): Number of completions to sample, 1 by default.
        prompt_alt_tokens_k (int | Unset): Number of tokens to sample independently per prompt position; 0 turns this
            off.
        prompt_logprobs (bool | Unset): Whether to return the log-probabilities of the prompt.
        prompt_logprobs_last_n (int | None | Unset): Limits the log-probabilities to the last `n` prompt positions.
        record_stability_info (bool | Unset): Whether to keep the log-probabilities of the sampled tokens, so that
            training requests can refer to them by
            `sequence_id`. They are deleted a day after their last use.
        sampling_params (SamplingParams | Unset): How tokens are sampled. Unknown fields are refused, because a setting
            that is ignored would mislead.
        target_prompt_logprobs (None | TensorData | Unset):
        topk_prompt_logprobs (int | Unset): Number of candidates to return per prompt position; 0 turns this off.
        topk_sample_logprobs (int | Unset): Number of candidates to return per sampled token; 0 turns this off.
    """

    prompt: ModelInput
    sampling_session_id: str
    seq_id: int
    num_samples: int | Unset = UNSET
    prompt_alt_tokens_k: int | Unset = UNSET
    prompt_logprobs: bool | Unset = UNSET
    prompt_logprobs_last_n: int | None | Unset = UNSET
    record_stability_info: bool | Unset = UNSET
    sampling_params: SamplingParams | Unset = UNSET
    target_prompt_logprobs: None | TensorData | Unset = UNSET
    topk_prompt_logprobs: int | Unset = UNSET
    topk_sample_logprobs: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.tensor_data import TensorData

        prompt = self.prompt.to_dict()

        sampling_session_id = self.sampling_session_id

        seq_id = self.seq_id

        num_samples = self.num_samples

        prompt_alt_tokens_k = self.prompt_alt_tokens_k

        prompt_logprobs = self.prompt_logprobs

        prompt_logprobs_last_n: int | None | Unset
        if isinstance(self.prompt_logprobs_last_n, Unset):
            prompt_logprobs_last_n = UNSET
        else:
            prompt_logprobs_last_n = self.prompt_logprobs_last_n

        record_stability_info = self.record_stability_info

        sampling_params: dict[str, Any] | Unset = UNSET
        if not isinstance(self.sampling_params, Unset):
            sampling_params = self.sampling_params.to_dict()

        target_prompt_logprobs: dict[str, Any] | None | Unset
        if isinstance(self.target_prompt_logprobs, Unset):
            target_prompt_logprobs = UNSET
        elif isinstance(self.target_prompt_logprobs, TensorData):
            target_prompt_logprobs = self.target_prompt_logprobs.to_dict()
        else:
            target_prompt_logprobs = self.target_prompt_logprobs

        topk_prompt_logprobs = self.topk_prompt_logprobs

        topk_sample_logprobs = self.topk_sample_logprobs

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "prompt": prompt,
                "sampling_session_id": sampling_session_id,
                "seq_id": seq_id,
            }
        )
        if num_samples is not UNSET:
            field_dict["num_samples"] = num_samples
        if prompt_alt_tokens_k is not UNSET:
            field_dict["prompt_alt_tokens_k"] = prompt_alt_tokens_k
        if prompt_logprobs is not UNSET:
            field_dict["prompt_logprobs"] = prompt_logprobs
        if prompt_logprobs_last_n is not UNSET:
            field_dict["prompt_logprobs_last_n"] = prompt_logprobs_last_n
        if record_stability_info is not UNSET:
            field_dict["record_stability_info"] = record_stability_info
        if sampling_params is not UNSET:
            field_dict["sampling_params"] = sampling_params
        if target_prompt_logprobs is not UNSET:
            field_dict["target_prompt_logprobs"] = target_prompt_logprobs
        if topk_prompt_logprobs is not UNSET:
            field_dict["topk_prompt_logprobs"] = topk_prompt_logprobs
        if topk_sample_logprobs is not UNSET:
            field_dict["topk_sample_logprobs"] = topk_sample_logprobs

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.model_input import ModelInput
        from ..models.sampling_params import SamplingParams
        from ..models.tensor_data import TensorData

        d = dict(src_dict)
        prompt = ModelInput.from_dict(d.pop("prompt"))

        sampling_session_id = d.pop("sampling_session_id")

        seq_id = d.pop("seq_id")

        num_samples = d.pop("num_samples", UNSET)

        prompt_alt_tokens_k = d.pop("prompt_alt_tokens_k", UNSET)

        prompt_logprobs = d.pop("prompt_logprobs", UNSET)

        def _parse_prompt_logprobs_last_n(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        prompt_logprobs_last_n = _parse_prompt_logprobs_last_n(
            d.pop("prompt_logprobs_last_n", UNSET)
        )

        record_stability_info = d.pop("record_stability_info", UNSET)

        _sampling_params = d.pop("sampling_params", UNSET)
        sampling_params: SamplingParams | Unset
        if isinstance(_sampling_params, Unset):
            sampling_params = UNSET
        else:
            sampling_params = SamplingParams.from_dict(_sampling_params)

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

        topk_prompt_logprobs = d.pop("topk_prompt_logprobs", UNSET)

        topk_sample_logprobs = d.pop("topk_sample_logprobs", UNSET)

        sample_request = cls(
            prompt=prompt,
            sampling_session_id=sampling_session_id,
            seq_id=seq_id,
            num_samples=num_samples,
            prompt_alt_tokens_k=prompt_alt_tokens_k,
            prompt_logprobs=prompt_logprobs,
            prompt_logprobs_last_n=prompt_logprobs_last_n,
            record_stability_info=record_stability_info,
            sampling_params=sampling_params,
            target_prompt_logprobs=target_prompt_logprobs,
            topk_prompt_logprobs=topk_prompt_logprobs,
            topk_sample_logprobs=topk_sample_logprobs,
        )

        sample_request.additional_properties = d
        return sample_request

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
