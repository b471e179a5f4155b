from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="SubmitResponse")


@_attrs_define
class SubmitResponse:
    """Answer to every submission.

    Attributes:
        request_id (str): Id of the future.
        model_id (None | str | Unset): Id of the run, for training requests.
        sample_sequence_ids (list[str] | None | Unset): One id per sample, for `asample`.
    """

    request_id: str
    model_id: None | str | Unset = UNSET
    sample_sequence_ids: list[str] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        request_id = self.request_id

        model_id: None | str | Unset
        if isinstance(self.model_id, Unset):
            model_id = UNSET
        else:
            model_id = self.model_id

        sample_sequence_ids: list[str] | None | Unset
        if isinstance(self.sample_sequence_ids, Unset):
            sample_sequence_ids = UNSET
        elif isinstance(self.sample_sequence_ids, list):
            sample_sequence_ids = self.sample_sequence_ids

        else:
            sample_sequence_ids = self.sample_sequence_ids

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "request_id": request_id,
            }
        )
        if model_id is not UNSET:
            field_dict["model_id"] = model_id
        if sample_sequence_ids is not UNSET:
            field_dict["sample_sequence_ids"] = sample_sequence_ids

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        request_id = d.pop("request_id")

        def _parse_model_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model_id = _parse_model_id(d.pop("model_id", UNSET))

        def _parse_sample_sequence_ids(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                sample_sequence_ids_type_0 = cast(list[str], data)

                return sample_sequence_ids_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        sample_sequence_ids = _parse_sample_sequence_ids(
            d.pop("sample_sequence_ids", UNSET)
        )

        submit_response = cls(
            request_id=request_id,
            model_id=model_id,
            sample_sequence_ids=sample_sequence_ids,
        )

        submit_response.additional_properties = d
        return submit_response

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
