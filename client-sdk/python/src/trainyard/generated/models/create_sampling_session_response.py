from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="CreateSamplingSessionResponse")


@_attrs_define
class CreateSamplingSessionResponse:
    """Response body of `create_sampling_session`.

    Attributes:
        sampling_session_id (str): Id of the sampling session: `<session>:sample:<n>`.
    """

    sampling_session_id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        sampling_session_id = self.sampling_session_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sampling_session_id": sampling_session_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        sampling_session_id = d.pop("sampling_session_id")

        create_sampling_session_response = cls(
            sampling_session_id=sampling_session_id,
        )

        create_sampling_session_response.additional_properties = d
        return create_sampling_session_response

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
