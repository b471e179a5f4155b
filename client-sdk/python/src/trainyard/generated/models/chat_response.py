from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chat_choice import ChatChoice
    from ..models.usage import Usage


T = TypeVar("T", bound="ChatResponse")


@_attrs_define
class ChatResponse:
    """Response body of `chat/completions`.

    Attributes:
        choices (list[ChatChoice]): Replies, as many as `n` of the request.
        created (int): Time of the request, in seconds since 1970.
        id (str): Id of the request.
        model (str): The `model` of the request.
        object_ (str): Always the text `chat.completion`.
        usage (Usage): Numbers of tokens in a request and its completions.
        prompt_token_ids (list[int] | None | Unset): Tokens of the rendered conversation, if `return_token_ids` was set.
    """

    choices: list[ChatChoice]
    created: int
    id: str
    model: str
    object_: str
    usage: Usage
    prompt_token_ids: list[int] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        choices = []
        for choices_item_data in self.choices:
            choices_item = choices_item_data.to_dict()
            choices.append(choices_item)

        created = self.created

        id = self.id

        model = self.model

        object_ = self.object_

        usage = self.usage.to_dict()

        prompt_token_ids: list[int] | None | Unset
        if isinstance(self.prompt_token_ids, Unset):
            prompt_token_ids = UNSET
        elif isinstance(self.prompt_token_ids, list):
            prompt_token_ids = self.prompt_token_ids

        else:
            prompt_token_ids = self.prompt_token_ids

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "choices": choices,
                "created": created,
                "id": id,
                "model": model,
                "object": object_,
                "usage": usage,
            }
        )
        if prompt_token_ids is not UNSET:
            field_dict["prompt_token_ids"] = prompt_token_ids

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.chat_choice import ChatChoice
        from ..models.usage import Usage

        d = dict(src_dict)
        choices = []
        _choices = d.pop("choices")
        for choices_item_data in _choices:
            choices_item = ChatChoice.from_dict(choices_item_data)

            choices.append(choices_item)

        created = d.pop("created")

        id = d.pop("id")

        model = d.pop("model")

        object_ = d.pop("object")

        usage = Usage.from_dict(d.pop("usage"))

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

        chat_response = cls(
            choices=choices,
            created=created,
            id=id,
            model=model,
            object_=object_,
            usage=usage,
            prompt_token_ids=prompt_token_ids,
        )

        chat_response.additional_properties = d
        return chat_response

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
