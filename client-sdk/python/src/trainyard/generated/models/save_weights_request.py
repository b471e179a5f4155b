from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.save_weights_request_user_metadata import (
        SaveWeightsRequestUserMetadata,
    )


T = TypeVar("T", bound="SaveWeightsRequest")


@_attrs_define
class SaveWeightsRequest:
    """Request body of `save_weights`.

    Attributes:
        model_id (str): Id of the run.
        path (str): Name of the checkpoint, without a folder.
        seq_id (int): Position in the run's order, from 1.
        overwrite (bool | Unset): Whether to replace a checkpoint of that name.
        ttl_seconds (int | None | Unset): Seconds until the checkpoint is deleted; by default it is kept.
        user_metadata (SaveWeightsRequestUserMetadata | Unset): Metadata to store with the checkpoint.
    """

    model_id: str
    path: str
    seq_id: int
    overwrite: bool | Unset = UNSET
    ttl_seconds: int | None | Unset = UNSET
    user_metadata: SaveWeightsRequestUserMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        model_id = self.model_id

        path = self.path

        seq_id = self.seq_id

        overwrite = self.overwrite

        ttl_seconds: int | None | Unset
        if isinstance(self.ttl_seconds, Unset):
            ttl_seconds = UNSET
        else:
            ttl_seconds = self.ttl_seconds

        user_metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.user_metadata, Unset):
            user_metadata = self.user_metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "model_id": model_id,
                "path": path,
                "seq_id": seq_id,
            }
        )
        if overwrite is not UNSET:
            field_dict["overwrite"] = overwrite
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if user_metadata is not UNSET:
            field_dict["user_metadata"] = user_metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.save_weights_request_user_metadata import (
            SaveWeightsRequestUserMetadata,
        )

        d = dict(src_dict)
        model_id = d.pop("model_id")

        path = d.pop("path")

        seq_id = d.pop("seq_id")

        overwrite = d.pop("overwrite", UNSET)

        def _parse_ttl_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        _user_metadata = d.pop("user_metadata", UNSET)
        user_metadata: SaveWeightsRequestUserMetadata | Unset
        if isinstance(_user_metadata, Unset):
            user_metadata = UNSET
        else:
            user_metadata = SaveWeightsRequestUserMetadata.from_dict(_user_metadata)

        save_weights_request = cls(
            model_id=model_id,
            path=path,
            seq_id=seq_id,
            overwrite=overwrite,
            ttl_seconds=ttl_seconds,
            user_metadata=user_metadata,
        )

        save_weights_request.additional_properties = d
        return save_weights_request

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
