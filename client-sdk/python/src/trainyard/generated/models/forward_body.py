from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.forward_backward_input import ForwardBackwardInput


T = TypeVar("T", bound="ForwardBody")


@_attrs_define
class ForwardBody:
    """JSON body of `forward`, as older clients send it.

    Attributes:
        forward_input (ForwardBackwardInput): Training examples and their loss.
        model_id (str): Id of the run.
        seq_id (int): Position in the run's order, from 1.
    """

    forward_input: ForwardBackwardInput
    model_id: str
    seq_id: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        forward_input = self.forward_input.to_dict()

        model_id = self.model_id

        seq_id = self.seq_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "forward_input": forward_input,
                "model_id": model_id,
                "seq_id": seq_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.forward_backward_input import ForwardBackwardInput

        d = dict(src_dict)
        forward_input = ForwardBackwardInput.from_dict(d.pop("forward_input"))

        model_id = d.pop("model_id")

        seq_id = d.pop("seq_id")

        forward_body = cls(
            forward_input=forward_input,
            model_id=model_id,
            seq_id=seq_id,
        )

        forward_body.additional_properties = d
        return forward_body

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
