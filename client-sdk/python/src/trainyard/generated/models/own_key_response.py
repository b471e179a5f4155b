from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.own_key_details import OwnKeyDetails


T = TypeVar("T", bound="OwnKeyResponse")


@_attrs_define
class OwnKeyResponse:
    """Response body of `GET auth/apikey/me`.

    Attributes:
        details (OwnKeyDetails): The owner of a key.
        key_id (int): Number that identifies the key; 0 if it is not in the store.
        name (str): Name for display; any text.
        note (str): Note for display; any text.
    """

    details: OwnKeyDetails
    key_id: int
    name: str
    note: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        details = self.details.to_dict()

        key_id = self.key_id

        name = self.name

        note = self.note

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "details": details,
                "key_id": key_id,
                "name": name,
                "note": note,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.own_key_details import OwnKeyDetails

        d = dict(src_dict)
        details = OwnKeyDetails.from_dict(d.pop("details"))

        key_id = d.pop("key_id")

        name = d.pop("name")

        note = d.pop("note")

        own_key_response = cls(
            details=details,
            key_id=key_id,
            name=name,
            note=note,
        )

        own_key_response.additional_properties = d
        return own_key_response

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
