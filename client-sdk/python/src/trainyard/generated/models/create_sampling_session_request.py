from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="CreateSamplingSessionRequest")


@_attrs_define
class CreateSamplingSessionRequest:
    """Request body of `create_sampling_session`. If both models are set, the base model must be the checkpoint's or
    another name of its weights.

        Attributes:
            sampling_session_seq_id (int): Number of the sampling session within the session.
            session_id (str): Id of the client's session.
            base_model (None | str | Unset): Base model to sample from.
            model_path (None | str | Unset): Path of a sampler checkpoint to sample from.
    """

    sampling_session_seq_id: int
    session_id: str
    base_model: None | str | Unset = UNSET
    model_path: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        sampling_session_seq_id = self.sampling_session_seq_id

        session_id = self.session_id

        base_model: None | str | Unset
        if isinstance(self.base_model, Unset):
            base_model = UNSET
        else:
            base_model = self.base_model

        model_path: None | str | Unset
        if isinstance(self.model_path, Unset):
            model_path = UNSET
        else:
            model_path = self.model_path

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sampling_session_seq_id": sampling_session_seq_id,
                "session_id": session_id,
            }
        )
        if base_model is not UNSET:
            field_dict["base_model"] = base_model
        if model_path is not UNSET:
            field_dict["model_path"] = model_path

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        sampling_session_seq_id = d.pop("sampling_session_seq_id")

        session_id = d.pop("session_id")

        def _parse_base_model(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base_model = _parse_base_model(d.pop("base_model", UNSET))

        def _parse_model_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model_path = _parse_model_path(d.pop("model_path", UNSET))

        create_sampling_session_request = cls(
            sampling_session_seq_id=sampling_session_seq_id,
            session_id=session_id,
            base_model=base_model,
            model_path=model_path,
        )

        create_sampling_session_request.additional_properties = d
        return create_sampling_session_request

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
