from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="NumericsChange")


@_attrs_define
class NumericsChange:
    """The continuation of a run with other kernels, another data type or another layout.

    Attributes:
        from_ (str): How the run was computed before: data type, kernels, layout and version.
        time (datetime.datetime): Time of the change, in RFC 3339.
        to (str): How the run is computed from then on.
    """

    from_: str
    time: datetime.datetime
    to: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_

        time = self.time.isoformat()

        to = self.to

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "from": from_,
                "time": time,
                "to": to,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        from_ = d.pop("from")

        time = datetime.datetime.fromisoformat(d.pop("time"))

        to = d.pop("to")

        numerics_change = cls(
            from_=from_,
            time=time,
            to=to,
        )

        numerics_change.additional_properties = d
        return numerics_change

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
