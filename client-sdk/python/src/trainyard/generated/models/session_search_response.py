from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.search_cursor import SearchCursor
    from ..models.session_summary import SessionSummary


T = TypeVar("T", bound="SessionSearchResponse")


@_attrs_define
class SessionSearchResponse:
    """Response body of `sessions/search`.

    Attributes:
        sessions (list[SessionSummary]): Matches, newest first. A page may contain fewer than `limit` although
            `next_cursor` is set.
        next_cursor (None | SearchCursor | Unset):
    """

    sessions: list[SessionSummary]
    next_cursor: None | SearchCursor | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.search_cursor import SearchCursor

        sessions = []
        for sessions_item_data in self.sessions:
            sessions_item = sessions_item_data.to_dict()
            sessions.append(sessions_item)

        next_cursor: dict[str, Any] | None | Unset
        if isinstance(self.next_cursor, Unset):
            next_cursor = UNSET
        elif isinstance(self.next_cursor, SearchCursor):
            next_cursor = self.next_cursor.to_dict()
        else:
            next_cursor = self.next_cursor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sessions": sessions,
            }
        )
        if next_cursor is not UNSET:
            field_dict["next_cursor"] = next_cursor

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.search_cursor import SearchCursor
        from ..models.session_summary import SessionSummary

        d = dict(src_dict)
        sessions = []
        _sessions = d.pop("sessions")
        for sessions_item_data in _sessions:
            sessions_item = SessionSummary.from_dict(sessions_item_data)

            sessions.append(sessions_item)

        def _parse_next_cursor(data: object) -> None | SearchCursor | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                next_cursor_type_0 = SearchCursor.from_dict(data)

                return next_cursor_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SearchCursor | Unset, data)

        next_cursor = _parse_next_cursor(d.pop("next_cursor", UNSET))

        session_search_response = cls(
            sessions=sessions,
            next_cursor=next_cursor,
        )

        session_search_response.additional_properties = d
        return session_search_response

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
