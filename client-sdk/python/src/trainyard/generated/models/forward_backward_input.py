from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.datum_body import DatumBody
    from ..models.forward_backward_input_loss_fn_config import (
        ForwardBackwardInputLossFnConfig,
    )


T = TypeVar("T", bound="ForwardBackwardInput")


@_attrs_define
class ForwardBackwardInput:
    """Training examples and their loss.

    Attributes:
        data (list[DatumBody]): Training examples of the batch.
        loss_fn (str): Name of the loss function.
        loss_fn_config (ForwardBackwardInputLossFnConfig | Unset): Settings of the loss function: numbers and texts.
    """

    data: list[DatumBody]
    loss_fn: str
    loss_fn_config: ForwardBackwardInputLossFnConfig | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        data = []
        for data_item_data in self.data:
            data_item = data_item_data.to_dict()
            data.append(data_item)

        loss_fn = self.loss_fn

        loss_fn_config: dict[str, Any] | Unset = UNSET
        if not isinstance(self.loss_fn_config, Unset):
            loss_fn_config = self.loss_fn_config.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "data": data,
                "loss_fn": loss_fn,
            }
        )
        if loss_fn_config is not UNSET:
            field_dict["loss_fn_config"] = loss_fn_config

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.datum_body import DatumBody
        from ..models.forward_backward_input_loss_fn_config import (
            ForwardBackwardInputLossFnConfig,
        )

        d = dict(src_dict)
        data = []
        _data = d.pop("data")
        for data_item_data in _data:
            data_item = DatumBody.from_dict(data_item_data)

            data.append(data_item)

        loss_fn = d.pop("loss_fn")

        _loss_fn_config = d.pop("loss_fn_config", UNSET)
        loss_fn_config: ForwardBackwardInputLossFnConfig | Unset
        if isinstance(_loss_fn_config, Unset):
            loss_fn_config = UNSET
        else:
            loss_fn_config = ForwardBackwardInputLossFnConfig.from_dict(_loss_fn_config)

        forward_backward_input = cls(
            data=data,
            loss_fn=loss_fn,
            loss_fn_config=loss_fn_config,
        )

        forward_backward_input.additional_properties = d
        return forward_backward_input

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
