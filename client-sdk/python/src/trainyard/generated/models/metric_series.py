from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="MetricSeries")


@_attrs_define
class MetricSeries:
    """Curve of a metric: three lists of the same length.

    Attributes:
        kind (str): Kind of the requests: `forward`, `forward_backward` or `optim_step`.
        metric (str): Name of the metric, as in results.
        recorded (int): Number of values in the range, which is larger than the lists if they were thinned out.
        steps (list[int]): Number of optimizer steps of the run before each request.
        times (list[int]): Time at which each request ended, in milliseconds since 1970.
        values (list[float | None]): Values of the metric; null for a number that was not finite.
    """

    kind: str
    metric: str
    recorded: int
    steps: list[int]
    times: list[int]
    values: list[float | None]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        metric = self.metric

        recorded = self.recorded

        steps = self.steps

        times = self.times

        values = []
        for values_item_data in self.values:
            values_item: float | None
            values_item = values_item_data
            values.append(values_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "metric": metric,
                "recorded": recorded,
                "steps": steps,
                "times": times,
                "values": values,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        kind = d.pop("kind")

        metric = d.pop("metric")

        recorded = d.pop("recorded")

        steps = cast(list[int], d.pop("steps"))

        times = cast(list[int], d.pop("times"))

        values = []
        _values = d.pop("values")
        for values_item_data in _values:

            def _parse_values_item(data: object) -> float | None:
                if data is None:
                    return data
                return cast(float | None, data)

            values_item = _parse_values_item(values_item_data)

            values.append(values_item)

        metric_series = cls(
            kind=kind,
            metric=metric,
            recorded=recorded,
            steps=steps,
            times=times,
            values=values,
        )

        metric_series.additional_properties = d
        return metric_series

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
