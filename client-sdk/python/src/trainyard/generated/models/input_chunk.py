from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.image_dimensions import ImageDimensions


T = TypeVar("T", bound="InputChunk")


@_attrs_define
class InputChunk:
    """A piece of a model input: text as token ids, or an image.

    Attributes:
        data (None | str | Unset): File of an `image`, in base64.
        expected_tokens (int | None | Unset): Number of tokens that the client expects the image to take; any other
            number is refused.
        format_ (None | str | Unset): Format of the file: `png` or `jpeg`.
        override_dimensions (ImageDimensions | None | Unset):
        tokens (list[int] | None | Unset): Token ids, for `encoded_text`.
        type_ (str | Unset): `encoded_text` (the default) or `image`; `image_asset_pointer` and `dmel` are refused.
    """

    data: None | str | Unset = UNSET
    expected_tokens: int | None | Unset = UNSET
    format_: None | str | Unset = UNSET
    override_dimensions: ImageDimensions | None | Unset = UNSET
    tokens: list[int] | None | Unset = UNSET
    type_: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.image_dimensions import ImageDimensions

        data: None | str | Unset
        if isinstance(self.data, Unset):
            data = UNSET
        else:
            data = self.data

        expected_tokens: int | None | Unset
        if isinstance(self.expected_tokens, Unset):
            expected_tokens = UNSET
        else:
            expected_tokens = self.expected_tokens

        format_: None | str | Unset
        if isinstance(self.format_, Unset):
            format_ = UNSET
        else:
            format_ = self.format_

        override_dimensions: dict[str, Any] | None | Unset
        if isinstance(self.override_dimensions, Unset):
            override_dimensions = UNSET
        elif isinstance(self.override_dimensions, ImageDimensions):
            override_dimensions = self.override_dimensions.to_dict()
        else:
            override_dimensions = self.override_dimensions

        tokens: list[int] | None | Unset
        if isinstance(self.tokens, Unset):
            tokens = UNSET
        elif isinstance(self.tokens, list):
            tokens = self.tokens

        else:
            tokens = self.tokens

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if data is not UNSET:
            field_dict["data"] = data
        if expected_tokens is not UNSET:
            field_dict["expected_tokens"] = expected_tokens
        if format_ is not UNSET:
            field_dict["format"] = format_
        if override_dimensions is not UNSET:
            field_dict["override_dimensions"] = override_dimensions
        if tokens is not UNSET:
            field_dict["tokens"] = tokens
        if type_ is not UNSET:
            field_dict["type"] = type_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.image_dimensions import ImageDimensions

        d = dict(src_dict)

        def _parse_data(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        data = _parse_data(d.pop("data", UNSET))

        def _parse_expected_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        expected_tokens = _parse_expected_tokens(d.pop("expected_tokens", UNSET))

        def _parse_format_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        format_ = _parse_format_(d.pop("format", UNSET))

        def _parse_override_dimensions(data: object) -> ImageDimensions | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                override_dimensions_type_0 = ImageDimensions.from_dict(data)

                return override_dimensions_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ImageDimensions | None | Unset, data)

        override_dimensions = _parse_override_dimensions(
            d.pop("override_dimensions", UNSET)
        )

        def _parse_tokens(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                tokens_type_0 = cast(list[int], data)

                return tokens_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        tokens = _parse_tokens(d.pop("tokens", UNSET))

        type_ = d.pop("type", UNSET)

        input_chunk = cls(
            data=data,
            expected_tokens=expected_tokens,
            format_=format_,
            override_dimensions=override_dimensions,
            tokens=tokens,
            type_=type_,
        )

        input_chunk.additional_properties = d
        return input_chunk

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
