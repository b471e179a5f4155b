from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.trajectory import Trajectory


T = TypeVar("T", bound="TrajectoriesResponse")


@_attrs_define
class TrajectoriesResponse:
    """Response body of `GET agent_sessions/{id}/trajectories`.

    Attributes:
        trajectories (list[Trajectory]): Branches of the page, in the order of their last turns.
        next_offset (int | None | Unset): `offset` of the next page; absent on the last one.
    """

    trajectories: list[Trajectory]
    next_offset: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        trajectories = []
        for trajectories_item_data in self.trajectories:
            trajectories_item = trajectories_item_data.to_dict()
            trajectories.append(trajectories_item)

        next_offset: int | None | Unset
        if isinstance(self.next_offset, Unset):
            next_offset = UNSET
        else:
            next_offset = self.next_offset

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "trajectories": trajectories,
            }
        )
        if next_offset is not UNSET:
            field_dict["next_offset"] = next_offset

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.trajectory import Trajectory

        d = dict(src_dict)
        trajectories = []
        _trajectories = d.pop("trajectories")
        for trajectories_item_data in _trajectories:
            trajectories_item = Trajectory.from_dict(trajectories_item_data)

            trajectories.append(trajectories_item)

        def _parse_next_offset(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        next_offset = _parse_next_offset(d.pop("next_offset", UNSET))

        trajectories_response = cls(
            trajectories=trajectories,
            next_offset=next_offset,
        )

        trajectories_response.additional_properties = d
        return trajectories_response

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
