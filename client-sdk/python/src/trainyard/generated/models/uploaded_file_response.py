from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UploadedFileResponse")


@_attrs_define
class UploadedFileResponse:
    """Progress of the upload of a file.

    Attributes:
        complete (bool): Whether the whole file has arrived.
        received_bytes (int): Number of bytes that have arrived, from the first one on; the next `PUT` may begin here.
        total_bytes (int | None | Unset): Length of the file in bytes, if it is known.
    """

    complete: bool
    received_bytes: int
    total_bytes: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        complete = self.complete

        received_bytes = self.received_bytes

        total_bytes: int | None | Unset
        if isinstance(self.total_bytes, Unset):
            total_bytes = UNSET
        else:
            total_bytes = self.total_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "complete": complete,
                "received_bytes": received_bytes,
            }
        )
        if total_bytes is not UNSET:
            field_dict["total_bytes"] = total_bytes

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        complete = d.pop("complete")

        received_bytes = d.pop("received_bytes")

        def _parse_total_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        total_bytes = _parse_total_bytes(d.pop("total_bytes", UNSET))

        uploaded_file_response = cls(
            complete=complete,
            received_bytes=received_bytes,
            total_bytes=total_bytes,
        )

        uploaded_file_response.additional_properties = d
        return uploaded_file_response

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
