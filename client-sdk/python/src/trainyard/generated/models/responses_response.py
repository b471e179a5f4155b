from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.incomplete_details import IncompleteDetails
    from ..models.output_item_type_0 import OutputItemType0
    from ..models.output_item_type_1 import OutputItemType1
    from ..models.output_item_type_2 import OutputItemType2
    from ..models.responses_response_metadata import ResponsesResponseMetadata
    from ..models.responses_response_tools_item import ResponsesResponseToolsItem
    from ..models.responses_usage import ResponsesUsage
    from ..models.text_config import TextConfig


T = TypeVar("T", bound="ResponsesResponse")


@_attrs_define
class ResponsesResponse:
    """Response body of `responses`, and the `response` of a stream's events.

    Attributes:
        background (bool): Always false: background responses are not supported.
        created_at (int): Time of the request, in seconds since 1970.
        id (str): Id of the request.
        metadata (ResponsesResponseMetadata): The `metadata` of the request.
        model (str): The `model` of the request.
        object_ (str): Always the text `response`.
        output (list[OutputItemType0 | OutputItemType1 | OutputItemType2]): Thoughts, texts and calls, in order.
        parallel_tool_calls (bool): The `parallel_tool_calls` of the request, true by default.
        status (str): `completed`, or `incomplete` if the reply reached a limit; `in_progress` in the first events of a
            stream.
        store (bool): Always false: responses are not stored.
        temperature (float): The `temperature` of the request.
        text (TextConfig): Form of a reply's text.
        tool_choice (Any): The `tool_choice` of the request, `auto` by default.
        tools (list[ResponsesResponseToolsItem]): The `tools` of the request.
        top_p (float): The `top_p` of the request.
        truncation (str): Always the text `disabled`.
        error (Any | Unset): Always null: failed requests have the status of their error.
        incomplete_details (IncompleteDetails | None | Unset):
        instructions (None | str | Unset): The `instructions` of the request.
        max_output_tokens (int | None | Unset): The `max_output_tokens` of the request.
        previous_response_id (None | str | Unset): Always null: responses are not stored.
        prompt_token_ids (list[int] | None | Unset): Tokens of the rendered conversation, if `return_token_ids` was set.
        token_ids (list[int] | None | Unset): Tokens sampled so far with the one that ended the reply, if
            `return_token_ids` was set.
        usage (None | ResponsesUsage | Unset):
    """

    background: bool
    created_at: int
    id: str
    metadata: ResponsesResponseMetadata
    model: str
    object_: str
    output: list[OutputItemType0 | OutputItemType1 | OutputItemType2]
    parallel_tool_calls: bool
    status: str
    store: bool
    temperature: float
    text: TextConfig
    tool_choice: Any
    tools: list[ResponsesResponseToolsItem]
    top_p: float
    truncation: str
    error: Any | Unset = UNSET
    incomplete_details: IncompleteDetails | None | Unset = UNSET
    instructions: None | str | Unset = UNSET
    max_output_tokens: int | None | Unset = UNSET
    previous_response_id: None | str | Unset = UNSET
    prompt_token_ids: list[int] | None | Unset = UNSET
    token_ids: list[int] | None | Unset = UNSET
    usage: None | ResponsesUsage | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.incomplete_details import IncompleteDetails
        from ..models.output_item_type_0 import OutputItemType0
        from ..models.output_item_type_1 import OutputItemType1
        from ..models.responses_usage import ResponsesUsage

        background = self.background

        created_at = self.created_at

        id = self.id

        metadata = self.metadata.to_dict()

        model = self.model

        object_ = self.object_

        output = []
        for output_item_data in self.output:
            output_item: dict[str, Any]
            if isinstance(output_item_data, OutputItemType0) or isinstance(
                output_item_data, OutputItemType1
            ):
                output_item = output_item_data.to_dict()
            else:
                output_item = output_item_data.to_dict()

            output.append(output_item)

        parallel_tool_calls = self.parallel_tool_calls

        status = self.status

        store = self.store

        temperature = self.temperature

        text = self.text.to_dict()

        tool_choice = self.tool_choice

        tools = []
        for tools_item_data in self.tools:
            tools_item = tools_item_data.to_dict()
            tools.append(tools_item)

        top_p = self.top_p

        truncation = self.truncation

        error = self.error

        incomplete_details: dict[str, Any] | None | Unset
        if isinstance(self.incomplete_details, Unset):
            incomplete_details = UNSET
        elif isinstance(self.incomplete_details, IncompleteDetails):
            incomplete_details = self.incomplete_details.to_dict()
        else:
            incomplete_details = self.incomplete_details

        instructions: None | str | Unset
        if isinstance(self.instructions, Unset):
            instructions = UNSET
        else:
            instructions = self.instructions

        max_output_tokens: int | None | Unset
        if isinstance(self.max_output_tokens, Unset):
            max_output_tokens = UNSET
        else:
            max_output_tokens = self.max_output_tokens

        previous_response_id: None | str | Unset
        if isinstance(self.previous_response_id, Unset):
            previous_response_id = UNSET
        else:
            previous_response_id = self.previous_response_id

        prompt_token_ids: list[int] | None | Unset
        if isinstance(self.prompt_token_ids, Unset):
            prompt_token_ids = UNSET
        elif isinstance(self.prompt_token_ids, list):
            prompt_token_ids = self.prompt_token_ids

        else:
            prompt_token_ids = self.prompt_token_ids

        token_ids: list[int] | None | Unset
        if isinstance(self.token_ids, Unset):
            token_ids = UNSET
        elif isinstance(self.token_ids, list):
            token_ids = self.token_ids

        else:
            token_ids = self.token_ids

        usage: dict[str, Any] | None | Unset
        if isinstance(self.usage, Unset):
            usage = UNSET
        elif isinstance(self.usage, ResponsesUsage):
            usage = self.usage.to_dict()
        else:
            usage = self.usage

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "background": background,
                "created_at": created_at,
                "id": id,
                "metadata": metadata,
                "model": model,
                "object": object_,
                "output": output,
                "parallel_tool_calls": parallel_tool_calls,
                "status": status,
                "store": store,
                "temperature": temperature,
                "text": text,
                "tool_choice": tool_choice,
                "tools": tools,
                "top_p": top_p,
                "truncation": truncation,
            }
        )
        if error is not UNSET:
            field_dict["error"] = error
        if incomplete_details is not UNSET:
            field_dict["incomplete_details"] = incomplete_details
        if instructions is not UNSET:
            field_dict["instructions"] = instructions
        if max_output_tokens is not UNSET:
            field_dict["max_output_tokens"] = max_output_tokens
        if previous_response_id is not UNSET:
            field_dict["previous_response_id"] = previous_response_id
        if prompt_token_ids is not UNSET:
            field_dict["prompt_token_ids"] = prompt_token_ids
        if token_ids is not UNSET:
            field_dict["token_ids"] = token_ids
        if usage is not UNSET:
            field_dict["usage"] = usage

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.incomplete_details import IncompleteDetails
        from ..models.output_item_type_0 import OutputItemType0
        from ..models.output_item_type_1 import OutputItemType1
        from ..models.output_item_type_2 import OutputItemType2
        from ..models.responses_response_metadata import ResponsesResponseMetadata
        from ..models.responses_response_tools_item import ResponsesResponseToolsItem
        from ..models.responses_usage import ResponsesUsage
        from ..models.text_config import TextConfig

        d = dict(src_dict)
        background = d.pop("background")

        created_at = d.pop("created_at")

        id = d.pop("id")

        metadata = ResponsesResponseMetadata.from_dict(d.pop("metadata"))

        model = d.pop("model")

        object_ = d.pop("object")

        output = []
        _output = d.pop("output")
        for output_item_data in _output:

            def _parse_output_item(
                data: object,
            ) -> OutputItemType0 | OutputItemType1 | OutputItemType2:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_output_item_type_0 = OutputItemType0.from_dict(
                        data
                    )

                    return componentsschemas_output_item_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_output_item_type_1 = OutputItemType1.from_dict(
                        data
                    )

                    return componentsschemas_output_item_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_output_item_type_2 = OutputItemType2.from_dict(data)

                return componentsschemas_output_item_type_2

            output_item = _parse_output_item(output_item_data)

            output.append(output_item)

        parallel_tool_calls = d.pop("parallel_tool_calls")

        status = d.pop("status")

        store = d.pop("store")

        temperature = d.pop("temperature")

        text = TextConfig.from_dict(d.pop("text"))

        tool_choice = d.pop("tool_choice")

        tools = []
        _tools = d.pop("tools")
        for tools_item_data in _tools:
            tools_item = ResponsesResponseToolsItem.from_dict(tools_item_data)

            tools.append(tools_item)

        top_p = d.pop("top_p")

        truncation = d.pop("truncation")

        error = d.pop("error", UNSET)

        def _parse_incomplete_details(data: object) -> IncompleteDetails | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                incomplete_details_type_0 = IncompleteDetails.from_dict(data)

                return incomplete_details_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(IncompleteDetails | None | Unset, data)

        incomplete_details = _parse_incomplete_details(
            d.pop("incomplete_details", UNSET)
        )

        def _parse_instructions(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        instructions = _parse_instructions(d.pop("instructions", UNSET))

        def _parse_max_output_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_output_tokens = _parse_max_output_tokens(d.pop("max_output_tokens", UNSET))

        def _parse_previous_response_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        previous_response_id = _parse_previous_response_id(
            d.pop("previous_response_id", UNSET)
        )

        def _parse_prompt_token_ids(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                prompt_token_ids_type_0 = cast(list[int], data)

                return prompt_token_ids_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        prompt_token_ids = _parse_prompt_token_ids(d.pop("prompt_token_ids", UNSET))

        def _parse_token_ids(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                token_ids_type_0 = cast(list[int], data)

                return token_ids_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        token_ids = _parse_token_ids(d.pop("token_ids", UNSET))

        def _parse_usage(data: object) -> None | ResponsesUsage | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                usage_type_0 = ResponsesUsage.from_dict(data)

                return usage_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ResponsesUsage | Unset, data)

        usage = _parse_usage(d.pop("usage", UNSET))

        responses_response = cls(
            background=background,
            created_at=created_at,
            id=id,
            metadata=metadata,
            model=model,
            object_=object_,
            output=output,
            parallel_tool_calls=parallel_tool_calls,
            status=status,
            store=store,
            temperature=temperature,
            text=text,
            tool_choice=tool_choice,
            tools=tools,
            top_p=top_p,
            truncation=truncation,
            error=error,
            incomplete_details=incomplete_details,
            instructions=instructions,
            max_output_tokens=max_output_tokens,
            previous_response_id=previous_response_id,
            prompt_token_ids=prompt_token_ids,
            token_ids=token_ids,
            usage=usage,
        )

        responses_response.additional_properties = d
        return responses_response

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
