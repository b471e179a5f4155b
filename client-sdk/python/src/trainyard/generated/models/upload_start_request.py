from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.lora_config import LoraConfig


T = TypeVar("T", bound="UploadStartRequest")


@_attrs_define
class UploadStartRequest:
    """Request body of `external_weights_upload_start`.

    Attributes:
        base_model (str): Name of the base model that the adapter belongs to.
        lora_config (LoraConfig): A LoRA adapter. Unknown fields are refused.
        destination_project_id (None | str | Unset): Project of the checkpoint.
    """

    base_model: str
    lora_config: LoraConfig
    destination_project_id: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        base_model = self.base_model

        lora_config = self.lora_config.to_dict()

        destination_project_id: None | str | Unset
        if isinstance(self.destination_project_id, Unset):
            destination_project_id = UNSET
        else:
            destination_project_id = self.destination_project_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "base_model": base_model,
                "lora_config": lora_config,
            }
        )
        if destination_project_id is not UNSET:
            field_dict["destination_project_id"] = destination_project_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.lora_config import LoraConfig

        d = dict(src_dict)
        base_model = d.pop("base_model")

        lora_config = LoraConfig.from_dict(d.pop("lora_config"))

        def _parse_destination_project_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        destination_project_id = _parse_destination_project_id(
            d.pop("destination_project_id", UNSET)
        )

        upload_start_request = cls(
            base_model=base_model,
            lora_config=lora_config,
            destination_project_id=destination_project_id,
        )

        upload_start_request.additional_properties = d
        return upload_start_request

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
