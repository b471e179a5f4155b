from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="CreateAgentSessionResponse")


@_attrs_define
class CreateAgentSessionResponse:
    """Response body of `POST agent_sessions`.

    Attributes:
        agent_session_id (str): Id of the session.
        anthropic_base_url (str): Base URL for clients of the Anthropic API, which add `/v1` themselves.
        api_key (str): Key of the session, which is returned only once; the server stores its SHA-256.
        base_url (str): Base URL for clients of the OpenAI API; it ends with `/v1`.
        expires_at (datetime.datetime): Time from which the key is refused, in RFC 3339.
    """

    agent_session_id: str
    anthropic_base_url: str
    api_key: str
    base_url: str
    expires_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        agent_session_id = self.agent_session_id

        anthropic_base_url = self.anthropic_base_url

        api_key = self.api_key

        base_url = self.base_url

        expires_at = self.expires_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "agent_session_id": agent_session_id,
                "anthropic_base_url": anthropic_base_url,
                "api_key": api_key,
                "base_url": base_url,
                "expires_at": expires_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        agent_session_id = d.pop("agent_session_id")

        anthropic_base_url = d.pop("anthropic_base_url")

        api_key = d.pop("api_key")

        base_url = d.pop("base_url")

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        create_agent_session_response = cls(
            agent_session_id=agent_session_id,
            anthropic_base_url=anthropic_base_url,
            api_key=api_key,
            base_url=base_url,
            expires_at=expires_at,
        )

        create_agent_session_response.additional_properties = d
        return create_agent_session_response

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
