from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.tensor_data import TensorData


T = TypeVar("T", bound="PromptAltTokensResult")


@_attrs_define
class PromptAltTokensResult:
    """Tokens that were sampled independently for each prompt position.

    Attributes:
        logprobs (TensorData): A tensor in JSON. If both index lists are set, it is sparse, and `data` contains the
            listed cells row by row.
        tokens (TensorData): A tensor in JSON. If both index lists are set, it is sparse, and `data` contains the listed
            cells row by row.
    """

    logprobs: TensorData
    tokens: TensorData
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        logprobs = self.logprobs.to_dict()

        tokens = self.tokens.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "logprobs": logprobs,
                "tokens": tokens,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.tensor_data import TensorData

        d = dict(src_dict)
        logprobs = TensorData.from_dict(d.pop("logprobs"))

        tokens = TensorData.from_dict(d.pop("tokens"))

        prompt_alt_tokens_result = cls(
            logprobs=logprobs,
            tokens=tokens,
        )

        prompt_alt_tokens_result.additional_properties = d
        return prompt_alt_tokens_result

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
