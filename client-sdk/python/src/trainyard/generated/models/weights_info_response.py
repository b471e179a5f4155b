from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.optimizer_config import OptimizerConfig


T = TypeVar("T", bound="WeightsInfoResponse")


@_attrs_define
class WeightsInfoResponse:
    """Response body of `weights_info`.

    Attributes:
        base_model (str): Name of the base model.
        is_lora (bool): Whether the checkpoint is an adapter.
        optimizer_config (OptimizerConfig): An optimizer family; only `adamw` is supported.
        lora_rank (int | None | Unset): Rank of the adapter.
        train_attn (bool | None | Unset): Whether the adapter covers the attention projections.
        train_mlp (bool | None | Unset): Whether the adapter covers the MLP projections.
        train_unembed (bool | None | Unset): Whether the adapter covers the unembedding.
    """

    base_model: str
    is_lora: bool
    optimizer_config: OptimizerConfig
    lora_rank: int | None | Unset = UNSET
    train_attn: bool | None | Unset = UNSET
    train_mlp: bool | None | Unset = UNSET
    train_unembed: bool | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        base_model = self.base_model

        is_lora = self.is_lora

        optimizer_config = self.optimizer_config.to_dict()

        lora_rank: int | None | Unset
        if isinstance(self.lora_rank, Unset):
            lora_rank = UNSET
        else:
            lora_rank = self.lora_rank

        train_attn: bool | None | Unset
        if isinstance(self.train_attn, Unset):
            train_attn = UNSET
        else:
            train_attn = self.train_attn

        train_mlp: bool | None | Unset
        if isinstance(self.train_mlp, Unset):
            train_mlp = UNSET
        else:
            train_mlp = self.train_mlp

        train_unembed: bool | None | Unset
        if isinstance(self.train_unembed, Unset):
            train_unembed = UNSET
        else:
            train_unembed = self.train_unembed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "base_model": base_model,
                "is_lora": is_lora,
                "optimizer_config": optimizer_config,
            }
        )
        if lora_rank is not UNSET:
            field_dict["lora_rank"] = lora_rank
        if train_attn is not UNSET:
            field_dict["train_attn"] = train_attn
        if train_mlp is not UNSET:
            field_dict["train_mlp"] = train_mlp
        if train_unembed is not UNSET:
            field_dict["train_unembed"] = train_unembed

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.optimizer_config import OptimizerConfig

        d = dict(src_dict)
        base_model = d.pop("base_model")

        is_lora = d.pop("is_lora")

        optimizer_config = OptimizerConfig.from_dict(d.pop("optimizer_config"))

        def _parse_lora_rank(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lora_rank = _parse_lora_rank(d.pop("lora_rank", UNSET))

        def _parse_train_attn(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        train_attn = _parse_train_attn(d.pop("train_attn", UNSET))

        def _parse_train_mlp(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        train_mlp = _parse_train_mlp(d.pop("train_mlp", UNSET))

        def _parse_train_unembed(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        train_unembed = _parse_train_unembed(d.pop("train_unembed", UNSET))

        weights_info_response = cls(
            base_model=base_model,
            is_lora=is_lora,
            optimizer_config=optimizer_config,
            lora_rank=lora_rank,
            train_attn=train_attn,
            train_mlp=train_mlp,
            train_unembed=train_unembed,
        )

        weights_info_response.additional_properties = d
        return weights_info_response

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
