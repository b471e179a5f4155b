from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.create_model_request_user_metadata import (
        CreateModelRequestUserMetadata,
    )
    from ..models.lora_config import LoraConfig
    from ..models.optimizer_config import OptimizerConfig


T = TypeVar("T", bound="CreateModelRequest")


@_attrs_define
class CreateModelRequest:
    """Request body of `create_model`.

    Attributes:
        base_model (str): Name of the base model.
        model_seq_id (int): Number of the model within the session.
        session_id (str): Id of the client's session.
        lora_config (LoraConfig | None | Unset):
        optimizer_config (OptimizerConfig | Unset): An optimizer family; only `adamw` is supported.
        user_metadata (CreateModelRequestUserMetadata | Unset): Metadata to store with the run.
    """

    base_model: str
    model_seq_id: int
    session_id: str
    lora_config: LoraConfig | None | Unset = UNSET
    optimizer_config: OptimizerConfig | Unset = UNSET
    user_metadata: CreateModelRequestUserMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.lora_config import LoraConfig

        base_model = self.base_model

        model_seq_id = self.model_seq_id

        session_id = self.session_id

        lora_config: dict[str, Any] | None | Unset
        if isinstance(self.lora_config, Unset):
            lora_config = UNSET
        elif isinstance(self.lora_config, LoraConfig):
            lora_config = self.lora_config.to_dict()
        else:
            lora_config = self.lora_config

        optimizer_config: dict[str, Any] | Unset = UNSET
        if not isinstance(self.optimizer_config, Unset):
            optimizer_config = self.optimizer_config.to_dict()

        user_metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.user_metadata, Unset):
            user_metadata = self.user_metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "base_model": base_model,
                "model_seq_id": model_seq_id,
                "session_id": session_id,
            }
        )
        if lora_config is not UNSET:
            field_dict["lora_config"] = lora_config
        if optimizer_config is not UNSET:
            field_dict["optimizer_config"] = optimizer_config
        if user_metadata is not UNSET:
            field_dict["user_metadata"] = user_metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.create_model_request_user_metadata import (
            CreateModelRequestUserMetadata,
        )
        from ..models.lora_config import LoraConfig
        from ..models.optimizer_config import OptimizerConfig

        d = dict(src_dict)
        base_model = d.pop("base_model")

        model_seq_id = d.pop("model_seq_id")

        session_id = d.pop("session_id")

        def _parse_lora_config(data: object) -> LoraConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lora_config_type_0 = LoraConfig.from_dict(data)

                return lora_config_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LoraConfig | None | Unset, data)

        lora_config = _parse_lora_config(d.pop("lora_config", UNSET))

        _optimizer_config = d.pop("optimizer_config", UNSET)
        optimizer_config: OptimizerConfig | Unset
        if isinstance(_optimizer_config, Unset):
            optimizer_config = UNSET
        else:
            optimizer_config = OptimizerConfig.from_dict(_optimizer_config)

        _user_metadata = d.pop("user_metadata", UNSET)
        user_metadata: CreateModelRequestUserMetadata | Unset
        if isinstance(_user_metadata, Unset):
            user_metadata = UNSET
        else:
            user_metadata = CreateModelRequestUserMetadata.from_dict(_user_metadata)

        create_model_request = cls(
            base_model=base_model,
            model_seq_id=model_seq_id,
            session_id=session_id,
            lora_config=lora_config,
            optimizer_config=optimizer_config,
            user_metadata=user_metadata,
        )

        create_model_request.additional_properties = d
        return create_model_request

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
