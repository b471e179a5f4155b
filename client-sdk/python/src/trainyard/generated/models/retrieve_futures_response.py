from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.future_completion_type_0 import FutureCompletionType0
    from ..models.future_completion_type_1 import FutureCompletionType1


T = TypeVar("T", bound="RetrieveFuturesResponse")


@_attrs_define
class RetrieveFuturesResponse:
    """Response body of `retrieve_futures`.

    Attributes:
        completions (list[FutureCompletionType0 | FutureCompletionType1]): Requests that finished after `prev_cursor`.
        cursor (int): Cursor that covers exactly the completions above.
    """

    completions: list[FutureCompletionType0 | FutureCompletionType1]
    cursor: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.future_completion_type_0 import FutureCompletionType0

        completions = []
        for completions_item_data in self.completions:
            completions_item: dict[str, Any]
            if isinstance(completions_item_data, FutureCompletionType0):
                completions_item = completions_item_data.to_dict()
            else:
                completions_item = completions_item_data.to_dict()

            completions.append(completions_item)

        cursor = self.cursor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "completions": completions,
                "cursor": cursor,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.future_completion_type_0 import FutureCompletionType0
        from ..models.future_completion_type_1 import FutureCompletionType1

        d = dict(src_dict)
        completions = []
        _completions = d.pop("completions")
        for completions_item_data in _completions:

            def _parse_completions_item(
                data: object,
            ) -> FutureCompletionType0 | FutureCompletionType1:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_future_completion_type_0 = (
                        FutureCompletionType0.from_dict(data)
                    )

                    return componentsschemas_future_completion_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_future_completion_type_1 = (
                    FutureCompletionType1.from_dict(data)
                )

                return componentsschemas_future_completion_type_1

            completions_item = _parse_completions_item(completions_item_data)

            completions.append(completions_item)

        cursor = d.pop("cursor")

        retrieve_futures_response = cls(
            completions=completions,
            cursor=cursor,
        )

        retrieve_futures_response.additional_properties = d
        return retrieve_futures_response

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
