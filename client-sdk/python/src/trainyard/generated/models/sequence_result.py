from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="SequenceResult")


@_attrs_define
class SequenceResult:
    """A completion that was sampled.

    Attributes:
        stop_reason (str): Why the sequence ended: `stop` or `length`.
        tokens (list[int]): Ids of the sampled tokens.
        logprobs (list[float] | None | Unset): Log-probabilities of the sampled tokens.
        topk_logprobs (list[list[list[float]] | None] | None | Unset): Up to k pairs of token id and log-probability for
            each sampled token, or null.
    """

    stop_reason: str
    tokens: list[int]
    logprobs: list[float] | None | Unset = UNSET
    topk_logprobs: list[list[list[float]] | None] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stop_reason = self.stop_reason

        tokens = self.tokens

        logprobs: list[float] | None | Unset
        if isinstance(self.logprobs, Unset):
            logprobs = UNSET
        elif isinstance(self.logprobs, list):
            logprobs = self.logprobs

        else:
            logprobs = self.logprobs

        topk_logprobs: list[list[list[float]] | None] | None | Unset
        if isinstance(self.topk_logprobs, Unset):
            topk_logprobs = UNSET
        elif isinstance(self.topk_logprobs, list):
            topk_logprobs = []
            for topk_logprobs_type_0_item_data in self.topk_logprobs:
                topk_logprobs_type_0_item: list[list[float]] | None
                if isinstance(topk_logprobs_type_0_item_data, list):
                    topk_logprobs_type_0_item = []
                    for (
                        topk_logprobs_type_0_item_type_0_item_data
                    ) in topk_logprobs_type_0_item_data:
                        topk_logprobs_type_0_item_type_0_item = (
                            topk_logprobs_type_0_item_type_0_item_data
                        )

                        topk_logprobs_type_0_item.append(
                            topk_logprobs_type_0_item_type_0_item
                        )

                else:
                    topk_logprobs_type_0_item = topk_logprobs_type_0_item_data
                topk_logprobs.append(topk_logprobs_type_0_item)

        else:
            topk_logprobs = self.topk_logprobs

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stop_reason": stop_reason,
                "tokens": tokens,
            }
        )
        if logprobs is not UNSET:
            field_dict["logprobs"] = logprobs
        if topk_logprobs is not UNSET:
            field_dict["topk_logprobs"] = topk_logprobs

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        stop_reason = d.pop("stop_reason")

        tokens = cast(list[int], d.pop("tokens"))

        def _parse_logprobs(data: object) -> list[float] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                logprobs_type_0 = cast(list[float], data)

                return logprobs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[float] | None | Unset, data)

        logprobs = _parse_logprobs(d.pop("logprobs", UNSET))

        def _parse_topk_logprobs(
            data: object,
        ) -> list[list[list[float]] | None] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                topk_logprobs_type_0 = []
                _topk_logprobs_type_0 = data
                for topk_logprobs_type_0_item_data in _topk_logprobs_type_0:

                    def _parse_topk_logprobs_type_0_item(
                        data: object,
                    ) -> list[list[float]] | None:
                        if data is None:
                            return data
                        try:
                            if not isinstance(data, list):
                                raise TypeError()
                            topk_logprobs_type_0_item_type_0 = []
                            _topk_logprobs_type_0_item_type_0 = data
                            for (
                                topk_logprobs_type_0_item_type_0_item_data
                            ) in _topk_logprobs_type_0_item_type_0:
                                topk_logprobs_type_0_item_type_0_item = cast(
                                    list[float],
                                    topk_logprobs_type_0_item_type_0_item_data,
                                )

                                topk_logprobs_type_0_item_type_0.append(
                                    topk_logprobs_type_0_item_type_0_item
                                )

                            return topk_logprobs_type_0_item_type_0
                        except (TypeError, ValueError, AttributeError, KeyError):
                            pass
                        return cast(list[list[float]] | None, data)

                    topk_logprobs_type_0_item = _parse_topk_logprobs_type_0_item(
                        topk_logprobs_type_0_item_data
                    )

                    topk_logprobs_type_0.append(topk_logprobs_type_0_item)

                return topk_logprobs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[list[list[float]] | None] | None | Unset, data)

        topk_logprobs = _parse_topk_logprobs(d.pop("topk_logprobs", UNSET))

        sequence_result = cls(
            stop_reason=stop_reason,
            tokens=tokens,
            logprobs=logprobs,
            topk_logprobs=topk_logprobs,
        )

        sequence_result.additional_properties = d
        return sequence_result

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
