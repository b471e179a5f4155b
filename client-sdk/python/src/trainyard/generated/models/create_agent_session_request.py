from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.agent_limits import AgentLimits


T = TypeVar("T", bound="CreateAgentSessionRequest")


@_attrs_define
class CreateAgentSessionRequest:
    """Request body of `POST agent_sessions`.

    Attributes:
        base_model (None | str | Unset): Base model to sample from; by default, that of `model_path`.
        limits (AgentLimits | Unset): Limits of an agent session.
        model_path (None | str | Unset): Sampler checkpoint to sample from, `tinker://…`.
        sampling_session_id (None | str | Unset): Sampling session whose weights are sampled, in place of `model_path`.
            One of an in-flight save follows its run:
            replies have the run's newest weights.
    """

    base_model: None | str | Unset = UNSET
    limits: AgentLimits | Unset = UNSET
    model_path: None | str | Unset = UNSET
    sampling_session_id: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        base_model: None | str | Unset
        if isinstance(self.base_model, Unset):
            base_model = UNSET
        else:
            base_model = self.base_model

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        model_path: None | str | Unset
        if isinstance(self.model_path, Unset):
            model_path = UNSET
        else:
            model_path = self.model_path

        sampling_session_id: None | str | Unset
        if isinstance(self.sampling_session_id, Unset):
            sampling_session_id = UNSET
        else:
            sampling_session_id = self.sampling_session_id

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if base_model is not UNSET:
            field_dict["base_model"] = base_model
        if limits is not UNSET:
            field_dict["limits"] = limits
        if model_path is not UNSET:
            field_dict["model_path"] = model_path
        if sampling_session_id is not UNSET:
            field_dict["sampling_session_id"] = sampling_session_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.agent_limits import AgentLimits

        d = dict(src_dict)

        def _parse_base_model(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        base_model = _parse_base_model(d.pop("base_model", UNSET))

        _limits = d.pop("limits", UNSET)
        limits: AgentLimits | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = AgentLimits.from_dict(_limits)

        def _parse_model_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        model_path = _parse_model_path(d.pop("model_path", UNSET))

        def _parse_sampling_session_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        sampling_session_id = _parse_sampling_session_id(
            d.pop("sampling_session_id", UNSET)
        )

        create_agent_session_request = cls(
            base_model=base_model,
            limits=limits,
            model_path=model_path,
            sampling_session_id=sampling_session_id,
        )

        return create_agent_session_request
