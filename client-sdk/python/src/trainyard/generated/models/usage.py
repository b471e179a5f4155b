from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.prompt_tokens_details import PromptTokensDetails


T = TypeVar("T", bound="Usage")


@_attrs_define
class Usage:
    """Numbers of tokens in a request and its completions.

    Attributes:
        completion_tokens (int): Tokens that were sampled.
        prompt_tokens (int): Tokens of the prompts.
        prompt_tokens_details (PromptTokensDetails): Details on the tokens of the prompts.
        total_tokens (int): Sum of both numbers.
    """

    completion_tokens: int
    prompt_tokens: int
    prompt_tokens_details: PromptTokensDetails
    total_tokens: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        completion_tokens = self.completion_tokens

        prompt_tokens = self.prompt_tokens

        prompt_tokens_details = self.prompt_tokens_details.to_dict()

        total_tokens = self.total_tokens

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "completion_tokens": completion_tokens,
                "prompt_tokens": prompt_tokens,
                "prompt_tokens_details": prompt_tokens_details,
                "total_tokens": total_tokens,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.prompt_tokens_details import PromptTokensDetails

        d = dict(src_dict)
        completion_tokens = d.pop("completion_tokens")

        prompt_tokens = d.pop("prompt_tokens")

        prompt_tokens_details = PromptTokensDetails.from_dict(
            d.pop("prompt_tokens_details")
        )

        total_tokens = d.pop("total_tokens")

        usage = cls(
            completion_tokens=completion_tokens,
            prompt_tokens=prompt_tokens,
            prompt_tokens_details=prompt_tokens_details,
            total_tokens=total_tokens,
        )

        usage.additional_properties = d
        return usage

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
