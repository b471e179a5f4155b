from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="FuturesTarget")


@_attrs_define
class FuturesTarget:
    """A sampling session, which may be that of a clone.

    Attributes:
        sampling_session_id (str): Id of the sampling session.
        cloned_sampler_id (int | Unset): Number of the clone: `seq_id` divided by 10^9.
        type_ (str | Unset): Always the text `sampling_session`.
    """

    sampling_session_id: str
    cloned_sampler_id: int | Unset = UNSET
    type_: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        sampling_session_id = self.sampling_session_id

        cloned_sampler_id = self.cloned_sampler_id

        type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sampling_session_id": sampling_session_id,
            }
        )
        if cloned_sampler_id is not UNSET:
            field_dict["cloned_sampler_id"] = cloned_sampler_id
        if type_ is not UNSET:
            field_dict["type"] = type_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        sampling_session_id = d.pop("sampling_session_id")

        cloned_sampler_id = d.pop("cloned_sampler_id", UNSET)

        type_ = d.pop("type", UNSET)

        futures_target = cls(
            sampling_session_id=sampling_session_id,
            cloned_sampler_id=cloned_sampler_id,
            type_=type_,
        )

        futures_target.additional_properties = d
        return futures_target

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
