from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.token_logprob import TokenLogprob


T = TypeVar("T", bound="ChatLogprobs")


@_attrs_define
class ChatLogprobs:
    """Log-probabilities of a reply, or of the part that a chunk adds.

    Attributes:
        content (list[TokenLogprob]): Log-probabilities, token by token.
        refusal (list[TokenLogprob] | None | Unset): Always null: refusals are part of the content.
    """

    content: list[TokenLogprob]
    refusal: list[TokenLogprob] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        content = []
        for content_item_data in self.content:
            content_item = content_item_data.to_dict()
            content.append(content_item)

        refusal: list[dict[str, Any]] | None | Unset
        if isinstance(self.refusal, Unset):
            refusal = UNSET
        elif isinstance(self.refusal, list):
            refusal = []
            for refusal_type_0_item_data in self.refusal:
                refusal_type_0_item = refusal_type_0_item_data.to_dict()
                refusal.append(refusal_type_0_item)

        else:
            refusal = self.refusal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "content": content,
            }
        )
        if refusal is not UNSET:
            field_dict["refusal"] = refusal

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.token_logprob import TokenLogprob

        d = dict(src_dict)
        content = []
        _content = d.pop("content")
        for content_item_data in _content:
            content_item = TokenLogprob.from_dict(content_item_data)

            content.append(content_item)

        def _parse_refusal(data: object) -> list[TokenLogprob] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                refusal_type_0 = []
                _refusal_type_0 = data
                for refusal_type_0_item_data in _refusal_type_0:
                    refusal_type_0_item = TokenLogprob.from_dict(
                        refusal_type_0_item_data
                    )

                    refusal_type_0.append(refusal_type_0_item)

                return refusal_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[TokenLogprob] | None | Unset, data)

        refusal = _parse_refusal(d.pop("refusal", UNSET))

        chat_logprobs = cls(
            content=content,
            refusal=refusal,
        )

        chat_logprobs.additional_properties = d
        return chat_logprobs

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
