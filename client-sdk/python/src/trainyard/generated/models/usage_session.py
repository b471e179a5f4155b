from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.usage_session_user_metadata import UsageSessionUserMetadata


T = TypeVar("T", bound="UsageSession")


@_attrs_define
class UsageSession:
    """A session that usage refers to.

    Attributes:
        user_metadata (UsageSessionUserMetadata): Metadata that the client set when it created the session.
    """

    user_metadata: UsageSessionUserMetadata
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        user_metadata = self.user_metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "user_metadata": user_metadata,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.usage_session_user_metadata import UsageSessionUserMetadata

        d = dict(src_dict)
        user_metadata = UsageSessionUserMetadata.from_dict(d.pop("user_metadata"))

        usage_session = cls(
            user_metadata=user_metadata,
        )

        usage_session.additional_properties = d
        return usage_session

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
