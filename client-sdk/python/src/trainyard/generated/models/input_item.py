from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.input_part import InputPart


T = TypeVar("T", bound="InputItem")


@_attrs_define
class InputItem:
    """An item of a conversation: a `message`, a `function_call`, a `function_call_output` or a `reasoning`. Other types
    are
    refused. Further fields, such as ids and states, have no effect.

        Attributes:
            arguments (None | str | Unset): Calls: the arguments, a JSON object as text.
            call_id (None | str | Unset): Calls and their outputs: the id of the call.
            content (list[InputPart] | None | str | Unset):
            name (None | str | Unset): Calls: the name of the function.
            output (list[InputPart] | None | str | Unset):
            role (None | str | Unset): Messages: the author, which is `system`, `developer`, `user` or `assistant`.
            type_ (None | str | Unset): Type of the item, which determines its other fields; `message` by default.
    """

    arguments: None | str | Unset = UNSET
    call_id: None | str | Unset = UNSET
    content: list[InputPart] | None | str | Unset = UNSET
    name: None | str | Unset = UNSET
    output: list[InputPart] | None | str | Unset = UNSET
    role: None | str | Unset = UNSET
    type_: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        arguments: None | str | Unset
        if isinstance(self.arguments, Unset):
            arguments = UNSET
        else:
            arguments = self.arguments

        call_id: None | str | Unset
        if isinstance(self.call_id, Unset):
            call_id = UNSET
        else:
            call_id = self.call_id

        content: list[dict[str, Any]] | None | str | Unset
        if isinstance(self.content, Unset):
            content = UNSET
        elif isinstance(self.content, list):
            content = []
            for componentsschemas_input_content_type_1_item_data in self.content:
                componentsschemas_input_content_type_1_item = (
                    componentsschemas_input_content_type_1_item_data.to_dict()
                )
                content.append(componentsschemas_input_content_type_1_item)

        else:
            content = self.content

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        output: list[dict[str, Any]] | None | str | Unset
        if isinstance(self.output, Unset):
            output = UNSET
        elif isinstance(self.output, list):
            output = []
            for componentsschemas_input_content_type_1_item_data in self.output:
                componentsschemas_input_content_type_1_item = (
                    componentsschemas_input_content_type_1_item_data.to_dict()
                )
                output.append(componentsschemas_input_content_type_1_item)

        else:
            output = self.output

        role: None | str | Unset
        if isinstance(self.role, Unset):
            role = UNSET
        else:
            role = self.role

        type_: None | str | Unset
        if isinstance(self.type_, Unset):
            type_ = UNSET
        else:
            type_ = self.type_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if arguments is not UNSET:
            field_dict["arguments"] = arguments
        if call_id is not UNSET:
            field_dict["call_id"] = call_id
        if content is not UNSET:
            field_dict["content"] = content
        if name is not UNSET:
            field_dict["name"] = name
        if output is not UNSET:
            field_dict["output"] = output
        if role is not UNSET:
            field_dict["role"] = role
        if type_ is not UNSET:
            field_dict["type"] = type_

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.input_part import InputPart

        d = dict(src_dict)

        def _parse_arguments(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        arguments = _parse_arguments(d.pop("arguments", UNSET))

        def _parse_call_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        call_id = _parse_call_id(d.pop("call_id", UNSET))

        def _parse_content(data: object) -> list[InputPart] | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_input_content_type_1 = []
                _componentsschemas_input_content_type_1 = data
                for (
                    componentsschemas_input_content_type_1_item_data
                ) in _componentsschemas_input_content_type_1:
                    componentsschemas_input_content_type_1_item = InputPart.from_dict(
                        componentsschemas_input_content_type_1_item_data
                    )

                    componentsschemas_input_content_type_1.append(
                        componentsschemas_input_content_type_1_item
                    )

                return componentsschemas_input_content_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[InputPart] | None | str | Unset, data)

        content = _parse_content(d.pop("content", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_output(data: object) -> list[InputPart] | None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                componentsschemas_input_content_type_1 = []
                _componentsschemas_input_content_type_1 = data
                for (
                    componentsschemas_input_content_type_1_item_data
                ) in _componentsschemas_input_content_type_1:
                    componentsschemas_input_content_type_1_item = InputPart.from_dict(
                        componentsschemas_input_content_type_1_item_data
                    )

                    componentsschemas_input_content_type_1.append(
                        componentsschemas_input_content_type_1_item
                    )

                return componentsschemas_input_content_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[InputPart] | None | str | Unset, data)

        output = _parse_output(d.pop("output", UNSET))

        def _parse_role(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        role = _parse_role(d.pop("role", UNSET))

        def _parse_type_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        type_ = _parse_type_(d.pop("type", UNSET))

        input_item = cls(
            arguments=arguments,
            call_id=call_id,
            content=content,
            name=name,
            output=output,
            role=role,
            type_=type_,
        )

        input_item.additional_properties = d
        return input_item

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
