from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.completion_logprobs import CompletionLogprobs


T = TypeVar("T", bound="CompletionChoice")


@_attrs_define
class CompletionChoice:
    """A completion, or the part that a chunk adds to it.

    Attributes:
        index (int): Position of the completion among the choices.
        text (str): Text of the completion.
        finish_reason (None | str | Unset): Why the completion ended: `stop` or `length`; null in chunks before the end.
        logprobs (CompletionLogprobs | None | Unset):
        prompt_token_ids (list[int] | None | Unset): Tokens of the prompt, if `return_token_ids` was set; only in the
            first chunk of a completion.
        token_ids (list[int] | None | Unset): Sampled tokens with the one that ended the completion, if
            `return_token_ids` was set.
    """

    index: int
    text: str
    finish_reason: None | str | Unset = UNSET
    logprobs: CompletionLogprobs | None | Unset = UNSET
    prompt_token_ids: list[int] | None | Unset = UNSET
    token_ids: list[int] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.completion_logprobs import CompletionLogprobs

        index = self.index

        text = self.text

        finish_reason: None | str | Unset
        if isinstance(self.finish_reason, Unset):
            finish_reason = UNSET
        else:
            finish_reason = self.finish_reason

        logprobs: dict[str, Any] | None | Unset
        if isinstance(self.logprobs, Unset):
            logprobs = UNSET
        elif isinstance(self.logprobs, CompletionLogprobs):
            logprobs = self.logprobs.to_dict()
        else:
            logprobs = self.logprobs

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

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "index": index,
                "text": text,
            }
        )
        if finish_reason is not UNSET:
            field_dict["finish_reason"] = finish_reason
        if logprobs is not UNSET:
            field_dict["logprobs"] = logprobs
        if prompt_token_ids is not UNSET:
            field_dict["prompt_token_ids"] = prompt_token_ids
        if token_ids is not UNSET:
            field_dict["token_ids"] = token_ids

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.completion_logprobs import CompletionLogprobs

        d = dict(src_dict)
        index = d.pop("index")

        text = d.pop("text")

        def _parse_finish_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        finish_reason = _parse_finish_reason(d.pop("finish_reason", UNSET))

        def _parse_logprobs(data: object) -> CompletionLogprobs | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                logprobs_type_0 = CompletionLogprobs.from_dict(data)

                return logprobs_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompletionLogprobs | None | Unset, data)

        logprobs = _parse_logprobs(d.pop("logprobs", UNSET))

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

        completion_choice = cls(
            index=index,
            text=text,
            finish_reason=finish_reason,
            logprobs=logprobs,
            prompt_token_ids=prompt_token_ids,
            token_ids=token_ids,
        )

        completion_choice.additional_properties = d
        return completion_choice

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
