from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.sampler_kind import SamplerKind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.save_weights_for_sampler_request_user_metadata import (
        SaveWeightsForSamplerRequestUserMetadata,
    )


T = TypeVar("T", bound="SaveWeightsForSamplerRequest")


@_attrs_define
class SaveWeightsForSamplerRequest:
    """Request body of `save_weights_for_sampler`. A save with `path` has a name; a save with `sampling_session_seq_id` is
    ephemeral.

        Attributes:
            model_id (str): Id of the run.
            seq_id (int): Position in the run's order, from 1.
            kind (SamplerKind | Unset): Whether later saves change a sampler.
            path (None | str | Unset): Name of the checkpoint, without a folder.
            sampling_session_seq_id (int | None | Unset): Number of the sampling session within the session.
            ttl_seconds (int | None | Unset): Seconds until a checkpoint with a name is deleted; by default it is kept.
            user_metadata (SaveWeightsForSamplerRequestUserMetadata | Unset): Metadata to store with a checkpoint that has a
                name.
    """

    model_id: str
    seq_id: int
    kind: SamplerKind | Unset = UNSET
    path: None | str | Unset = UNSET
    sampling_session_seq_id: int | None | Unset = UNSET
    ttl_seconds: int | None | Unset = UNSET
    user_metadata: SaveWeightsForSamplerRequestUserMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        model_id = self.model_id

        seq_id = self.seq_id

        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        path: None | str | Unset
        if isinstance(self.path, Unset):
            path = UNSET
        else:
            path = self.path

        sampling_session_seq_id: int | None | Unset
        if isinstance(self.sampling_session_seq_id, Unset):
            sampling_session_seq_id = UNSET
        else:
            sampling_session_seq_id = self.sampling_session_seq_id

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
                "seq_id": seq_id,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if path is not UNSET:
            field_dict["path"] = path
        if sampling_session_seq_id is not UNSET:
            field_dict["sampling_session_seq_id"] = sampling_session_seq_id
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if user_metadata is not UNSET:
            field_dict["user_metadata"] = user_metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.save_weights_for_sampler_request_user_metadata import (
            SaveWeightsForSamplerRequestUserMetadata,
        )

        d = dict(src_dict)
        model_id = d.pop("model_id")

        seq_id = d.pop("seq_id")

        _kind = d.pop("kind", UNSET)
        kind: SamplerKind | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = SamplerKind(_kind)

        def _parse_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path = _parse_path(d.pop("path", UNSET))

        def _parse_sampling_session_seq_id(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        sampling_session_seq_id = _parse_sampling_session_seq_id(
            d.pop("sampling_session_seq_id", UNSET)
        )

        def _parse_ttl_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        _user_metadata = d.pop("user_metadata", UNSET)
        user_metadata: SaveWeightsForSamplerRequestUserMetadata | Unset
        if isinstance(_user_metadata, Unset):
            user_metadata = UNSET
        else:
            user_metadata = SaveWeightsForSamplerRequestUserMetadata.from_dict(
                _user_metadata
            )

        save_weights_for_sampler_request = cls(
            model_id=model_id,
            seq_id=seq_id,
            kind=kind,
            path=path,
            sampling_session_seq_id=sampling_session_seq_id,
            ttl_seconds=ttl_seconds,
            user_metadata=user_metadata,
        )

        save_weights_for_sampler_request.additional_properties = d
        return save_weights_for_sampler_request

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
