from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SupportedModel")


@_attrs_define
class SupportedModel:
    """A base model that the server serves.

    Attributes:
        max_context_length (int): Maximum length of prompt and completion together, in tokens.
        model_name (str): Name of the model.
        sampleable (bool): Whether it can be sampled from.
        trainable (bool): Whether runs can be created on it.
    """

    max_context_length: int
    model_name: str
    sampleable: bool
    trainable: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        max_context_length = self.max_context_length

        model_name = self.model_name

        sampleable = self.sampleable

        trainable = self.trainable

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "max_context_length": max_context_length,
                "model_name": model_name,
                "sampleable": sampleable,
                "trainable": trainable,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        max_context_length = d.pop("max_context_length")

        model_name = d.pop("model_name")

        sampleable = d.pop("sampleable")

        trainable = d.pop("trainable")

        supported_model = cls(
            max_context_length=max_context_length,
            model_name=model_name,
            sampleable=sampleable,
            trainable=trainable,
        )

        supported_model.additional_properties = d
        return supported_model

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
