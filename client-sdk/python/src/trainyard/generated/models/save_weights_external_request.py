from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="SaveWeightsExternalRequest")


@_attrs_define
class SaveWeightsExternalRequest:
    """Request body of `save_weights_external`.

    Attributes:
        model_id (str): Id of the run.
        path (str): Name of the checkpoint, without a folder.
        seq_id (int): Position in the run's order, from 1.
        age_encryption_recipients (list[str] | Unset): Recipients (`age1…`, at most 10) to encrypt each file to, in the
            age format. The names of encrypted files end in
            `.age`.
        ttl_seconds (int | None | Unset): Seconds until the checkpoint is deleted; by default it is kept.
    """

    model_id: str
    path: str
    seq_id: int
    age_encryption_recipients: list[str] | Unset = UNSET
    ttl_seconds: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        model_id = self.model_id

        path = self.path

        seq_id = self.seq_id

        age_encryption_recipients: list[str] | Unset = UNSET
        if not isinstance(self.age_encryption_recipients, Unset):
            age_encryption_recipients = self.age_encryption_recipients

        ttl_seconds: int | None | Unset
        if isinstance(self.ttl_seconds, Unset):
            ttl_seconds = UNSET
        else:
            ttl_seconds = self.ttl_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "model_id": model_id,
                "path": path,
                "seq_id": seq_id,
            }
        )
        if age_encryption_recipients is not UNSET:
            field_dict["age_encryption_recipients"] = age_encryption_recipients
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        model_id = d.pop("model_id")

        path = d.pop("path")

        seq_id = d.pop("seq_id")

        age_encryption_recipients = cast(
            list[str], d.pop("age_encryption_recipients", UNSET)
        )

        def _parse_ttl_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        save_weights_external_request = cls(
            model_id=model_id,
            path=path,
            seq_id=seq_id,
            age_encryption_recipients=age_encryption_recipients,
            ttl_seconds=ttl_seconds,
        )

        save_weights_external_request.additional_properties = d
        return save_weights_external_request

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
