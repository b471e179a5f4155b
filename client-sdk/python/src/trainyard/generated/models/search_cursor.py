from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SearchCursor")


@_attrs_define
class SearchCursor:
    """Position at which the next page begins.

    Attributes:
        last_created_at (datetime.datetime): Time of creation of the page's last session, in RFC 3339.
        last_session_id (str): Id of the page's last session.
    """

    last_created_at: datetime.datetime
    last_session_id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        last_created_at = self.last_created_at.isoformat()

        last_session_id = self.last_session_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "last_created_at": last_created_at,
                "last_session_id": last_session_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        last_created_at = datetime.datetime.fromisoformat(d.pop("last_created_at"))

        last_session_id = d.pop("last_session_id")

        search_cursor = cls(
            last_created_at=last_created_at,
            last_session_id=last_session_id,
        )

        search_cursor.additional_properties = d
        return search_cursor

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
