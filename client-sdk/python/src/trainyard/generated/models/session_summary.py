from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.session_summary_user_metadata import SessionSummaryUserMetadata
    from ..models.status_summary_type_0 import StatusSummaryType0
    from ..models.status_summary_type_1 import StatusSummaryType1


T = TypeVar("T", bound="SessionSummary")


@_attrs_define
class SessionSummary:
    """A session that matches a search.

    Attributes:
        checkpoint_storage_bytes (int): Size of the checkpoints' files, in bytes.
        checkpoints_count (int): Number of checkpoints of its runs.
        created_at (datetime.datetime): Time of creation, in RFC 3339.
        owner (str): Tenant that owns the session.
        project_id (str): Project of the session; empty if it is not in a project.
        session_id (str): Id of the session.
        user_metadata (SessionSummaryUserMetadata): Metadata that the client set when it created the session. Values
            that are not text are written as JSON.
        display_name (None | str | Unset): Name for display; any text.
        status (None | StatusSummaryType0 | StatusSummaryType1 | Unset):
    """

    checkpoint_storage_bytes: int
    checkpoints_count: int
    created_at: datetime.datetime
    owner: str
    project_id: str
    session_id: str
    user_metadata: SessionSummaryUserMetadata
    display_name: None | str | Unset = UNSET
    status: None | StatusSummaryType0 | StatusSummaryType1 | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.status_summary_type_0 import StatusSummaryType0
        from ..models.status_summary_type_1 import StatusSummaryType1

        checkpoint_storage_bytes = self.checkpoint_storage_bytes

        checkpoints_count = self.checkpoints_count

        created_at = self.created_at.isoformat()

        owner = self.owner

        project_id = self.project_id

        session_id = self.session_id

        user_metadata = self.user_metadata.to_dict()

        display_name: None | str | Unset
        if isinstance(self.display_name, Unset):
            display_name = UNSET
        else:
            display_name = self.display_name

        status: dict[str, Any] | None | Unset
        if isinstance(self.status, Unset):
            status = UNSET
        elif isinstance(self.status, StatusSummaryType0) or isinstance(
            self.status, StatusSummaryType1
        ):
            status = self.status.to_dict()
        else:
            status = self.status

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checkpoint_storage_bytes": checkpoint_storage_bytes,
                "checkpoints_count": checkpoints_count,
                "created_at": created_at,
                "owner": owner,
                "project_id": project_id,
                "session_id": session_id,
                "user_metadata": user_metadata,
            }
        )
        if display_name is not UNSET:
            field_dict["display_name"] = display_name
        if status is not UNSET:
            field_dict["status"] = status

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.session_summary_user_metadata import SessionSummaryUserMetadata
        from ..models.status_summary_type_0 import StatusSummaryType0
        from ..models.status_summary_type_1 import StatusSummaryType1

        d = dict(src_dict)
        checkpoint_storage_bytes = d.pop("checkpoint_storage_bytes")

        checkpoints_count = d.pop("checkpoints_count")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        owner = d.pop("owner")

        project_id = d.pop("project_id")

        session_id = d.pop("session_id")

        user_metadata = SessionSummaryUserMetadata.from_dict(d.pop("user_metadata"))

        def _parse_display_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        display_name = _parse_display_name(d.pop("display_name", UNSET))

        def _parse_status(
            data: object,
        ) -> None | StatusSummaryType0 | StatusSummaryType1 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_status_summary_type_0 = StatusSummaryType0.from_dict(
                    data
                )

                return componentsschemas_status_summary_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_status_summary_type_1 = StatusSummaryType1.from_dict(
                    data
                )

                return componentsschemas_status_summary_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StatusSummaryType0 | StatusSummaryType1 | Unset, data)

        status = _parse_status(d.pop("status", UNSET))

        session_summary = cls(
            checkpoint_storage_bytes=checkpoint_storage_bytes,
            checkpoints_count=checkpoints_count,
            created_at=created_at,
            owner=owner,
            project_id=project_id,
            session_id=session_id,
            user_metadata=user_metadata,
            display_name=display_name,
            status=status,
        )

        session_summary.additional_properties = d
        return session_summary

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
