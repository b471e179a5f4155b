from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.load_weights_request_user_metadata import (
        LoadWeightsRequestUserMetadata,
    )
    from ..models.optimizer_config import OptimizerConfig


T = TypeVar("T", bound="LoadWeightsRequest")


@_attrs_define
class LoadWeightsRequest:
    """Request body of `load_weights`. With `session_id` and `model_seq_id`, it creates a run; with `model_id` and
    `seq_id`, it loads into an existing run.

        Attributes:
            optimizer (bool): Whether to restore the optimizer's state too.
            path (str): Path of the checkpoint: `tinker://<run>/weights/<name>`, or `tinker://<run>/external_weights/<name>`
                without its
                optimizer.
            base_model (None | str | Unset): Base model of the new run: the checkpoint's, or another name of the same
                weights.
            model_id (None | str | Unset): Id of the existing run.
            model_seq_id (int | None | Unset): Number of the new run's model within the session.
            optimizer_config (None | OptimizerConfig | Unset):
            seq_id (int | None | Unset): Position in the existing run's order.
            session_id (None | str | Unset): Session of the new run.
            user_metadata (LoadWeightsRequestUserMetadata | Unset): Metadata to store with the new run.
            weights_access_token (None | str | Unset): A key of a tenant that may read the checkpoint, if the caller may
                not.
    """

    optimizer: bool
    path: str
    base_model: None | str | Unset = UNSET
    model_id: None | str | Unset = UNSET
    model_seq_id: int | None | Unset = UNSET
    optimizer_config: None | OptimizerConfig | Unset = UNSET
    seq_id: int | None | Unset = UNSET
    session_id: None | str | Unset = UNSET
    user_metadata: LoadWeightsRequestUserMetadata | Unset = UNSET
    weights_access_token: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.optimizer_config import OptimizerConfig

        optimizer = self.optimizer

        path = self.path

        base_model: None | str | Unset
        if isinstance(self.base_model, Unset):
            base_model = UNSET
        else:
            base_model = self.base_model

        model_id: None | str | Unset
        if isinstance(self.model_id, Unset):
            model_id = UNSET
        else:
            model_id = self.model_id

        model_seq_id: int | None | Unset
        if isinstance(self.model_seq_id, Unset):
            model_seq_id = UNSET
        else:
            model_seq_id = self.model_seq_id

        optimizer_config: dict[str, Any] | None | Unset
        if isinstance(self.optimizer_config, Unset):
            optimizer_config = UNSET
        elif isinstance(self.optimizer_config, OptimizerConfig):
            optimizer_config = self.optimizer_config.to_dict()
        else:
            optimizer_config = self.optimizer_config

        seq_id: int | None | Unset
        if isinstance(self.seq_id, Unset):
            seq_id = UNSET
        else:
            seq_id = self.seq_id

        session_id: None | str | Unset
        if isinstance(self.session_id, Unset):
            session_id = UNSET
        else:
            session_id = self.session_id

        user_metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.user_metadata, Unset):
            user_metadata = self.user_metadata.to_dict()

        weights_access_token: None | str | Unset
        if isinstance(self.weights_access_token, Unset):
            weights_access_token = UNSET
        else:
            weights_access_token = self.weights_access_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "optimizer": optimizer,
                "path": path,
            }
        )
        if base_model is not UNSET:
            field_dict["base_model"] = base_model
        if model_id is not UNSET:
            field_dict["model_id"] = model_id
        if model_seq_id is not UNSET:
            field_dict["model_seq_id"] = model_seq_id
        if optimizer_config is not UNSET:
            field_dict["optimizer_config"] = optimizer_config
        if seq_id is not UNSET:
            field_dict["seq_id"] = seq_id
        if session_id is not UNSET:
            field_dict["session_id"] = session_id
        if user_metadata is not UNSET:
            field_dict["user_metadata"] = user_metadata
        if weights_access_token is not UNSET:
            field_dict["weights_access_token"] = weights_access_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.load_weights_request_user_metadata import (
            LoadWeightsRequestUserMetadata,
        )
        from ..models.optimizer_config import OptimizerConfig

        d = dict(src_dict)
        optimizer = d.pop("optimizer")

        path = d.pop("path")

        def _parse_base_model(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base_model = _parse_base_model(d.pop("base_model", UNSET))

        def _parse_model_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model_id = _parse_model_id(d.pop("model_id", UNSET))

        def _parse_model_seq_id(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        model_seq_id = _parse_model_seq_id(d.pop("model_seq_id", UNSET))

        def _parse_optimizer_config(data: object) -> None | OptimizerConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                optimizer_config_type_0 = OptimizerConfig.from_dict(data)

                return optimizer_config_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OptimizerConfig | Unset, data)

        optimizer_config = _parse_optimizer_config(d.pop("optimizer_config", UNSET))

        def _parse_seq_id(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seq_id = _parse_seq_id(d.pop("seq_id", UNSET))

        def _parse_session_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        session_id = _parse_session_id(d.pop("session_id", UNSET))

        _user_metadata = d.pop("user_metadata", UNSET)
        user_metadata: LoadWeightsRequestUserMetadata | Unset
        if isinstance(_user_metadata, Unset):
            user_metadata = UNSET
        else:
            user_metadata = LoadWeightsRequestUserMetadata.from_dict(_user_metadata)

        def _parse_weights_access_token(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        weights_access_token = _parse_weights_access_token(
            d.pop("weights_access_token", UNSET)
        )

        load_weights_request = cls(
            optimizer=optimizer,
            path=path,
            base_model=base_model,
            model_id=model_id,
            model_seq_id=model_seq_id,
            optimizer_config=optimizer_config,
            seq_id=seq_id,
            session_id=session_id,
            user_metadata=user_metadata,
            weights_access_token=weights_access_token,
        )

        load_weights_request.additional_properties = d
        return load_weights_request

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
