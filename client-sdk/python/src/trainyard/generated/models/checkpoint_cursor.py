from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="CheckpointCursor")


@_attrs_define
class CheckpointCursor:
    """Position at which the next page begins.

    Attributes:
        last_checkpoint_uuid (str): Path of the last checkpoint that was examined.
        last_created_at (datetime.datetime): Time of the last checkpoint that was examined, in RFC 3339.
    """

    last_checkpoint_uuid: str
    last_created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        last_checkpoint_uuid = self.last_checkpoint_uuid

        last_created_at = self.last_created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "last_checkpoint_uuid": last_checkpoint_uuid,
                "last_created_at": last_created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        last_checkpoint_uuid = d.pop("last_checkpoint_uuid")

        last_created_at = datetime.datetime.fromisoformat(d.pop("last_created_at"))

        checkpoint_cursor = cls(
            last_checkpoint_uuid=last_checkpoint_uuid,
            last_created_at=last_created_at,
        )

        checkpoint_cursor.additional_properties = d
        return checkpoint_cursor

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
