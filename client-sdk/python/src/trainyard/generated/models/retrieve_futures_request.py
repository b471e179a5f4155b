from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.futures_target import FuturesTarget


T = TypeVar("T", bound="RetrieveFuturesRequest")


@_attrs_define
class RetrieveFuturesRequest:
    """Request body of `retrieve_futures`.

    Attributes:
        target (FuturesTarget): A sampling session, which may be that of a clone.
        prev_cursor (int | Unset): Cursor of the previous answer; 0 at first.
        retrieved_request_ids (list[str] | Unset): Results that the server may drop: at most 16,384 ids of 64 bytes. Ids
            from a key with only read access are
            ignored.
        timeout (float | None | Unset): Maximum time to wait, in seconds. 0 returns at once; by default the server
            chooses.
    """

    target: FuturesTarget
    prev_cursor: int | Unset = UNSET
    retrieved_request_ids: list[str] | Unset = UNSET
    timeout: float | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        target = self.target.to_dict()

        prev_cursor = self.prev_cursor

        retrieved_request_ids: list[str] | Unset = UNSET
        if not isinstance(self.retrieved_request_ids, Unset):
            retrieved_request_ids = self.retrieved_request_ids

        timeout: float | None | Unset
        if isinstance(self.timeout, Unset):
            timeout = UNSET
        else:
            timeout = self.timeout

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "target": target,
            }
        )
        if prev_cursor is not UNSET:
            field_dict["prev_cursor"] = prev_cursor
        if retrieved_request_ids is not UNSET:
            field_dict["retrieved_request_ids"] = retrieved_request_ids
        if timeout is not UNSET:
            field_dict["timeout"] = timeout

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.futures_target import FuturesTarget

        d = dict(src_dict)
        target = FuturesTarget.from_dict(d.pop("target"))

        prev_cursor = d.pop("prev_cursor", UNSET)

        retrieved_request_ids = cast(list[str], d.pop("retrieved_request_ids", UNSET))

        def _parse_timeout(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        timeout = _parse_timeout(d.pop("timeout", UNSET))

        retrieve_futures_request = cls(
            target=target,
            prev_cursor=prev_cursor,
            retrieved_request_ids=retrieved_request_ids,
            timeout=timeout,
        )

        retrieve_futures_request.additional_properties = d
        return retrieve_futures_request

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
