from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.external_urls_response_urls import ExternalUrlsResponseUrls


T = TypeVar("T", bound="ExternalUrlsResponse")


@_attrs_define
class ExternalUrlsResponse:
    """Response body of `…/external_weights_urls`.

    Attributes:
        expires (datetime.datetime): Time at which the URLs expire, in RFC 3339.
        urls (ExternalUrlsResponseUrls): URLs by file name, which contain their authorisation.
    """

    expires: datetime.datetime
    urls: ExternalUrlsResponseUrls
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        expires = self.expires.isoformat()

        urls = self.urls.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "expires": expires,
                "urls": urls,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.external_urls_response_urls import ExternalUrlsResponseUrls

        d = dict(src_dict)
        expires = datetime.datetime.fromisoformat(d.pop("expires"))

        urls = ExternalUrlsResponseUrls.from_dict(d.pop("urls"))

        external_urls_response = cls(
            expires=expires,
            urls=urls,
        )

        external_urls_response.additional_properties = d
        return external_urls_response

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
