from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.checkpoint_user_metadata import CheckpointUserMetadata


T = TypeVar("T", bound="Checkpoint")


@_attrs_define
class Checkpoint:
    """A checkpoint of a run.

    Attributes:
        checkpoint_id (str): Id within the run: `<segment>/<name>`.
        checkpoint_type (str): Kind of the checkpoint: `training`, `sampler` or `external`.
        public (bool): Whether other tenants may read it.
        size_bytes (int): Size of all its files, in bytes.
        time (datetime.datetime): Time of the save, in RFC 3339.
        tinker_path (str): Path of the checkpoint: `tinker://<run>/<segment>/<name>`.
        user_metadata (CheckpointUserMetadata): Metadata that the client set with the save.
        base_model (str | Unset): Name of the base model.
        expires_at (datetime.datetime | None | Unset): Time at which it is deleted, in RFC 3339; absent if it is kept.
    """

    checkpoint_id: str
    checkpoint_type: str
    public: bool
    size_bytes: int
    time: datetime.datetime
    tinker_path: str
    user_metadata: CheckpointUserMetadata
    base_model: str | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        checkpoint_id = self.checkpoint_id

        checkpoint_type = self.checkpoint_type

        public = self.public

        size_bytes = self.size_bytes

        time = self.time.isoformat()

        tinker_path = self.tinker_path

        user_metadata = self.user_metadata.to_dict()

        base_model = self.base_model

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checkpoint_id": checkpoint_id,
                "checkpoint_type": checkpoint_type,
                "public": public,
                "size_bytes": size_bytes,
                "time": time,
                "tinker_path": tinker_path,
                "user_metadata": user_metadata,
            }
        )
        if base_model is not UNSET:
            field_dict["base_model"] = base_model
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.checkpoint_user_metadata import CheckpointUserMetadata

        d = dict(src_dict)
        checkpoint_id = d.pop("checkpoint_id")

        checkpoint_type = d.pop("checkpoint_type")

        public = d.pop("public")

        size_bytes = d.pop("size_bytes")

        time = datetime.datetime.fromisoformat(d.pop("time"))

        tinker_path = d.pop("tinker_path")

        user_metadata = CheckpointUserMetadata.from_dict(d.pop("user_metadata"))

        base_model = d.pop("base_model", UNSET)

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        checkpoint = cls(
            checkpoint_id=checkpoint_id,
            checkpoint_type=checkpoint_type,
            public=public,
            size_bytes=size_bytes,
            time=time,
            tinker_path=tinker_path,
            user_metadata=user_metadata,
            base_model=base_model,
            expires_at=expires_at,
        )

        checkpoint.additional_properties = d
        return checkpoint

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
