from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.usage_info_type_0 import UsageInfoType0
    from ..models.usage_info_type_1 import UsageInfoType1
    from ..models.usage_info_type_2 import UsageInfoType2
    from ..models.usage_info_type_3 import UsageInfoType3
    from ..models.usage_info_type_4 import UsageInfoType4


T = TypeVar("T", bound="UsageEvent")


@_attrs_define
class UsageEvent:
    """Usage of a session within an hour.

    Attributes:
        base_model (str): Name of the base model.
        bucket_end (datetime.datetime): End of the hour, in RFC 3339.
        bucket_start (datetime.datetime): Start of the hour, in RFC 3339.
        event_info (UsageInfoType0 | UsageInfoType1 | UsageInfoType2 | UsageInfoType3 | UsageInfoType4): Kind and amount
            of a usage.
        session_id (str): Id of the session.
        project_id (None | str | Unset): Project of the session.
        user_id (None | str | Unset): Email address of the user whose key created the session.
    """

    base_model: str
    bucket_end: datetime.datetime
    bucket_start: datetime.datetime
    event_info: (
        UsageInfoType0
        | UsageInfoType1
        | UsageInfoType2
        | UsageInfoType3
        | UsageInfoType4
    )
    session_id: str
    project_id: None | str | Unset = UNSET
    user_id: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.usage_info_type_0 import UsageInfoType0
        from ..models.usage_info_type_1 import UsageInfoType1
        from ..models.usage_info_type_2 import UsageInfoType2
        from ..models.usage_info_type_3 import UsageInfoType3

        base_model = self.base_model

        bucket_end = self.bucket_end.isoformat()

        bucket_start = self.bucket_start.isoformat()

        event_info: dict[str, Any]
        if (
            isinstance(self.event_info, UsageInfoType0)
            or isinstance(self.event_info, UsageInfoType1)
            or isinstance(self.event_info, UsageInfoType2)
            or isinstance(self.event_info, UsageInfoType3)
        ):
            event_info = self.event_info.to_dict()
        else:
            event_info = self.event_info.to_dict()

        session_id = self.session_id

        project_id: None | str | Unset
        if isinstance(self.project_id, Unset):
            project_id = UNSET
        else:
            project_id = self.project_id

        user_id: None | str | Unset
        if isinstance(self.user_id, Unset):
            user_id = UNSET
        else:
            user_id = self.user_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "base_model": base_model,
                "bucket_end": bucket_end,
                "bucket_start": bucket_start,
                "event_info": event_info,
                "session_id": session_id,
            }
        )
        if project_id is not UNSET:
            field_dict["project_id"] = project_id
        if user_id is not UNSET:
            field_dict["user_id"] = user_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.usage_info_type_0 import UsageInfoType0
        from ..models.usage_info_type_1 import UsageInfoType1
        from ..models.usage_info_type_2 import UsageInfoType2
        from ..models.usage_info_type_3 import UsageInfoType3
        from ..models.usage_info_type_4 import UsageInfoType4

        d = dict(src_dict)
        base_model = d.pop("base_model")

        bucket_end = datetime.datetime.fromisoformat(d.pop("bucket_end"))

        bucket_start = datetime.datetime.fromisoformat(d.pop("bucket_start"))

        def _parse_event_info(
            data: object,
        ) -> (
            UsageInfoType0
            | UsageInfoType1
            | UsageInfoType2
            | UsageInfoType3
            | UsageInfoType4
        ):
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_usage_info_type_0 = UsageInfoType0.from_dict(data)

                return componentsschemas_usage_info_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_usage_info_type_1 = UsageInfoType1.from_dict(data)

                return componentsschemas_usage_info_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_usage_info_type_2 = UsageInfoType2.from_dict(data)

                return componentsschemas_usage_info_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_usage_info_type_3 = UsageInfoType3.from_dict(data)

                return componentsschemas_usage_info_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_usage_info_type_4 = UsageInfoType4.from_dict(data)

            return componentsschemas_usage_info_type_4

        event_info = _parse_event_info(d.pop("event_info"))

        session_id = d.pop("session_id")

        def _parse_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        project_id = _parse_project_id(d.pop("project_id", UNSET))

        def _parse_user_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user_id = _parse_user_id(d.pop("user_id", UNSET))

        usage_event = cls(
            base_model=base_model,
            bucket_end=bucket_end,
            bucket_start=bucket_start,
            event_info=event_info,
            session_id=session_id,
            project_id=project_id,
            user_id=user_id,
        )

        usage_event.additional_properties = d
        return usage_event

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
