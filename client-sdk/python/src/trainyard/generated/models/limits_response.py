from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.limit_value import LimitValue


T = TypeVar("T", bound="LimitsResponse")


@_attrs_define
class LimitsResponse:
    """Limits of an organisation: answer of `GET` and `PUT admin/organisations/{organisation}/limits`.

    Attributes:
        max_queued_bytes (LimitValue): A limit of an organisation.
        max_queued_requests (LimitValue): A limit of an organisation.
        max_queued_samples (LimitValue): A limit of an organisation.
        max_queued_tokens (LimitValue): A limit of an organisation.
        max_runs (LimitValue): A limit of an organisation.
        max_sessions (LimitValue): A limit of an organisation.
        max_storage_bytes (LimitValue): A limit of an organisation.
        pixels_per_minute (LimitValue): A limit of an organisation.
        tokens_per_minute (LimitValue): A limit of an organisation.
        weight (LimitValue): A limit of an organisation.
    """

    max_queued_bytes: LimitValue
    max_queued_requests: LimitValue
    max_queued_samples: LimitValue
    max_queued_tokens: LimitValue
    max_runs: LimitValue
    max_sessions: LimitValue
    max_storage_bytes: LimitValue
    pixels_per_minute: LimitValue
    tokens_per_minute: LimitValue
    weight: LimitValue
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        max_queued_bytes = self.max_queued_bytes.to_dict()

        max_queued_requests = self.max_queued_requests.to_dict()

        max_queued_samples = self.max_queued_samples.to_dict()

        max_queued_tokens = self.max_queued_tokens.to_dict()

        max_runs = self.max_runs.to_dict()

        max_sessions = self.max_sessions.to_dict()

        max_storage_bytes = self.max_storage_bytes.to_dict()

        pixels_per_minute = self.pixels_per_minute.to_dict()

        tokens_per_minute = self.tokens_per_minute.to_dict()

        weight = self.weight.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "max_queued_bytes": max_queued_bytes,
                "max_queued_requests": max_queued_requests,
                "max_queued_samples": max_queued_samples,
                "max_queued_tokens": max_queued_tokens,
                "max_runs": max_runs,
                "max_sessions": max_sessions,
                "max_storage_bytes": max_storage_bytes,
                "pixels_per_minute": pixels_per_minute,
                "tokens_per_minute": tokens_per_minute,
                "weight": weight,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.limit_value import LimitValue

        d = dict(src_dict)
        max_queued_bytes = LimitValue.from_dict(d.pop("max_queued_bytes"))

        max_queued_requests = LimitValue.from_dict(d.pop("max_queued_requests"))

        max_queued_samples = LimitValue.from_dict(d.pop("max_queued_samples"))

        max_queued_tokens = LimitValue.from_dict(d.pop("max_queued_tokens"))

        max_runs = LimitValue.from_dict(d.pop("max_runs"))

        max_sessions = LimitValue.from_dict(d.pop("max_sessions"))

        max_storage_bytes = LimitValue.from_dict(d.pop("max_storage_bytes"))

        pixels_per_minute = LimitValue.from_dict(d.pop("pixels_per_minute"))

        tokens_per_minute = LimitValue.from_dict(d.pop("tokens_per_minute"))

        weight = LimitValue.from_dict(d.pop("weight"))

        limits_response = cls(
            max_queued_bytes=max_queued_bytes,
            max_queued_requests=max_queued_requests,
            max_queued_samples=max_queued_samples,
            max_queued_tokens=max_queued_tokens,
            max_runs=max_runs,
            max_sessions=max_sessions,
            max_storage_bytes=max_storage_bytes,
            pixels_per_minute=pixels_per_minute,
            tokens_per_minute=tokens_per_minute,
            weight=weight,
        )

        limits_response.additional_properties = d
        return limits_response

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
