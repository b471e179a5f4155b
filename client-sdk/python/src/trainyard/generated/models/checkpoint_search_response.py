from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint
    from ..models.checkpoint_cursor import CheckpointCursor


T = TypeVar("T", bound="CheckpointSearchResponse")


@_attrs_define
class CheckpointSearchResponse:
    """Response body of `checkpoints/search`.

    Attributes:
        checkpoints (list[Checkpoint]): Matches, newest first. A page may contain fewer than `limit` although
            `next_cursor` is set.
        next_cursor (CheckpointCursor | None | Unset):
    """

    checkpoints: list[Checkpoint]
    next_cursor: CheckpointCursor | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.checkpoint_cursor import CheckpointCursor

        checkpoints = []
        for checkpoints_item_data in self.checkpoints:
            checkpoints_item = checkpoints_item_data.to_dict()
            checkpoints.append(checkpoints_item)

        next_cursor: dict[str, Any] | None | Unset
        if isinstance(self.next_cursor, Unset):
            next_cursor = UNSET
        elif isinstance(self.next_cursor, CheckpointCursor):
            next_cursor = self.next_cursor.to_dict()
        else:
            next_cursor = self.next_cursor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checkpoints": checkpoints,
            }
        )
        if next_cursor is not UNSET:
            field_dict["next_cursor"] = next_cursor

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.checkpoint import Checkpoint
        from ..models.checkpoint_cursor import CheckpointCursor

        d = dict(src_dict)
        checkpoints = []
        _checkpoints = d.pop("checkpoints")
        for checkpoints_item_data in _checkpoints:
            checkpoints_item = Checkpoint.from_dict(checkpoints_item_data)

            checkpoints.append(checkpoints_item)

        def _parse_next_cursor(data: object) -> CheckpointCursor | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                next_cursor_type_0 = CheckpointCursor.from_dict(data)

                return next_cursor_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CheckpointCursor | None | Unset, data)

        next_cursor = _parse_next_cursor(d.pop("next_cursor", UNSET))

        checkpoint_search_response = cls(
            checkpoints=checkpoints,
            next_cursor=next_cursor,
        )

        checkpoint_search_response.additional_properties = d
        return checkpoint_search_response

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
