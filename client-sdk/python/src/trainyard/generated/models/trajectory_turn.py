from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="TrajectoryTurn")


@_attrs_define
class TrajectoryTurn:
    """A turn of a branch.

    Attributes:
        finish_reason (str): `stop`, `length` or `tool_calls`.
        start (int): Position of the first sampled token in the branch.
        temperature (float): Temperature at which the turn was sampled; its log-probabilities are those of that
            temperature.
        tokens (int): Number of sampled tokens.
        trained (bool): Whether this branch trains the turn. A turn of several branches is trained in the first one.
        turn_id (str): Id of the turn: that of its request, a dot, and the position among the request's replies.
        weights (str): Weights that sampled the turn: a base model, a sampler checkpoint or a sampling session.
        branch_reason (None | str | Unset): Why the turn does not continue an earlier one, if the session had turns.
        reward (float | None | Unset): Reward of the turn, if one was posted.
    """

    finish_reason: str
    start: int
    temperature: float
    tokens: int
    trained: bool
    turn_id: str
    weights: str
    branch_reason: None | str | Unset = UNSET
    reward: float | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        finish_reason = self.finish_reason

        start = self.start

        temperature = self.temperature

        tokens = self.tokens

        trained = self.trained

        turn_id = self.turn_id

        weights = self.weights

        branch_reason: None | str | Unset
        if isinstance(self.branch_reason, Unset):
            branch_reason = UNSET
        else:
            branch_reason = self.branch_reason

        reward: float | None | Unset
        if isinstance(self.reward, Unset):
            reward = UNSET
        else:
            reward = self.reward

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "finish_reason": finish_reason,
                "start": start,
                "temperature": temperature,
                "tokens": tokens,
                "trained": trained,
                "turn_id": turn_id,
                "weights": weights,
            }
        )
        if branch_reason is not UNSET:
            field_dict["branch_reason"] = branch_reason
        if reward is not UNSET:
            field_dict["reward"] = reward

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        finish_reason = d.pop("finish_reason")

        start = d.pop("start")

        temperature = d.pop("temperature")

        tokens = d.pop("tokens")

        trained = d.pop("trained")

        turn_id = d.pop("turn_id")

        weights = d.pop("weights")

        def _parse_branch_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        branch_reason = _parse_branch_reason(d.pop("branch_reason", UNSET))

        def _parse_reward(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        reward = _parse_reward(d.pop("reward", UNSET))

        trajectory_turn = cls(
            finish_reason=finish_reason,
            start=start,
            temperature=temperature,
            tokens=tokens,
            trained=trained,
            turn_id=turn_id,
            weights=weights,
            branch_reason=branch_reason,
            reward=reward,
        )

        trajectory_turn.additional_properties = d
        return trajectory_turn

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
