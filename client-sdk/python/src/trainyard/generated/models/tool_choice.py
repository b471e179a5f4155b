from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ToolChoice")


@_attrs_define
class ToolChoice:
    """Whether the model may call tools.

    Attributes:
        type_ (str): `auto`, `none`, `any` or `tool`. The input of required calls follows the tool's schema.
        disable_parallel_tool_use (bool | None | Unset): Whether to allow at most one call. With the type `auto`, true
            is refused.
        name (None | str | Unset): Name of the tool, for the type `tool`.
    """

    type_: str
    disable_parallel_tool_use: bool | None | Unset = UNSET
    name: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        disable_parallel_tool_use: bool | None | Unset
        if isinstance(self.disable_parallel_tool_use, Unset):
            disable_parallel_tool_use = UNSET
        else:
            disable_parallel_tool_use = self.disable_parallel_tool_use

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "type": type_,
            }
        )
        if disable_parallel_tool_use is not UNSET:
            field_dict["disable_parallel_tool_use"] = disable_parallel_tool_use
        if name is not UNSET:
            field_dict["name"] = name

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        type_ = d.pop("type")

        def _parse_disable_parallel_tool_use(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        disable_parallel_tool_use = _parse_disable_parallel_tool_use(
            d.pop("disable_parallel_tool_use", UNSET)
        )

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        tool_choice = cls(
            type_=type_,
            disable_parallel_tool_use=disable_parallel_tool_use,
            name=name,
        )

        return tool_choice
