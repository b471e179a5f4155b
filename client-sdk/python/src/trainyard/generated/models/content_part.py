from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.image_url import ImageUrl


T = TypeVar("T", bound="ContentPart")


@_attrs_define
class ContentPart:
    """A part of a message. Types other than `text` and `image_url` are refused.

    Attributes:
        type_ (str): Type of the part: `text` or, in messages of users and tools, `image_url`.
        image_url (ImageUrl | None | Unset):
        text (None | str | Unset): The text of the part.
    """

    type_: str
    image_url: ImageUrl | None | Unset = UNSET
    text: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.image_url import ImageUrl

        type_ = self.type_

        image_url: dict[str, Any] | None | Unset
        if isinstance(self.image_url, Unset):
            image_url = UNSET
        elif isinstance(self.image_url, ImageUrl):
            image_url = self.image_url.to_dict()
        else:
            image_url = self.image_url

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
            }
        )
        if image_url is not UNSET:
            field_dict["image_url"] = image_url
        if text is not UNSET:
            field_dict["text"] = text

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.image_url import ImageUrl

        d = dict(src_dict)
        type_ = d.pop("type")

        def _parse_image_url(data: object) -> ImageUrl | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                image_url_type_0 = ImageUrl.from_dict(data)

                return image_url_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ImageUrl | None | Unset, data)

        image_url = _parse_image_url(d.pop("image_url", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        content_part = cls(
            type_=type_,
            image_url=image_url,
            text=text,
        )

        content_part.additional_properties = d
        return content_part

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
