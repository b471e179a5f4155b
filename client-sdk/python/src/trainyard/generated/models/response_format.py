from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ResponseFormat")


@_attrs_define
class ResponseFormat:
    """Format of a reply.

    Attributes:
        type_ (str): `text`, `json_object` or `json_schema`.
        json_schema (Any | Unset): The `name` and the `schema`, for the type `json_schema`.
    """

    type_: str
    json_schema: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        json_schema = self.json_schema

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "type": type_,
            }
        )
        if json_schema is not UNSET:
            field_dict["json_schema"] = json_schema

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        type_ = d.pop("type")

        json_schema = d.pop("json_schema", UNSET)

        response_format = cls(
            type_=type_,
            json_schema=json_schema,
        )

        return response_format
