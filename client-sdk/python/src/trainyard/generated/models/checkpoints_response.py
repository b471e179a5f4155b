from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint
    from ..models.cursor import Cursor


T = TypeVar("T", bound="CheckpointsResponse")


@_attrs_define
class CheckpointsResponse:
    """Response body of `checkpoints` and `training_runs/{id}/checkpoints`.

    Attributes:
        checkpoints (list[Checkpoint]): The checkpoints of this page.
        cursor (Cursor | None | Unset):
    """

    checkpoints: list[Checkpoint]
    cursor: Cursor | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cursor import Cursor

        checkpoints = []
        for checkpoints_item_data in self.checkpoints:
            checkpoints_item = checkpoints_item_data.to_dict()
            checkpoints.append(checkpoints_item)

        cursor: dict[str, Any] | None | Unset
        if isinstance(self.cursor, Unset):
            cursor = UNSET
        elif isinstance(self.cursor, Cursor):
            cursor = self.cursor.to_dict()
        else:
            cursor = self.cursor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "checkpoints": checkpoints,
            }
        )
        if cursor is not UNSET:
            field_dict["cursor"] = cursor

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.checkpoint import Checkpoint
        from ..models.cursor import Cursor

        d = dict(src_dict)
        checkpoints = []
        _checkpoints = d.pop("checkpoints")
        for checkpoints_item_data in _checkpoints:
            checkpoints_item = Checkpoint.from_dict(checkpoints_item_data)

            checkpoints.append(checkpoints_item)

        def _parse_cursor(data: object) -> Cursor | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                cursor_type_0 = Cursor.from_dict(data)

                return cursor_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Cursor | None | Unset, data)

        cursor = _parse_cursor(d.pop("cursor", UNSET))

        checkpoints_response = cls(
            checkpoints=checkpoints,
            cursor=cursor,
        )

        checkpoints_response.additional_properties = d
        return checkpoints_response

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
