from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.organisation import Organisation


T = TypeVar("T", bound="OrganisationsResponse")


@_attrs_define
class OrganisationsResponse:
    """Response body of `GET admin/organisations`.

    Attributes:
        organisations (list[Organisation]): The organisations that the caller manages, ordered by name.
    """

    organisations: list[Organisation]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        organisations = []
        for organisations_item_data in self.organisations:
            organisations_item = organisations_item_data.to_dict()
            organisations.append(organisations_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "organisations": organisations,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.organisation import Organisation

        d = dict(src_dict)
        organisations = []
        _organisations = d.pop("organisations")
        for organisations_item_data in _organisations:
            organisations_item = Organisation.from_dict(organisations_item_data)

            organisations.append(organisations_item)

        organisations_response = cls(
            organisations=organisations,
        )

        organisations_response.additional_properties = d
        return organisations_response

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
