from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.create_session_request_user_metadata import (
        CreateSessionRequestUserMetadata,
    )


T = TypeVar("T", bound="CreateSessionRequest")


@_attrs_define
class CreateSessionRequest:
    """Request body of `create_session`.

    Attributes:
        display_name (None | str | Unset): Name for display; any text.
        project_id (None | str | Unset): Id of the project that the session belongs to.
        sdk_version (str | Unset): Version of the client.
        tags (list[str] | Unset): Labels for the session.
        user_metadata (CreateSessionRequestUserMetadata | Unset): Metadata to store with the session.
    """

    display_name: None | str | Unset = UNSET
    project_id: None | str | Unset = UNSET
    sdk_version: str | Unset = UNSET
    tags: list[str] | Unset = UNSET
    user_metadata: CreateSessionRequestUserMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        display_name: None | str | Unset
        if isinstance(self.display_name, Unset):
            display_name = UNSET
        else:
            display_name = self.display_name

        project_id: None | str | Unset
        if isinstance(self.project_id, Unset):
            project_id = UNSET
        else:
            project_id = self.project_id

        sdk_version = self.sdk_version

        tags: list[str] | Unset = UNSET
        if not isinstance(self.tags, Unset):
            tags = self.tags

        user_metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.user_metadata, Unset):
            user_metadata = self.user_metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if display_name is not UNSET:
            field_dict["display_name"] = display_name
        if project_id is not UNSET:
            field_dict["project_id"] = project_id
        if sdk_version is not UNSET:
            field_dict["sdk_version"] = sdk_version
        if tags is not UNSET:
            field_dict["tags"] = tags
        if user_metadata is not UNSET:
            field_dict["user_metadata"] = user_metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.create_session_request_user_metadata import (
            CreateSessionRequestUserMetadata,
        )

        d = dict(src_dict)

        def _parse_display_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        display_name = _parse_display_name(d.pop("display_name", UNSET))

        def _parse_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        project_id = _parse_project_id(d.pop("project_id", UNSET))

        sdk_version = d.pop("sdk_version", UNSET)

        tags = cast(list[str], d.pop("tags", UNSET))

        _user_metadata = d.pop("user_metadata", UNSET)
        user_metadata: CreateSessionRequestUserMetadata | Unset
        if isinstance(_user_metadata, Unset):
            user_metadata = UNSET
        else:
            user_metadata = CreateSessionRequestUserMetadata.from_dict(_user_metadata)

        create_session_request = cls(
            display_name=display_name,
            project_id=project_id,
            sdk_version=sdk_version,
            tags=tags,
            user_metadata=user_metadata,
        )

        create_session_request.additional_properties = d
        return create_session_request

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
