from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.agent_limits import AgentLimits


T = TypeVar("T", bound="AgentSessionResponse")


@_attrs_define
class AgentSessionResponse:
    """An agent session with its limits and what is used of them.

    Attributes:
        agent_session_id (str): Id of the session.
        base_model (str): Base model of the weights.
        created_at (datetime.datetime): Time of creation, in RFC 3339.
        expires_at (datetime.datetime): Time from which the key is refused, in RFC 3339.
        limits (AgentLimits): Limits of an agent session.
        state (str): `open`, `ended` (by a call) or `expired`.
        tokens (int): Tokens sampled so far.
        turns (int): Number of turns so far.
        model_path (None | str | Unset): Sampler checkpoint from which the session samples.
        reward (float | None | Unset): Reward of the whole session, if one was posted.
        sampling_session_id (None | str | Unset): Sampling session whose weights are sampled.
    """

    agent_session_id: str
    base_model: str
    created_at: datetime.datetime
    expires_at: datetime.datetime
    limits: AgentLimits
    state: str
    tokens: int
    turns: int
    model_path: None | str | Unset = UNSET
    reward: float | None | Unset = UNSET
    sampling_session_id: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        agent_session_id = self.agent_session_id

        base_model = self.base_model

        created_at = self.created_at.isoformat()

        expires_at = self.expires_at.isoformat()

        limits = self.limits.to_dict()

        state = self.state

        tokens = self.tokens

        turns = self.turns

        model_path: None | str | Unset
        if isinstance(self.model_path, Unset):
            model_path = UNSET
        else:
            model_path = self.model_path

        reward: float | None | Unset
        if isinstance(self.reward, Unset):
            reward = UNSET
        else:
            reward = self.reward

        sampling_session_id: None | str | Unset
        if isinstance(self.sampling_session_id, Unset):
            sampling_session_id = UNSET
        else:
            sampling_session_id = self.sampling_session_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "agent_session_id": agent_session_id,
                "base_model": base_model,
                "created_at": created_at,
                "expires_at": expires_at,
                "limits": limits,
                "state": state,
                "tokens": tokens,
                "turns": turns,
            }
        )
        if model_path is not UNSET:
            field_dict["model_path"] = model_path
        if reward is not UNSET:
            field_dict["reward"] = reward
        if sampling_session_id is not UNSET:
            field_dict["sampling_session_id"] = sampling_session_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.agent_limits import AgentLimits

        d = dict(src_dict)
        agent_session_id = d.pop("agent_session_id")

        base_model = d.pop("base_model")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        limits = AgentLimits.from_dict(d.pop("limits"))

        state = d.pop("state")

        tokens = d.pop("tokens")

        turns = d.pop("turns")

        def _parse_model_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model_path = _parse_model_path(d.pop("model_path", UNSET))

        def _parse_reward(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        reward = _parse_reward(d.pop("reward", UNSET))

        def _parse_sampling_session_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        sampling_session_id = _parse_sampling_session_id(
            d.pop("sampling_session_id", UNSET)
        )

        agent_session_response = cls(
            agent_session_id=agent_session_id,
            base_model=base_model,
            created_at=created_at,
            expires_at=expires_at,
            limits=limits,
            state=state,
            tokens=tokens,
            turns=turns,
            model_path=model_path,
            reward=reward,
            sampling_session_id=sampling_session_id,
        )

        agent_session_response.additional_properties = d
        return agent_session_response

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
