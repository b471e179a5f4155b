from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.text_format import TextFormat


T = TypeVar("T", bound="TextConfig")


@_attrs_define
class TextConfig:
    """Form of a reply's text.

    Attributes:
        format_ (None | TextFormat | Unset):
        verbosity (None | str | Unset): Refused unless it is `medium`.
    """

    format_: None | TextFormat | Unset = UNSET
    verbosity: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.text_format import TextFormat

        format_: dict[str, Any] | None | Unset
        if isinstance(self.format_, Unset):
            format_ = UNSET
        elif isinstance(self.format_, TextFormat):
            format_ = self.format_.to_dict()
        else:
            format_ = self.format_

        verbosity: None | str | Unset
        if isinstance(self.verbosity, Unset):
            verbosity = UNSET
        else:
            verbosity = self.verbosity

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if format_ is not UNSET:
            field_dict["format"] = format_
        if verbosity is not UNSET:
            field_dict["verbosity"] = verbosity

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.text_format import TextFormat

        d = dict(src_dict)

        def _parse_format_(data: object) -> None | TextFormat | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                format_type_0 = TextFormat.from_dict(data)

                return format_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TextFormat | Unset, data)

        format_ = _parse_format_(d.pop("format", UNSET))

        def _parse_verbosity(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        verbosity = _parse_verbosity(d.pop("verbosity", UNSET))

        text_config = cls(
            format_=format_,
            verbosity=verbosity,
        )

        return text_config
