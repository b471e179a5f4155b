from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.create_custom_loss_request_graph import CreateCustomLossRequestGraph
    from ..models.create_custom_loss_request_inputs_item import (
        CreateCustomLossRequestInputsItem,
    )


T = TypeVar("T", bound="CreateCustomLossRequest")


@_attrs_define
class CreateCustomLossRequest:
    """Request body of `create_custom_loss`.

    Attributes:
        custom_loss_seq_id (int): Number of the custom loss within the session.
        graph (CreateCustomLossRequestGraph): The function as `torch.fx` traced it: `{"format": 1, "nodes": […]}`.
        inputs (list[CreateCustomLossRequestInputsItem]): Inputs that the loss reads from each datum, in order, each as
            `{"name", "rank"}`. The first is `logprobs`.
        name (str): Name of the function, for error messages.
        session_id (str): Id of the client's session.
    """

    custom_loss_seq_id: int
    graph: CreateCustomLossRequestGraph
    inputs: list[CreateCustomLossRequestInputsItem]
    name: str
    session_id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        custom_loss_seq_id = self.custom_loss_seq_id

        graph = self.graph.to_dict()

        inputs = []
        for inputs_item_data in self.inputs:
            inputs_item = inputs_item_data.to_dict()
            inputs.append(inputs_item)

        name = self.name

        session_id = self.session_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "custom_loss_seq_id": custom_loss_seq_id,
                "graph": graph,
                "inputs": inputs,
                "name": name,
                "session_id": session_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.create_custom_loss_request_graph import (
            CreateCustomLossRequestGraph,
        )
        from ..models.create_custom_loss_request_inputs_item import (
            CreateCustomLossRequestInputsItem,
        )

        d = dict(src_dict)
        custom_loss_seq_id = d.pop("custom_loss_seq_id")

        graph = CreateCustomLossRequestGraph.from_dict(d.pop("graph"))

        inputs = []
        _inputs = d.pop("inputs")
        for inputs_item_data in _inputs:
            inputs_item = CreateCustomLossRequestInputsItem.from_dict(inputs_item_data)

            inputs.append(inputs_item)

        name = d.pop("name")

        session_id = d.pop("session_id")

        create_custom_loss_request = cls(
            custom_loss_seq_id=custom_loss_seq_id,
            graph=graph,
            inputs=inputs,
            name=name,
            session_id=session_id,
        )

        create_custom_loss_request.additional_properties = d
        return create_custom_loss_request

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
