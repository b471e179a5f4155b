from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AgentLimits")


@_attrs_define
class AgentLimits:
    """Limits of an agent session.

    Attributes:
        max_tokens (int | None | Unset): Tokens that all turns together may sample; by default as many as possible.
        max_tools (int | None | Unset): Tools that a request may offer; any number by default.
        max_turns (int | None | Unset): Number of turns, 256 by default; each reply of a request is one.
        seconds (int | None | Unset): Seconds until the session expires, 3600 by default.
    """

    max_tokens: int | None | Unset = UNSET
    max_tools: int | None | Unset = UNSET
    max_turns: int | None | Unset = UNSET
    seconds: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        max_tokens: int | None | Unset
        if isinstance(self.max_tokens, Unset):
            max_tokens = UNSET
        else:
            max_tokens = self.max_tokens

        max_tools: int | None | Unset
        if isinstance(self.max_tools, Unset):
            max_tools = UNSET
        else:
            max_tools = self.max_tools

        max_turns: int | None | Unset
        if isinstance(self.max_turns, Unset):
            max_turns = UNSET
        else:
            max_turns = self.max_turns

        seconds: int | None | Unset
        if isinstance(self.seconds, Unset):
            seconds = UNSET
        else:
            seconds = self.seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if max_tokens is not UNSET:
            field_dict["max_tokens"] = max_tokens
        if max_tools is not UNSET:
            field_dict["max_tools"] = max_tools
        if max_turns is not UNSET:
            field_dict["max_turns"] = max_turns
        if seconds is not UNSET:
            field_dict["seconds"] = seconds

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_max_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_tokens = _parse_max_tokens(d.pop("max_tokens", UNSET))

        def _parse_max_tools(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_tools = _parse_max_tools(d.pop("max_tools", UNSET))

        def _parse_max_turns(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_turns = _parse_max_turns(d.pop("max_turns", UNSET))

        def _parse_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seconds = _parse_seconds(d.pop("seconds", UNSET))

        agent_limits = cls(
            max_tokens=max_tokens,
            max_tools=max_tools,
            max_turns=max_turns,
            seconds=seconds,
        )

        return agent_limits
