from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.cursor import Cursor
    from ..models.training_run import TrainingRun


T = TypeVar("T", bound="TrainingRunsResponse")


@_attrs_define
class TrainingRunsResponse:
    """Response body of `training_runs`.

    Attributes:
        cursor (Cursor): Position of a page in its listing.
        training_runs (list[TrainingRun]): The training runs of this page.
    """

    cursor: Cursor
    training_runs: list[TrainingRun]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cursor = self.cursor.to_dict()

        training_runs = []
        for training_runs_item_data in self.training_runs:
            training_runs_item = training_runs_item_data.to_dict()
            training_runs.append(training_runs_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "cursor": cursor,
                "training_runs": training_runs,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.cursor import Cursor
        from ..models.training_run import TrainingRun

        d = dict(src_dict)
        cursor = Cursor.from_dict(d.pop("cursor"))

        training_runs = []
        _training_runs = d.pop("training_runs")
        for training_runs_item_data in _training_runs:
            training_runs_item = TrainingRun.from_dict(training_runs_item_data)

            training_runs.append(training_runs_item)

        training_runs_response = cls(
            cursor=cursor,
            training_runs=training_runs,
        )

        training_runs_response.additional_properties = d
        return training_runs_response

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
