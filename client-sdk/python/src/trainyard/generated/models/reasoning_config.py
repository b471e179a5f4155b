from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ReasoningConfig")


@_attrs_define
class ReasoningConfig:
    """How the model thinks before it answers.

    Attributes:
        effort (Any | Unset): A preset such as `low`, or a number, if the model's chat template supports it.
        generate_summary (None | str | Unset): Older name of `summary`.
        summary (None | str | Unset): Accepted, but has no effect: thoughts are returned as they are, without a summary.
    """

    effort: Any | Unset = UNSET
    generate_summary: None | str | Unset = UNSET
    summary: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        effort = self.effort

        generate_summary: None | str | Unset
        if isinstance(self.generate_summary, Unset):
            generate_summary = UNSET
        else:
            generate_summary = self.generate_summary

        summary: None | str | Unset
        if isinstance(self.summary, Unset):
            summary = UNSET
        else:
            summary = self.summary

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if effort is not UNSET:
            field_dict["effort"] = effort
        if generate_summary is not UNSET:
            field_dict["generate_summary"] = generate_summary
        if summary is not UNSET:
            field_dict["summary"] = summary

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        effort = d.pop("effort", UNSET)

        def _parse_generate_summary(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        generate_summary = _parse_generate_summary(d.pop("generate_summary", UNSET))

        def _parse_summary(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        summary = _parse_summary(d.pop("summary", UNSET))

        reasoning_config = cls(
            effort=effort,
            generate_summary=generate_summary,
            summary=summary,
        )

        return reasoning_config
