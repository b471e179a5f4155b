from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ImageUrl")


@_attrs_define
class ImageUrl:
    """An image of a message.

    Attributes:
        url (str): A data URI with a PNG or JPEG file: `data:image/png;base64,…`. Other URLs are refused.
        detail (None | str | Unset): Refused unless it is `auto` or `high`: the model sets the size.
    """

    url: str
    detail: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        detail: None | str | Unset
        if isinstance(self.detail, Unset):
            detail = UNSET
        else:
            detail = self.detail

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
            }
        )
        if detail is not UNSET:
            field_dict["detail"] = detail

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        url = d.pop("url")

        def _parse_detail(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        detail = _parse_detail(d.pop("detail", UNSET))

        image_url = cls(
            url=url,
            detail=detail,
        )

        return image_url
