from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="CopyWeightsRequest")


@_attrs_define
class CopyWeightsRequest:
    """Request body of `copy_weights`. The copy belongs to the run that `session_id` and `model_seq_id` identify, or, if
    they are absent, to the run of a new session.

        Attributes:
            source_path (str): Path of the checkpoint, which may be of any kind.
            destination_project_id (None | str | Unset): Project of the new session.
            model_seq_id (int | None | Unset): Number of the run's model within the session.
            session_id (None | str | Unset): Session of the run that holds the copy.
            ttl_seconds (int | None | Unset): Seconds until the copy is deleted. By default it is kept, even if the source
                expires.
            weights_access_token (None | str | Unset): A key of a tenant that may read the checkpoint. The header `x-tinker-
                weights-access-token` takes precedence.
    """

    source_path: str
    destination_project_id: None | str | Unset = UNSET
    model_seq_id: int | None | Unset = UNSET
    session_id: None | str | Unset = UNSET
    ttl_seconds: int | None | Unset = UNSET
    weights_access_token: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        source_path = self.source_path

        destination_project_id: None | str | Unset
        if isinstance(self.destination_project_id, Unset):
            destination_project_id = UNSET
        else:
            destination_project_id = self.destination_project_id

        model_seq_id: int | None | Unset
        if isinstance(self.model_seq_id, Unset):
            model_seq_id = UNSET
        else:
            model_seq_id = self.model_seq_id

        session_id: None | str | Unset
        if isinstance(self.session_id, Unset):
            session_id = UNSET
        else:
            session_id = self.session_id

        ttl_seconds: int | None | Unset
        if isinstance(self.ttl_seconds, Unset):
            ttl_seconds = UNSET
        else:
            ttl_seconds = self.ttl_seconds

        weights_access_token: None | str | Unset
        if isinstance(self.weights_access_token, Unset):
            weights_access_token = UNSET
        else:
            weights_access_token = self.weights_access_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "source_path": source_path,
            }
        )
        if destination_project_id is not UNSET:
            field_dict["destination_project_id"] = destination_project_id
        if model_seq_id is not UNSET:
            field_dict["model_seq_id"] = model_seq_id
        if session_id is not UNSET:
            field_dict["session_id"] = session_id
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if weights_access_token is not UNSET:
            field_dict["weights_access_token"] = weights_access_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        source_path = d.pop("source_path")

        def _parse_destination_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        destination_project_id = _parse_destination_project_id(
            d.pop("destination_project_id", UNSET)
        )

        def _parse_model_seq_id(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        model_seq_id = _parse_model_seq_id(d.pop("model_seq_id", UNSET))

        def _parse_session_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        session_id = _parse_session_id(d.pop("session_id", UNSET))

        def _parse_ttl_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        def _parse_weights_access_token(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        weights_access_token = _parse_weights_access_token(
            d.pop("weights_access_token", UNSET)
        )

        copy_weights_request = cls(
            source_path=source_path,
            destination_project_id=destination_project_id,
            model_seq_id=model_seq_id,
            session_id=session_id,
            ttl_seconds=ttl_seconds,
            weights_access_token=weights_access_token,
        )

        copy_weights_request.additional_properties = d
        return copy_weights_request

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
