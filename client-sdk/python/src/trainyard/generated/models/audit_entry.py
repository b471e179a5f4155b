from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.audit_entry_event_details import AuditEntryEventDetails


T = TypeVar("T", bound="AuditEntry")


@_attrs_define
class AuditEntry:
    """An action that was recorded.

    Attributes:
        event (str): Object and action, such as `checkpoint_delete`.
        event_details (AuditEntryEventDetails): Details: `actor`, `subject`, `key_id`, `request_id`, `address`, and
            others that depend on the event.
        timestamp (datetime.datetime): Time of the action, in RFC 3339.
        model_id (None | str | Unset): Run of the checkpoint that was acted on.
        tinker_path (None | str | Unset): Path of the checkpoint that was acted on.
    """

    event: str
    event_details: AuditEntryEventDetails
    timestamp: datetime.datetime
    model_id: None | str | Unset = UNSET
    tinker_path: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        event = self.event

        event_details = self.event_details.to_dict()

        timestamp = self.timestamp.isoformat()

        model_id: None | str | Unset
        if isinstance(self.model_id, Unset):
            model_id = UNSET
        else:
            model_id = self.model_id

        tinker_path: None | str | Unset
        if isinstance(self.tinker_path, Unset):
            tinker_path = UNSET
        else:
            tinker_path = self.tinker_path

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "event": event,
                "event_details": event_details,
                "timestamp": timestamp,
            }
        )
        if model_id is not UNSET:
            field_dict["model_id"] = model_id
        if tinker_path is not UNSET:
            field_dict["tinker_path"] = tinker_path

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.audit_entry_event_details import AuditEntryEventDetails

        d = dict(src_dict)
        event = d.pop("event")

        event_details = AuditEntryEventDetails.from_dict(d.pop("event_details"))

        timestamp = datetime.datetime.fromisoformat(d.pop("timestamp"))

        def _parse_model_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model_id = _parse_model_id(d.pop("model_id", UNSET))

        def _parse_tinker_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tinker_path = _parse_tinker_path(d.pop("tinker_path", UNSET))

        audit_entry = cls(
            event=event,
            event_details=event_details,
            timestamp=timestamp,
            model_id=model_id,
            tinker_path=tinker_path,
        )

        audit_entry.additional_properties = d
        return audit_entry

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
