from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.finish_kind import FinishKind
from ..models.status_query_type_3_type import StatusQueryType3Type
from ..types import UNSET, Unset

T = TypeVar("T", bound="StatusQueryType3")


@_attrs_define
class StatusQueryType3:
    """The client finished the session.

    Attributes:
        type_ (StatusQueryType3Type):
        reasons (list[FinishKind] | None | Unset): Reasons, one of which the client must have given; any by default.
    """

    type_: StatusQueryType3Type
    reasons: list[FinishKind] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_.value

        reasons: list[str] | None | Unset
        if isinstance(self.reasons, Unset):
            reasons = UNSET
        elif isinstance(self.reasons, list):
            reasons = []
            for reasons_type_0_item_data in self.reasons:
                reasons_type_0_item = reasons_type_0_item_data.value
                reasons.append(reasons_type_0_item)

        else:
            reasons = self.reasons

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
            }
        )
        if reasons is not UNSET:
            field_dict["reasons"] = reasons

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        type_ = StatusQueryType3Type(d.pop("type"))

        def _parse_reasons(data: object) -> list[FinishKind] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                reasons_type_0 = []
                _reasons_type_0 = data
                for reasons_type_0_item_data in _reasons_type_0:
                    reasons_type_0_item = FinishKind(reasons_type_0_item_data)

                    reasons_type_0.append(reasons_type_0_item)

                return reasons_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[FinishKind] | None | Unset, data)

        reasons = _parse_reasons(d.pop("reasons", UNSET))

        status_query_type_3 = cls(
            type_=type_,
            reasons=reasons,
        )

        status_query_type_3.additional_properties = d
        return status_query_type_3

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
