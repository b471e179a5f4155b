from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="LoraConfig")


@_attrs_define
class LoraConfig:
    """A LoRA adapter. Unknown fields are refused.

    Attributes:
        rank (int): Rank of the adapter; 0 trains all parameters instead.
        seed (int | None | Unset): Seed for the initial values of the adapter; the server chooses one by default.
        train_attn (bool | Unset): Whether to adapt the attention projections.
        train_mlp (bool | Unset): Whether to adapt the MLP projections.
        train_unembed (bool | Unset): Whether to adapt the unembedding.
    """

    rank: int
    seed: int | None | Unset = UNSET
    train_attn: bool | Unset = UNSET
    train_mlp: bool | Unset = UNSET
    train_unembed: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        rank = self.rank

        seed: int | None | Unset
        if isinstance(self.seed, Unset):
            seed = UNSET
        else:
            seed = self.seed

        train_attn = self.train_attn

        train_mlp = self.train_mlp

        train_unembed = self.train_unembed

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "rank": rank,
            }
        )
        if seed is not UNSET:
            field_dict["seed"] = seed
        if train_attn is not UNSET:
            field_dict["train_attn"] = train_attn
        if train_mlp is not UNSET:
            field_dict["train_mlp"] = train_mlp
        if train_unembed is not UNSET:
            field_dict["train_unembed"] = train_unembed

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        rank = d.pop("rank")

        def _parse_seed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seed = _parse_seed(d.pop("seed", UNSET))

        train_attn = d.pop("train_attn", UNSET)

        train_mlp = d.pop("train_mlp", UNSET)

        train_unembed = d.pop("train_unembed", UNSET)

        lora_config = cls(
            rank=rank,
            seed=seed,
            train_attn=train_attn,
            train_mlp=train_mlp,
            train_unembed=train_unembed,
        )

        return lora_config
