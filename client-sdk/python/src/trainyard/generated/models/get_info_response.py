from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.model_data import ModelData
    from ..models.optimizer_config import OptimizerConfig


T = TypeVar("T", bound="GetInfoResponse")


@_attrs_define
class GetInfoResponse:
    """Response body of `get_info`.

    Attributes:
        is_lora (bool): Whether the run trains an adapter.
        model_data (ModelData): A base model, as `get_info` describes it.
        model_id (str): Id of the run.
        model_name (str): Name of the base model.
        optimizer_config (OptimizerConfig): An optimizer family; only `adamw` is supported.
        lora_rank (int | None | Unset): Rank of the adapter.
    """

    is_lora: bool
    model_data: ModelData
    model_id: str
    model_name: str
    optimizer_config: OptimizerConfig
    lora_rank: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        is_lora = self.is_lora

        model_data = self.model_data.to_dict()

        model_id = self.model_id

        model_name = self.model_name

        optimizer_config = self.optimizer_config.to_dict()

        lora_rank: int | None | Unset
        if isinstance(self.lora_rank, Unset):
            lora_rank = UNSET
        else:
            lora_rank = self.lora_rank

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "is_lora": is_lora,
                "model_data": model_data,
                "model_id": model_id,
                "model_name": model_name,
                "optimizer_config": optimizer_config,
            }
        )
        if lora_rank is not UNSET:
            field_dict["lora_rank"] = lora_rank

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.model_data import ModelData
        from ..models.optimizer_config import OptimizerConfig

        d = dict(src_dict)
        is_lora = d.pop("is_lora")

        model_data = ModelData.from_dict(d.pop("model_data"))

        model_id = d.pop("model_id")

        model_name = d.pop("model_name")

        optimizer_config = OptimizerConfig.from_dict(d.pop("optimizer_config"))

        def _parse_lora_rank(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lora_rank = _parse_lora_rank(d.pop("lora_rank", UNSET))

        get_info_response = cls(
            is_lora=is_lora,
            model_data=model_data,
            model_id=model_id,
            model_name=model_name,
            optimizer_config=optimizer_config,
            lora_rank=lora_rank,
        )

        get_info_response.additional_properties = d
        return get_info_response

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
