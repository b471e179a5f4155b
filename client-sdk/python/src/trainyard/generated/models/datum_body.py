from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.datum_body_loss_fn_inputs import DatumBodyLossFnInputs
    from ..models.model_input import ModelInput


T = TypeVar("T", bound="DatumBody")


@_attrs_define
class DatumBody:
    """A training example in JSON.

    Attributes:
        model_input (ModelInput): Input of a model, as a list of pieces.
        loss_fn_inputs (DatumBodyLossFnInputs | Unset): Inputs of the loss function, by name.
    """

    model_input: ModelInput
    loss_fn_inputs: DatumBodyLossFnInputs | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        model_input = self.model_input.to_dict()

        loss_fn_inputs: dict[str, Any] | Unset = UNSET
        if not isinstance(self.loss_fn_inputs, Unset):
            loss_fn_inputs = self.loss_fn_inputs.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "model_input": model_input,
            }
        )
        if loss_fn_inputs is not UNSET:
            field_dict["loss_fn_inputs"] = loss_fn_inputs

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.datum_body_loss_fn_inputs import DatumBodyLossFnInputs
        from ..models.model_input import ModelInput

        d = dict(src_dict)
        model_input = ModelInput.from_dict(d.pop("model_input"))

        _loss_fn_inputs = d.pop("loss_fn_inputs", UNSET)
        loss_fn_inputs: DatumBodyLossFnInputs | Unset
        if isinstance(_loss_fn_inputs, Unset):
            loss_fn_inputs = UNSET
        else:
            loss_fn_inputs = DatumBodyLossFnInputs.from_dict(_loss_fn_inputs)

        datum_body = cls(
            model_input=model_input,
            loss_fn_inputs=loss_fn_inputs,
        )

        datum_body.additional_properties = d
        return datum_body

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
