from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.adam_params_body import AdamParamsBody
    from ..models.optim_step_request_optimizer_params_type_0 import (
        OptimStepRequestOptimizerParamsType0,
    )


T = TypeVar("T", bound="OptimStepRequest")


@_attrs_define
class OptimStepRequest:
    """Request body of `optim_step`. Exactly one kind of parameters must be set.

    Attributes:
        model_id (str): Id of the run.
        seq_id (int): Position in the run's order, from 1.
        adam_params (AdamParamsBody | None | Unset):
        optimizer_params (None | OptimStepRequestOptimizerParamsType0 | Unset): Hyper-parameters of another family, of
            which none is supported.
    """

    model_id: str
    seq_id: int
    adam_params: AdamParamsBody | None | Unset = UNSET
    optimizer_params: None | OptimStepRequestOptimizerParamsType0 | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.adam_params_body import AdamParamsBody
        from ..models.optim_step_request_optimizer_params_type_0 import (
            OptimStepRequestOptimizerParamsType0,
        )

        model_id = self.model_id

        seq_id = self.seq_id

        adam_params: dict[str, Any] | None | Unset
        if isinstance(self.adam_params, Unset):
            adam_params = UNSET
        elif isinstance(self.adam_params, AdamParamsBody):
            adam_params = self.adam_params.to_dict()
        else:
            adam_params = self.adam_params

        optimizer_params: dict[str, Any] | None | Unset
        if isinstance(self.optimizer_params, Unset):
            optimizer_params = UNSET
        elif isinstance(self.optimizer_params, OptimStepRequestOptimizerParamsType0):
            optimizer_params = self.optimizer_params.to_dict()
        else:
            optimizer_params = self.optimizer_params

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "model_id": model_id,
                "seq_id": seq_id,
            }
        )
        if adam_params is not UNSET:
            field_dict["adam_params"] = adam_params
        if optimizer_params is not UNSET:
            field_dict["optimizer_params"] = optimizer_params

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.adam_params_body import AdamParamsBody
        from ..models.optim_step_request_optimizer_params_type_0 import (
            OptimStepRequestOptimizerParamsType0,
        )

        d = dict(src_dict)
        model_id = d.pop("model_id")

        seq_id = d.pop("seq_id")

        def _parse_adam_params(data: object) -> AdamParamsBody | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                adam_params_type_0 = AdamParamsBody.from_dict(data)

                return adam_params_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AdamParamsBody | None | Unset, data)

        adam_params = _parse_adam_params(d.pop("adam_params", UNSET))

        def _parse_optimizer_params(
            data: object,
        ) -> None | OptimStepRequestOptimizerParamsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                optimizer_params_type_0 = (
                    OptimStepRequestOptimizerParamsType0.from_dict(data)
                )

                return optimizer_params_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OptimStepRequestOptimizerParamsType0 | Unset, data)

        optimizer_params = _parse_optimizer_params(d.pop("optimizer_params", UNSET))

        optim_step_request = cls(
            model_id=model_id,
            seq_id=seq_id,
            adam_params=adam_params,
            optimizer_params=optimizer_params,
        )

        optim_step_request.additional_properties = d
        return optim_step_request

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
