from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ModelData")


@_attrs_define
class ModelData:
    """A base model, as `get_info` describes it.

    Attributes:
        arch (str): Family of the model.
        model_name (str): Name of the model.
        tokenizer_id (None | str | Unset): Name under which its tokenizer is published, if it differs from the model's.
    """

    arch: str
    model_name: str
    tokenizer_id: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        arch = self.arch

        model_name = self.model_name

        tokenizer_id: None | str | Unset
        if isinstance(self.tokenizer_id, Unset):
            tokenizer_id = UNSET
        else:
            tokenizer_id = self.tokenizer_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "arch": arch,
                "model_name": model_name,
            }
        )
        if tokenizer_id is not UNSET:
            field_dict["tokenizer_id"] = tokenizer_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        arch = d.pop("arch")

        model_name = d.pop("model_name")

        def _parse_tokenizer_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tokenizer_id = _parse_tokenizer_id(d.pop("tokenizer_id", UNSET))

        model_data = cls(
            arch=arch,
            model_name=model_name,
            tokenizer_id=tokenizer_id,
        )

        model_data.additional_properties = d
        return model_data

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
