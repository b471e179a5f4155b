from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ResponsesStreamOptions")


@_attrs_define
class ResponsesStreamOptions:
    """Options that apply only to streams of responses.

    Attributes:
        include_obfuscation (bool | None | Unset): Accepted, but ignored: streams are not padded.
    """

    include_obfuscation: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        include_obfuscation: bool | None | Unset
        if isinstance(self.include_obfuscation, Unset):
            include_obfuscation = UNSET
        else:
            include_obfuscation = self.include_obfuscation

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if include_obfuscation is not UNSET:
            field_dict["include_obfuscation"] = include_obfuscation

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_include_obfuscation(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        include_obfuscation = _parse_include_obfuscation(
            d.pop("include_obfuscation", UNSET)
        )

        responses_stream_options = cls(
            include_obfuscation=include_obfuscation,
        )

        return responses_stream_options
