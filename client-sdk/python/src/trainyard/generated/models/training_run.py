from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint
    from ..models.numerics_change import NumericsChange
    from ..models.training_run_user_metadata import TrainingRunUserMetadata


T = TypeVar("T", bound="TrainingRun")


@_attrs_define
class TrainingRun:
    """A training run: a sequence of requests that train one model.

    Attributes:
        base_model (str): Name of the base model.
        corrupted (bool): Whether the run's state is lost.
        is_lora (bool): Whether the run trains an adapter.
        last_request_time (datetime.datetime): Time of the last request, in RFC 3339.
        model_owner (str): Tenant that owns the run.
        training_run_id (str): Id of the run; the `model_id` of its requests.
        user_metadata (TrainingRunUserMetadata): Metadata that the client set when it created the run.
        last_checkpoint (Checkpoint | None | Unset):
        last_sampler_checkpoint (Checkpoint | None | Unset):
        lora_rank (int | None | Unset): Rank of the adapter.
        numerics_changed (list[NumericsChange] | Unset): Continuations by workers with other numerics, oldest first;
            absent if there were none.
    """

    base_model: str
    corrupted: bool
    is_lora: bool
    last_request_time: datetime.datetime
    model_owner: str
    training_run_id: str
    user_metadata: TrainingRunUserMetadata
    last_checkpoint: Checkpoint | None | Unset = UNSET
    last_sampler_checkpoint: Checkpoint | None | Unset = UNSET
    lora_rank: int | None | Unset = UNSET
    numerics_changed: list[NumericsChange] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.checkpoint import Checkpoint

        base_model = self.base_model

        corrupted = self.corrupted

        is_lora = self.is_lora

        last_request_time = self.last_request_time.isoformat()

        model_owner = self.model_owner

        training_run_id = self.training_run_id

        user_metadata = self.user_metadata.to_dict()

        last_checkpoint: dict[str, Any] | None | Unset
        if isinstance(self.last_checkpoint, Unset):
            last_checkpoint = UNSET
        elif isinstance(self.last_checkpoint, Checkpoint):
            last_checkpoint = self.last_checkpoint.to_dict()
        else:
            last_checkpoint = self.last_checkpoint

        last_sampler_checkpoint: dict[str, Any] | None | Unset
        if isinstance(self.last_sampler_checkpoint, Unset):
            last_sampler_checkpoint = UNSET
        elif isinstance(self.last_sampler_checkpoint, Checkpoint):
            last_sampler_checkpoint = self.last_sampler_checkpoint.to_dict()
        else:
            last_sampler_checkpoint = self.last_sampler_checkpoint

        lora_rank: int | None | Unset
        if isinstance(self.lora_rank, Unset):
            lora_rank = UNSET
        else:
            lora_rank = self.lora_rank

        numerics_changed: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.numerics_changed, Unset):
            numerics_changed = []
            for numerics_changed_item_data in self.numerics_changed:
                numerics_changed_item = numerics_changed_item_data.to_dict()
                numerics_changed.append(numerics_changed_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "base_model": base_model,
                "corrupted": corrupted,
                "is_lora": is_lora,
                "last_request_time": last_request_time,
                "model_owner": model_owner,
                "training_run_id": training_run_id,
                "user_metadata": user_metadata,
            }
        )
        if last_checkpoint is not UNSET:
            field_dict["last_checkpoint"] = last_checkpoint
        if last_sampler_checkpoint is not UNSET:
            field_dict["last_sampler_checkpoint"] = last_sampler_checkpoint
        if lora_rank is not UNSET:
            field_dict["lora_rank"] = lora_rank
        if numerics_changed is not UNSET:
            field_dict["numerics_changed"] = numerics_changed

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.checkpoint import Checkpoint
        from ..models.numerics_change import NumericsChange
        from ..models.training_run_user_metadata import TrainingRunUserMetadata

        d = dict(src_dict)
        base_model = d.pop("base_model")

        corrupted = d.pop("corrupted")

        is_lora = d.pop("is_lora")

        last_request_time = datetime.datetime.fromisoformat(d.pop("last_request_time"))

        model_owner = d.pop("model_owner")

        training_run_id = d.pop("training_run_id")

        user_metadata = TrainingRunUserMetadata.from_dict(d.pop("user_metadata"))

        def _parse_last_checkpoint(data: object) -> Checkpoint | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                last_checkpoint_type_0 = Checkpoint.from_dict(data)

                return last_checkpoint_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Checkpoint | None | Unset, data)

        last_checkpoint = _parse_last_checkpoint(d.pop("last_checkpoint", UNSET))

        def _parse_last_sampler_checkpoint(data: object) -> Checkpoint | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                last_sampler_checkpoint_type_0 = Checkpoint.from_dict(data)

                return last_sampler_checkpoint_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Checkpoint | None | Unset, data)

        last_sampler_checkpoint = _parse_last_sampler_checkpoint(
            d.pop("last_sampler_checkpoint", UNSET)
        )

        def _parse_lora_rank(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lora_rank = _parse_lora_rank(d.pop("lora_rank", UNSET))

        _numerics_changed = d.pop("numerics_changed", UNSET)
        numerics_changed: list[NumericsChange] | Unset = UNSET
        if _numerics_changed is not UNSET:
            numerics_changed = []
            for numerics_changed_item_data in _numerics_changed:
                numerics_changed_item = NumericsChange.from_dict(
                    numerics_changed_item_data
                )

                numerics_changed.append(numerics_changed_item)

        training_run = cls(
            base_model=base_model,
            corrupted=corrupted,
            is_lora=is_lora,
            last_request_time=last_request_time,
            model_owner=model_owner,
            training_run_id=training_run_id,
            user_metadata=user_metadata,
            last_checkpoint=last_checkpoint,
            last_sampler_checkpoint=last_sampler_checkpoint,
            lora_rank=lora_rank,
            numerics_changed=numerics_changed,
        )

        training_run.additional_properties = d
        return training_run

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
