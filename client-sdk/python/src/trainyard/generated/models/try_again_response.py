from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="TryAgainResponse")


@_attrs_define
class TryAgainResponse:
    """Response body of `retrieve_future` while the result is pending.

    Attributes:
        queue_state (str): `active`, or `paused_rate_limit` or `paused_capacity` while the request waits for a quota or
            for capacity.
        request_id (str): Id of the future.
        type_ (str): Always the text `try_again`.
        queue_state_reason (None | str | Unset): The quota or the capacity that the request waits for.
    """

    queue_state: str
    request_id: str
    type_: str
    queue_state_reason: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        queue_state = self.queue_state

        request_id = self.request_id

        type_ = self.type_

        queue_state_reason: None | str | Unset
        if isinstance(self.queue_state_reason, Unset):
            queue_state_reason = UNSET
        else:
            queue_state_reason = self.queue_state_reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "queue_state": queue_state,
                "request_id": request_id,
                "type": type_,
            }
        )
        if queue_state_reason is not UNSET:
            field_dict["queue_state_reason"] = queue_state_reason

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        queue_state = d.pop("queue_state")

        request_id = d.pop("request_id")

        type_ = d.pop("type")

        def _parse_queue_state_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue_state_reason = _parse_queue_state_reason(
            d.pop("queue_state_reason", UNSET)
        )

        try_again_response = cls(
            queue_state=queue_state,
            request_id=request_id,
            type_=type_,
            queue_state_reason=queue_state_reason,
        )

        try_again_response.additional_properties = d
        return try_again_response

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
