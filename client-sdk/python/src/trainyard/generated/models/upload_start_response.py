from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.upload_start_response_urls import UploadStartResponseUrls


T = TypeVar("T", bound="UploadStartResponse")


@_attrs_define
class UploadStartResponse:
    """Response body of `external_weights_upload_start`.

    Attributes:
        expires (datetime.datetime): Time at which the URLs expire and the upload is deleted, in RFC 3339.
        upload_id (str): Id of the upload.
        urls (UploadStartResponseUrls): URL for each file, by its name, to send the file to with `PUT`. The URLs contain
            their authorisation.
    """

    expires: datetime.datetime
    upload_id: str
    urls: UploadStartResponseUrls
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        expires = self.expires.isoformat()

        upload_id = self.upload_id

        urls = self.urls.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "expires": expires,
                "upload_id": upload_id,
                "urls": urls,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.upload_start_response_urls import UploadStartResponseUrls

        d = dict(src_dict)
        expires = datetime.datetime.fromisoformat(d.pop("expires"))

        upload_id = d.pop("upload_id")

        urls = UploadStartResponseUrls.from_dict(d.pop("urls"))

        upload_start_response = cls(
            expires=expires,
            upload_id=upload_id,
            urls=urls,
        )

        upload_start_response.additional_properties = d
        return upload_start_response

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
