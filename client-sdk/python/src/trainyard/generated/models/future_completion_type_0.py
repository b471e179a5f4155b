from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.future_completion_type_0_state import FutureCompletionType0State

T = TypeVar("T", bound="FutureCompletionType0")


@_attrs_define
class FutureCompletionType0:
    """A future with a result.

    Attributes:
        request_id (str): Id of the future.
        response_payload_uncompressed_size (int): Size of the uncompressed result, in bytes.
        state (FutureCompletionType0State):
    """

    request_id: str
    response_payload_uncompressed_size: int
    state: FutureCompletionType0State
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        request_id = self.request_id

        response_payload_uncompressed_size = self.response_payload_uncompressed_size

        state = self.state.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "request_id": request_id,
                "response_payload_uncompressed_size": response_payload_uncompressed_size,
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        request_id = d.pop("request_id")

        response_payload_uncompressed_size = d.pop("response_payload_uncompressed_size")

        state = FutureCompletionType0State(d.pop("state"))

        future_completion_type_0 = cls(
            request_id=request_id,
            response_payload_uncompressed_size=response_payload_uncompressed_size,
            state=state,
        )

        future_completion_type_0.additional_properties = d
        return future_completion_type_0

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
