from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Thinking")


@_attrs_define
class Thinking:
    """Whether the model thinks before it answers.

    Attributes:
        type_ (str): `enabled`, `adaptive` or `disabled`.
        budget_tokens (int | None | Unset): Budget for thoughts in tokens: at least 1024 and less than `max_tokens`.
            Thoughts count as output; only
            `max_tokens` limits them.
        display (None | str | Unset): Accepted, but has no effect.
    """

    type_: str
    budget_tokens: int | None | Unset = UNSET
    display: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        budget_tokens: int | None | Unset
        if isinstance(self.budget_tokens, Unset):
            budget_tokens = UNSET
        else:
            budget_tokens = self.budget_tokens

        display: None | str | Unset
        if isinstance(self.display, Unset):
            display = UNSET
        else:
            display = self.display

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "type": type_,
            }
        )
        if budget_tokens is not UNSET:
            field_dict["budget_tokens"] = budget_tokens
        if display is not UNSET:
            field_dict["display"] = display

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        type_ = d.pop("type")

        def _parse_budget_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        budget_tokens = _parse_budget_tokens(d.pop("budget_tokens", UNSET))

        def _parse_display(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        display = _parse_display(d.pop("display", UNSET))

        thinking = cls(
            type_=type_,
            budget_tokens=budget_tokens,
            display=display,
        )

        return thinking
