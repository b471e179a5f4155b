from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="OutputConfig")


@_attrs_define
class OutputConfig:
    """How the model answers.

    Attributes:
        effort (Any | Unset): A preset such as `low`, or a number, if the model's chat template supports it.
        format_ (Any | Unset): Refused unless it is null.
    """

    effort: Any | Unset = UNSET
    format_: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        effort = self.effort

        format_ = self.format_

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if effort is not UNSET:
            field_dict["effort"] = effort
        if format_ is not UNSET:
            field_dict["format"] = format_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        effort = d.pop("effort", UNSET)

        format_ = d.pop("format", UNSET)

        output_config = cls(
            effort=effort,
            format_=format_,
        )

        return output_config
