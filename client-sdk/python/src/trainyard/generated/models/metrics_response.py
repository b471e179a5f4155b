from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.metric_series import MetricSeries


T = TypeVar("T", bound="MetricsResponse")


@_attrs_define
class MetricsResponse:
    """Response body of `training_runs/{run_id}/metrics`.

    Attributes:
        complete_from_step (int): First step from which no metrics were thinned out: 0 up to 750,000 requests.
        requests (int): Number of requests in the range, of all kinds that were selected.
        series (list[MetricSeries]): Curves, ordered by kind of request and then by metric.
        training_run_id (str): Id of the run.
    """

    complete_from_step: int
    requests: int
    series: list[MetricSeries]
    training_run_id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        complete_from_step = self.complete_from_step

        requests = self.requests

        series = []
        for series_item_data in self.series:
            series_item = series_item_data.to_dict()
            series.append(series_item)

        training_run_id = self.training_run_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "complete_from_step": complete_from_step,
                "requests": requests,
                "series": series,
                "training_run_id": training_run_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.metric_series import MetricSeries

        d = dict(src_dict)
        complete_from_step = d.pop("complete_from_step")

        requests = d.pop("requests")

        series = []
        _series = d.pop("series")
        for series_item_data in _series:
            series_item = MetricSeries.from_dict(series_item_data)

            series.append(series_item)

        training_run_id = d.pop("training_run_id")

        metrics_response = cls(
            complete_from_step=complete_from_step,
            requests=requests,
            series=series,
            training_run_id=training_run_id,
        )

        metrics_response.additional_properties = d
        return metrics_response

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
