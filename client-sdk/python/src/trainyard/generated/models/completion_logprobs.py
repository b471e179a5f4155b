from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.completion_logprobs_top_logprobs_item_type_0 import (
        CompletionLogprobsTopLogprobsItemType0,
    )


T = TypeVar("T", bound="CompletionLogprobs")


@_attrs_define
class CompletionLogprobs:
    """Log-probabilities, token by token.

    Attributes:
        text_offset (list[int]): Number of characters before each token.
        token_logprobs (list[float | None]): Log-probabilities of the tokens; null for the first token of a prompt.
        tokens (list[str]): Texts of the tokens.
        top_logprobs (list[CompletionLogprobsTopLogprobsItemType0 | None]): Most likely candidates at each position:
            their texts and log-probabilities.
    """

    text_offset: list[int]
    token_logprobs: list[float | None]
    tokens: list[str]
    top_logprobs: list[CompletionLogprobsTopLogprobsItemType0 | None]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.completion_logprobs_top_logprobs_item_type_0 import (
            CompletionLogprobsTopLogprobsItemType0,
        )

        text_offset = self.text_offset

        token_logprobs = []
        for token_logprobs_item_data in self.token_logprobs:
            token_logprobs_item: float | None
            token_logprobs_item = token_logprobs_item_data
            token_logprobs.append(token_logprobs_item)

        tokens = self.tokens

        top_logprobs = []
        for top_logprobs_item_data in self.top_logprobs:
            top_logprobs_item: dict[str, Any] | None
            if isinstance(
                top_logprobs_item_data, CompletionLogprobsTopLogprobsItemType0
            ):
                top_logprobs_item = top_logprobs_item_data.to_dict()
            else:
                top_logprobs_item = top_logprobs_item_data
            top_logprobs.append(top_logprobs_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "text_offset": text_offset,
                "token_logprobs": token_logprobs,
                "tokens": tokens,
                "top_logprobs": top_logprobs,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.completion_logprobs_top_logprobs_item_type_0 import (
            CompletionLogprobsTopLogprobsItemType0,
        )

        d = dict(src_dict)
        text_offset = cast(list[int], d.pop("text_offset"))

        token_logprobs = []
        _token_logprobs = d.pop("token_logprobs")
        for token_logprobs_item_data in _token_logprobs:

            def _parse_token_logprobs_item(data: object) -> float | None:
                if data is None:
                    return data
                return cast(float | None, data)

            token_logprobs_item = _parse_token_logprobs_item(token_logprobs_item_data)

            token_logprobs.append(token_logprobs_item)

        tokens = cast(list[str], d.pop("tokens"))

        top_logprobs = []
        _top_logprobs = d.pop("top_logprobs")
        for top_logprobs_item_data in _top_logprobs:

            def _parse_top_logprobs_item(
                data: object,
            ) -> CompletionLogprobsTopLogprobsItemType0 | None:
                if data is None:
                    return data
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    top_logprobs_item_type_0 = (
                        CompletionLogprobsTopLogprobsItemType0.from_dict(data)
                    )

                    return top_logprobs_item_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                return cast(CompletionLogprobsTopLogprobsItemType0 | None, data)

            top_logprobs_item = _parse_top_logprobs_item(top_logprobs_item_data)

            top_logprobs.append(top_logprobs_item)

        completion_logprobs = cls(
            text_offset=text_offset,
            token_logprobs=token_logprobs,
            tokens=tokens,
            top_logprobs=top_logprobs,
        )

        completion_logprobs.additional_properties = d
        return completion_logprobs

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
