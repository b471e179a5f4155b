from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.chat_logprobs import ChatLogprobs
    from ..models.chat_reply import ChatReply


T = TypeVar("T", bound="ChatChoice")


@_attrs_define
class ChatChoice:
    """A reply of the model.

    Attributes:
        finish_reason (str): Why the reply ended: `stop`, `length` or `tool_calls`.
        index (int): Position of the reply among the choices.
        message (ChatReply): The assistant's message in a reply.
        logprobs (ChatLogprobs | None | Unset):
        token_ids (list[int] | None | Unset): Sampled tokens with the one that ended the reply, if `return_token_ids`
            was set.
    """

    finish_reason: str
    index: int
    message: ChatReply
    logprobs: ChatLogprobs | None | Unset = UNSET
    token_ids: list[int] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.chat_logprobs import ChatLogprobs

        finish_reason = self.finish_reason

        index = self.index

        message = self.message.to_dict()

        logprobs: dict[str, Any] | None | Unset
        if isinstance(self.logprobs, Unset):
            logprobs = UNSET
        elif isinstance(self.logprobs, ChatLogprobs):
            logprobs = self.logprobs.to_dict()
        else:
            logprobs = self.logprobs

        token_ids: list[int] | None | Unset
        if isinstance(self.token_ids, Unset):
            token_ids = UNSET
        elif isinstance(self.token_ids, list):
            token_ids = self.token_ids

        else:
            token_ids = self.token_ids

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "finish_reason": finish_reason,
                "index": index,
                "message": message,
            }
        )
        if logprobs is not UNSET:
            field_dict["logprobs"] = logprobs
        if token_ids is not UNSET:
            field_dict["token_ids"] = token_ids

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.chat_logprobs import ChatLogprobs
        from ..models.chat_reply import ChatReply

        d = dict(src_dict)
        finish_reason = d.pop("finish_reason")

        index = d.pop("index")

        message = ChatReply.from_dict(d.pop("message"))

        def _parse_logprobs(data: object) -> ChatLogprobs | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                logprobs_type_0 = ChatLogprobs.from_dict(data)

                return logprobs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ChatLogprobs | None | Unset, data)

        logprobs = _parse_logprobs(d.pop("logprobs", UNSET))

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

        chat_choice = cls(
            finish_reason=finish_reason,
            index=index,
            message=message,
            logprobs=logprobs,
            token_ids=token_ids,
        )

        chat_choice.additional_properties = d
        return chat_choice

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
