from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="RetrieveFutureRequest")


@_attrs_define
class RetrieveFutureRequest:
    """Request body of `retrieve_future`.

    Attributes:
        request_id (str): Id of the future.
        allow_metadata_only (bool | Unset): Whether the server may return only the size of the result. This server
            always returns the result.
    """

    request_id: str
    allow_metadata_only: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        request_id = self.request_id

        allow_metadata_only = self.allow_metadata_only

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "request_id": request_id,
            }
        )
        if allow_metadata_only is not UNSET:
            field_dict["allow_metadata_only"] = allow_metadata_only

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        request_id = d.pop("request_id")

        allow_metadata_only = d.pop("allow_metadata_only", UNSET)

        retrieve_future_request = cls(
            request_id=request_id,
            allow_metadata_only=allow_metadata_only,
        )

        retrieve_future_request.additional_properties = d
        return retrieve_future_request

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
