from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.future_completion_type_1_state import FutureCompletionType1State

T = TypeVar("T", bound="FutureCompletionType1")


@_attrs_define
class FutureCompletionType1:
    """A future whose request failed.

    Attributes:
        request_id (str): Id of the future.
        state (FutureCompletionType1State):
    """

    request_id: str
    state: FutureCompletionType1State
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        request_id = self.request_id

        state = self.state.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "request_id": request_id,
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        request_id = d.pop("request_id")

        state = FutureCompletionType1State(d.pop("state"))

        future_completion_type_1 = cls(
            request_id=request_id,
            state=state,
        )

        future_completion_type_1.additional_properties = d
        return future_completion_type_1

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
