from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="StorageInUse")


@_attrs_define
class StorageInUse:
    """Storage in use now.

    Attributes:
        checkpoint_count (int): Number of these checkpoints.
        size_bytes (int): Size of all their files, in bytes.
        size_gigabytes (float): Size of all their files, in units of 10^9 bytes.
        project_id (None | str | Unset): Project of the sessions.
        user_email (None | str | Unset): Email address of the user whose keys created the sessions.
    """

    checkpoint_count: int
    size_bytes: int
    size_gigabytes: float
    project_id: None | str | Unset = UNSET
    user_email: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        checkpoint_count = self.checkpoint_count

        size_bytes = self.size_bytes

        size_gigabytes = self.size_gigabytes

        project_id: None | str | Unset
        if isinstance(self.project_id, Unset):
            project_id = UNSET
        else:
            project_id = self.project_id

        user_email: None | str | Unset
        if isinstance(self.user_email, Unset):
            user_email = UNSET
        else:
            user_email = self.user_email

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checkpoint_count": checkpoint_count,
                "size_bytes": size_bytes,
                "size_gigabytes": size_gigabytes,
            }
        )
        if project_id is not UNSET:
            field_dict["project_id"] = project_id
        if user_email is not UNSET:
            field_dict["user_email"] = user_email

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        checkpoint_count = d.pop("checkpoint_count")

        size_bytes = d.pop("size_bytes")

        size_gigabytes = d.pop("size_gigabytes")

        def _parse_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        project_id = _parse_project_id(d.pop("project_id", UNSET))

        def _parse_user_email(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user_email = _parse_user_email(d.pop("user_email", UNSET))

        storage_in_use = cls(
            checkpoint_count=checkpoint_count,
            size_bytes=size_bytes,
            size_gigabytes=size_gigabytes,
            project_id=project_id,
            user_email=user_email,
        )

        storage_in_use.additional_properties = d
        return storage_in_use

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
