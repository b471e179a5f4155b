from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ChangeLimitsRequest")


@_attrs_define
class ChangeLimitsRequest:
    """Request body of `PUT admin/organisations/{organisation}/limits`. Absent fields keep their values; `null` unsets a
    limit.

        Attributes:
            max_queued_bytes (int | None | Unset): Maximum size of the payloads of these training requests, in bytes.
            max_queued_requests (int | None | Unset): Maximum number of training requests that have not finished.
            max_queued_samples (int | None | Unset): Maximum number of samples that have not finished.
            max_queued_tokens (int | None | Unset): Maximum number of tokens in accepted requests that have not finished;
                samples beyond it are answered with status
                429.
            max_runs (int | None | Unset): Maximum number of training runs at the same time.
            max_sessions (int | None | Unset): Maximum number of sessions that are open, or that ended within the retention
                time.
            max_storage_bytes (int | None | Unset): Maximum size of all checkpoints, in bytes.
            pixels_per_minute (int | None | Unset): Rate limit: maximum number of pixels of the images that are sent to an
                API server within a minute.
            tokens_per_minute (int | None | Unset): Rate limit: maximum number of tokens in the requests that start within a
                minute.
            weight (int | None | Unset): Share of a busy service, relative to the other organisations that have work.
    """

    max_queued_bytes: int | None | Unset = UNSET
    max_queued_requests: int | None | Unset = UNSET
    max_queued_samples: int | None | Unset = UNSET
    max_queued_tokens: int | None | Unset = UNSET
    max_runs: int | None | Unset = UNSET
    max_sessions: int | None | Unset = UNSET
    max_storage_bytes: int | None | Unset = UNSET
    pixels_per_minute: int | None | Unset = UNSET
    tokens_per_minute: int | None | Unset = UNSET
    weight: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        max_queued_bytes: int | None | Unset
        if isinstance(self.max_queued_bytes, Unset):
            max_queued_bytes = UNSET
        else:
            max_queued_bytes = self.max_queued_bytes

        max_queued_requests: int | None | Unset
        if isinstance(self.max_queued_requests, Unset):
            max_queued_requests = UNSET
        else:
            max_queued_requests = self.max_queued_requests

        max_queued_samples: int | None | Unset
        if isinstance(self.max_queued_samples, Unset):
            max_queued_samples = UNSET
        else:
            max_queued_samples = self.max_queued_samples

        max_queued_tokens: int | None | Unset
        if isinstance(self.max_queued_tokens, Unset):
            max_queued_tokens = UNSET
        else:
            max_queued_tokens = self.max_queued_tokens

        max_runs: int | None | Unset
        if isinstance(self.max_runs, Unset):
            max_runs = UNSET
        else:
            max_runs = self.max_runs

        max_sessions: int | None | Unset
        if isinstance(self.max_sessions, Unset):
            max_sessions = UNSET
        else:
            max_sessions = self.max_sessions

        max_storage_bytes: int | None | Unset
        if isinstance(self.max_storage_bytes, Unset):
            max_storage_bytes = UNSET
        else:
            max_storage_bytes = self.max_storage_bytes

        pixels_per_minute: int | None | Unset
        if isinstance(self.pixels_per_minute, Unset):
            pixels_per_minute = UNSET
        else:
            pixels_per_minute = self.pixels_per_minute

        tokens_per_minute: int | None | Unset
        if isinstance(self.tokens_per_minute, Unset):
            tokens_per_minute = UNSET
        else:
            tokens_per_minute = self.tokens_per_minute

        weight: int | None | Unset
        if isinstance(self.weight, Unset):
            weight = UNSET
        else:
            weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if max_queued_bytes is not UNSET:
            field_dict["max_queued_bytes"] = max_queued_bytes
        if max_queued_requests is not UNSET:
            field_dict["max_queued_requests"] = max_queued_requests
        if max_queued_samples is not UNSET:
            field_dict["max_queued_samples"] = max_queued_samples
        if max_queued_tokens is not UNSET:
            field_dict["max_queued_tokens"] = max_queued_tokens
        if max_runs is not UNSET:
            field_dict["max_runs"] = max_runs
        if max_sessions is not UNSET:
            field_dict["max_sessions"] = max_sessions
        if max_storage_bytes is not UNSET:
            field_dict["max_storage_bytes"] = max_storage_bytes
        if pixels_per_minute is not UNSET:
            field_dict["pixels_per_minute"] = pixels_per_minute
        if tokens_per_minute is not UNSET:
            field_dict["tokens_per_minute"] = tokens_per_minute
        if weight is not UNSET:
            field_dict["weight"] = weight

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)

        def _parse_max_queued_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_queued_bytes = _parse_max_queued_bytes(d.pop("max_queued_bytes", UNSET))

        def _parse_max_queued_requests(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_queued_requests = _parse_max_queued_requests(
            d.pop("max_queued_requests", UNSET)
        )

        def _parse_max_queued_samples(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_queued_samples = _parse_max_queued_samples(
            d.pop("max_queued_samples", UNSET)
        )

        def _parse_max_queued_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_queued_tokens = _parse_max_queued_tokens(d.pop("max_queued_tokens", UNSET))

        def _parse_max_runs(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_runs = _parse_max_runs(d.pop("max_runs", UNSET))

        def _parse_max_sessions(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_sessions = _parse_max_sessions(d.pop("max_sessions", UNSET))

        def _parse_max_storage_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_storage_bytes = _parse_max_storage_bytes(d.pop("max_storage_bytes", UNSET))

        def _parse_pixels_per_minute(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        pixels_per_minute = _parse_pixels_per_minute(d.pop("pixels_per_minute", UNSET))

        def _parse_tokens_per_minute(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        tokens_per_minute = _parse_tokens_per_minute(d.pop("tokens_per_minute", UNSET))

        def _parse_weight(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        weight = _parse_weight(d.pop("weight", UNSET))

        change_limits_request = cls(
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

        return change_limits_request
