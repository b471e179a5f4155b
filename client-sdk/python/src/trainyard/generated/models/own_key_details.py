from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.own_key_organisation import OwnKeyOrganisation
    from ..models.own_key_user import OwnKeyUser


T = TypeVar("T", bound="OwnKeyDetails")


@_attrs_define
class OwnKeyDetails:
    """The owner of a key.

    Attributes:
        org_details (OwnKeyOrganisation): The organisation that a key belongs to.
        user_details (OwnKeyUser): The user that a key belongs to.
    """

    org_details: OwnKeyOrganisation
    user_details: OwnKeyUser
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        org_details = self.org_details.to_dict()

        user_details = self.user_details.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "org_details": org_details,
                "user_details": user_details,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.own_key_organisation import OwnKeyOrganisation
        from ..models.own_key_user import OwnKeyUser

        d = dict(src_dict)
        org_details = OwnKeyOrganisation.from_dict(d.pop("org_details"))

        user_details = OwnKeyUser.from_dict(d.pop("user_details"))

        own_key_details = cls(
            org_details=org_details,
            user_details=user_details,
        )

        own_key_details.additional_properties = d
        return own_key_details

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
