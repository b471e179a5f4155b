from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.agent_session_response import AgentSessionResponse


T = TypeVar("T", bound="AgentSessionsResponse")


@_attrs_define
class AgentSessionsResponse:
    """Response body of `GET agent_sessions`.

    Attributes:
        agent_sessions (list[AgentSessionResponse]): Sessions of the page, newest first.
    """

    agent_sessions: list[AgentSessionResponse]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        agent_sessions = []
        for agent_sessions_item_data in self.agent_sessions:
            agent_sessions_item = agent_sessions_item_data.to_dict()
            agent_sessions.append(agent_sessions_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "agent_sessions": agent_sessions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.agent_session_response import AgentSessionResponse

        d = dict(src_dict)
        agent_sessions = []
        _agent_sessions = d.pop("agent_sessions")
        for agent_sessions_item_data in _agent_sessions:
            agent_sessions_item = AgentSessionResponse.from_dict(
                agent_sessions_item_data
            )

            agent_sessions.append(agent_sessions_item)

        agent_sessions_response = cls(
            agent_sessions=agent_sessions,
        )

        agent_sessions_response.additional_properties = d
        return agent_sessions_response

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
