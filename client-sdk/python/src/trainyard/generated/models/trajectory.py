from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.datum_body import DatumBody
    from ..models.trajectory_turn import TrajectoryTurn


T = TypeVar("T", bound="Trajectory")


@_attrs_define
class Trajectory:
    """A branch of an agent session: the turns from a first one to one that no other turn continues.

    Attributes:
        branch (str): Id of the branch's last turn.
        datum (DatumBody): A training example in JSON.
        truncated (bool): Whether the last reply was cut off by a limit on its length.
        turns (list[TrajectoryTurn]): Turns of the branch, in order.
        reward (float | None | Unset): Reward of the branch, else of the session, if one was posted.
    """

    branch: str
    datum: DatumBody
    truncated: bool
    turns: list[TrajectoryTurn]
    reward: float | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        branch = self.branch

        datum = self.datum.to_dict()

        truncated = self.truncated

        turns = []
        for turns_item_data in self.turns:
            turns_item = turns_item_data.to_dict()
            turns.append(turns_item)

        reward: float | None | Unset
        if isinstance(self.reward, Unset):
            reward = UNSET
        else:
            reward = self.reward

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "branch": branch,
                "datum": datum,
                "truncated": truncated,
                "turns": turns,
            }
        )
        if reward is not UNSET:
            field_dict["reward"] = reward

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.datum_body import DatumBody
        from ..models.trajectory_turn import TrajectoryTurn

        d = dict(src_dict)
        branch = d.pop("branch")

        datum = DatumBody.from_dict(d.pop("datum"))

        truncated = d.pop("truncated")

        turns = []
        _turns = d.pop("turns")
        for turns_item_data in _turns:
            turns_item = TrajectoryTurn.from_dict(turns_item_data)

            turns.append(turns_item)

        def _parse_reward(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        reward = _parse_reward(d.pop("reward", UNSET))

        trajectory = cls(
            branch=branch,
            datum=datum,
            truncated=truncated,
            turns=turns,
            reward=reward,
        )

        trajectory.additional_properties = d
        return trajectory

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
