from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="SamplerResponse")


@_attrs_define
class SamplerResponse:
    """Response body of `samplers/{id}`.

    Attributes:
        base_model (str): Name of the base model.
        sampler_id (str): Id of the sampling session.
        model_path (None | str | Unset): Path of the checkpoint; absent for a base model and for a sampler in memory.
    """

    base_model: str
    sampler_id: str
    model_path: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        base_model = self.base_model

        sampler_id = self.sampler_id

        model_path: None | str | Unset
        if isinstance(self.model_path, Unset):
            model_path = UNSET
        else:
            model_path = self.model_path

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "base_model": base_model,
                "sampler_id": sampler_id,
            }
        )
        if model_path is not UNSET:
            field_dict["model_path"] = model_path

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        base_model = d.pop("base_model")

        sampler_id = d.pop("sampler_id")

        def _parse_model_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model_path = _parse_model_path(d.pop("model_path", UNSET))

        sampler_response = cls(
            base_model=base_model,
            sampler_id=sampler_id,
            model_path=model_path,
        )

        sampler_response.additional_properties = d
        return sampler_response

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
