from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AgentRewardRequest")


@_attrs_define
class AgentRewardRequest:
    """Request body of `POST agent_sessions/{id}/rewards`. Without `turn_id` and `branch` it concerns the whole session.

    Attributes:
        reward (float): Reward: a finite number, which replaces an earlier one.
        branch (None | str | Unset): Id of the last turn of the branch to reward.
        turn_id (None | str | Unset): Id of the turn to reward.
    """

    reward: float
    branch: None | str | Unset = UNSET
    turn_id: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        reward = self.reward

        branch: None | str | Unset
        if isinstance(self.branch, Unset):
            branch = UNSET
        else:
            branch = self.branch

        turn_id: None | str | Unset
        if isinstance(self.turn_id, Unset):
            turn_id = UNSET
        else:
            turn_id = self.turn_id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "reward": reward,
            }
        )
        if branch is not UNSET:
            field_dict["branch"] = branch
        if turn_id is not UNSET:
            field_dict["turn_id"] = turn_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        reward = d.pop("reward")

        def _parse_branch(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        branch = _parse_branch(d.pop("branch", UNSET))

        def _parse_turn_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        turn_id = _parse_turn_id(d.pop("turn_id", UNSET))

        agent_reward_request = cls(
            reward=reward,
            branch=branch,
            turn_id=turn_id,
        )

        return agent_reward_request
