from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ClientDynamicConfigResponse")


@_attrs_define
class ClientDynamicConfigResponse:
    """Response body of `client/dynamic_config`.

    Attributes:
        refresh_interval_sec (int): Seconds until the client polls again.
        sample_cancel_enabled (bool): Whether to send `cancel_future` for samples that were abandoned.
        sample_cancel_max_batch_size (int): Maximum number of cancellations that are sent at once.
    """

    refresh_interval_sec: int
    sample_cancel_enabled: bool
    sample_cancel_max_batch_size: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        refresh_interval_sec = self.refresh_interval_sec

        sample_cancel_enabled = self.sample_cancel_enabled

        sample_cancel_max_batch_size = self.sample_cancel_max_batch_size

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "refresh_interval_sec": refresh_interval_sec,
                "sample_cancel_enabled": sample_cancel_enabled,
                "sample_cancel_max_batch_size": sample_cancel_max_batch_size,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        refresh_interval_sec = d.pop("refresh_interval_sec")

        sample_cancel_enabled = d.pop("sample_cancel_enabled")

        sample_cancel_max_batch_size = d.pop("sample_cancel_max_batch_size")

        client_dynamic_config_response = cls(
            refresh_interval_sec=refresh_interval_sec,
            sample_cancel_enabled=sample_cancel_enabled,
            sample_cancel_max_batch_size=sample_cancel_max_batch_size,
        )

        client_dynamic_config_response.additional_properties = d
        return client_dynamic_config_response

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
