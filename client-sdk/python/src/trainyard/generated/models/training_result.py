from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.training_result_loss_fn_outputs_item import (
        TrainingResultLossFnOutputsItem,
    )
    from ..models.training_result_metrics import TrainingResultMetrics


T = TypeVar("T", bound="TrainingResult")


@_attrs_define
class TrainingResult:
    """Result of `forward` and `forward_backward`.

    Attributes:
        loss_fn_output_type (str): Type of the outputs.
        loss_fn_outputs (list[TrainingResultLossFnOutputsItem]): Outputs of each datum in the order of the request:
            `logprobs`, `elementwise_loss`, `entropies` if a datum has
            `entropy_weights`, and `kl` if one has `kl_weights`.
        metrics (TrainingResultMetrics): Metrics, with keys of the form `name:reduction`, such as `loss:sum`.
    """

    loss_fn_output_type: str
    loss_fn_outputs: list[TrainingResultLossFnOutputsItem]
    metrics: TrainingResultMetrics
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        loss_fn_output_type = self.loss_fn_output_type

        loss_fn_outputs = []
        for loss_fn_outputs_item_data in self.loss_fn_outputs:
            loss_fn_outputs_item = loss_fn_outputs_item_data.to_dict()
            loss_fn_outputs.append(loss_fn_outputs_item)

        metrics = self.metrics.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "loss_fn_output_type": loss_fn_output_type,
                "loss_fn_outputs": loss_fn_outputs,
                "metrics": metrics,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.training_result_loss_fn_outputs_item import (
            TrainingResultLossFnOutputsItem,
        )
        from ..models.training_result_metrics import TrainingResultMetrics

        d = dict(src_dict)
        loss_fn_output_type = d.pop("loss_fn_output_type")

        loss_fn_outputs = []
        _loss_fn_outputs = d.pop("loss_fn_outputs")
        for loss_fn_outputs_item_data in _loss_fn_outputs:
            loss_fn_outputs_item = TrainingResultLossFnOutputsItem.from_dict(
                loss_fn_outputs_item_data
            )

            loss_fn_outputs.append(loss_fn_outputs_item)

        metrics = TrainingResultMetrics.from_dict(d.pop("metrics"))

        training_result = cls(
            loss_fn_output_type=loss_fn_output_type,
            loss_fn_outputs=loss_fn_outputs,
            metrics=metrics,
        )

        training_result.additional_properties = d
        return training_result

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
