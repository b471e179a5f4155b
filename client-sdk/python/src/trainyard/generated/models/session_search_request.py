from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.search_cursor import SearchCursor
    from ..models.search_owner_type_0 import SearchOwnerType0
    from ..models.search_owner_type_1 import SearchOwnerType1
    from ..models.search_owner_type_2 import SearchOwnerType2
    from ..models.session_search_request_user_metadata import (
        SessionSearchRequestUserMetadata,
    )
    from ..models.status_query_type_0 import StatusQueryType0
    from ..models.status_query_type_1 import StatusQueryType1
    from ..models.status_query_type_2 import StatusQueryType2
    from ..models.status_query_type_3 import StatusQueryType3


T = TypeVar("T", bound="SessionSearchRequest")


@_attrs_define
class SessionSearchRequest:
    """Request body of `sessions/search`. A session must satisfy every condition that is set. If both `session_id` and
    `display_name` are set, it must satisfy either of these two.

        Attributes:
            cursor (None | SearchCursor | Unset):
            display_name (None | str | Unset): Words that must all occur in the display name, in upper or lower case.
            limit (int | Unset): Maximum number of sessions to return.
            owner (SearchOwnerType0 | SearchOwnerType1 | SearchOwnerType2 | Unset): Owners whose objects are searched.
            project_ids (list[str] | None | Unset): Projects, one of which must contain the session.
            session_id (None | str | Unset): Id of the session.
            statuses (list[StatusQueryType0 | StatusQueryType1 | StatusQueryType2 | StatusQueryType3] | None | Unset):
                Statuses, one of which the session must have.
            user_metadata (SessionSearchRequestUserMetadata | Unset): Entries that the session's metadata must contain.
    """

    cursor: None | SearchCursor | Unset = UNSET
    display_name: None | str | Unset = UNSET
    limit: int | Unset = UNSET
    owner: SearchOwnerType0 | SearchOwnerType1 | SearchOwnerType2 | Unset = UNSET
    project_ids: list[str] | None | Unset = UNSET
    session_id: None | str | Unset = UNSET
    statuses: (
        list[StatusQueryType0 | StatusQueryType1 | StatusQueryType2 | StatusQueryType3]
        | None
        | Unset
    ) = UNSET
    user_metadata: SessionSearchRequestUserMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.search_cursor import SearchCursor
        from ..models.search_owner_type_0 import SearchOwnerType0
        from ..models.search_owner_type_1 import SearchOwnerType1
        from ..models.status_query_type_0 import StatusQueryType0
        from ..models.status_query_type_1 import StatusQueryType1
        from ..models.status_query_type_2 import StatusQueryType2

        cursor: dict[str, Any] | None | Unset
        if isinstance(self.cursor, Unset):
            cursor = UNSET
        elif isinstance(self.cursor, SearchCursor):
            cursor = self.cursor.to_dict()
        else:
            cursor = self.cursor

        display_name: None | str | Unset
        if isinstance(self.display_name, Unset):
            display_name = UNSET
        else:
            display_name = self.display_name

        limit = self.limit

        owner: dict[str, Any] | Unset
        if isinstance(self.owner, Unset):
            owner = UNSET
        elif isinstance(self.owner, SearchOwnerType0) or isinstance(
            self.owner, SearchOwnerType1
        ):
            owner = self.owner.to_dict()
        else:
            owner = self.owner.to_dict()

        project_ids: list[str] | None | Unset
        if isinstance(self.project_ids, Unset):
            project_ids = UNSET
        elif isinstance(self.project_ids, list):
            project_ids = self.project_ids

        else:
            project_ids = self.project_ids

        session_id: None | str | Unset
        if isinstance(self.session_id, Unset):
            session_id = UNSET
        else:
            session_id = self.session_id

        statuses: list[dict[str, Any]] | None | Unset
        if isinstance(self.statuses, Unset):
            statuses = UNSET
        elif isinstance(self.statuses, list):
            statuses = []
            for statuses_type_0_item_data in self.statuses:
                statuses_type_0_item: dict[str, Any]
                if (
                    isinstance(statuses_type_0_item_data, StatusQueryType0)
                    or isinstance(statuses_type_0_item_data, StatusQueryType1)
                    or isinstance(statuses_type_0_item_data, StatusQueryType2)
                ):
                    statuses_type_0_item = statuses_type_0_item_data.to_dict()
                else:
                    statuses_type_0_item = statuses_type_0_item_data.to_dict()

                statuses.append(statuses_type_0_item)

        else:
            statuses = self.statuses

        user_metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.user_metadata, Unset):
            user_metadata = self.user_metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if cursor is not UNSET:
            field_dict["cursor"] = cursor
        if display_name is not UNSET:
            field_dict["display_name"] = display_name
        if limit is not UNSET:
            field_dict["limit"] = limit
        if owner is not UNSET:
            field_dict["owner"] = owner
        if project_ids is not UNSET:
            field_dict["project_ids"] = project_ids
        if session_id is not UNSET:
            field_dict["session_id"] = session_id
        if statuses is not UNSET:
            field_dict["statuses"] = statuses
        if user_metadata is not UNSET:
            field_dict["user_metadata"] = user_metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.search_cursor import SearchCursor
        from ..models.search_owner_type_0 import SearchOwnerType0
        from ..models.search_owner_type_1 import SearchOwnerType1
        from ..models.search_owner_type_2 import SearchOwnerType2
        from ..models.session_search_request_user_metadata import (
            SessionSearchRequestUserMetadata,
        )
        from ..models.status_query_type_0 import StatusQueryType0
        from ..models.status_query_type_1 import StatusQueryType1
        from ..models.status_query_type_2 import StatusQueryType2
        from ..models.status_query_type_3 import StatusQueryType3

        d = dict(src_dict)

        def _parse_cursor(data: object) -> None | SearchCursor | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                cursor_type_0 = SearchCursor.from_dict(data)

                return cursor_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SearchCursor | Unset, data)

        cursor = _parse_cursor(d.pop("cursor", UNSET))

        def _parse_display_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        display_name = _parse_display_name(d.pop("display_name", UNSET))

        limit = d.pop("limit", UNSET)

        def _parse_owner(
            data: object,
        ) -> SearchOwnerType0 | SearchOwnerType1 | SearchOwnerType2 | Unset:
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_search_owner_type_0 = SearchOwnerType0.from_dict(data)

                return componentsschemas_search_owner_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_search_owner_type_1 = SearchOwnerType1.from_dict(data)

                return componentsschemas_search_owner_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_search_owner_type_2 = SearchOwnerType2.from_dict(data)

            return componentsschemas_search_owner_type_2

        owner = _parse_owner(d.pop("owner", UNSET))

        def _parse_project_ids(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                project_ids_type_0 = cast(list[str], data)

                return project_ids_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        project_ids = _parse_project_ids(d.pop("project_ids", UNSET))

        def _parse_session_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        session_id = _parse_session_id(d.pop("session_id", UNSET))

        def _parse_statuses(
            data: object,
        ) -> (
            list[
                StatusQueryType0
                | StatusQueryType1
                | StatusQueryType2
                | StatusQueryType3
            ]
            | None
            | Unset
        ):
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                statuses_type_0 = []
                _statuses_type_0 = data
                for statuses_type_0_item_data in _statuses_type_0:

                    def _parse_statuses_type_0_item(
                        data: object,
                    ) -> (
                        StatusQueryType0
                        | StatusQueryType1
                        | StatusQueryType2
                        | StatusQueryType3
                    ):
                        try:
                            if not isinstance(data, dict):
                                raise TypeError()
                            componentsschemas_status_query_type_0 = (
                                StatusQueryType0.from_dict(data)
                            )

                            return componentsschemas_status_query_type_0
                        except (TypeError, ValueError, AttributeError, KeyError):
                            pass
                        try:
                            if not isinstance(data, dict):
                                raise TypeError()
                            componentsschemas_status_query_type_1 = (
                                StatusQueryType1.from_dict(data)
                            )

                            return componentsschemas_status_query_type_1
                        except (TypeError, ValueError, AttributeError, KeyError):
                            pass
                        try:
                            if not isinstance(data, dict):
                                raise TypeError()
                            componentsschemas_status_query_type_2 = (
                                StatusQueryType2.from_dict(data)
                            )

                            return componentsschemas_status_query_type_2
                        except (TypeError, ValueError, AttributeError, KeyError):
                            pass
                        if not isinstance(data, dict):
                            raise TypeError()
                        componentsschemas_status_query_type_3 = (
                            StatusQueryType3.from_dict(data)
                        )

                        return componentsschemas_status_query_type_3

                    statuses_type_0_item = _parse_statuses_type_0_item(
                        statuses_type_0_item_data
                    )

                    statuses_type_0.append(statuses_type_0_item)

                return statuses_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(
                list[
                    StatusQueryType0
                    | StatusQueryType1
                    | StatusQueryType2
                    | StatusQueryType3
                ]
                | None
                | Unset,
                data,
            )

        statuses = _parse_statuses(d.pop("statuses", UNSET))

        _user_metadata = d.pop("user_metadata", UNSET)
        user_metadata: SessionSearchRequestUserMetadata | Unset
        if isinstance(_user_metadata, Unset):
            user_metadata = UNSET
        else:
            user_metadata = SessionSearchRequestUserMetadata.from_dict(_user_metadata)

        session_search_request = cls(
            cursor=cursor,
            display_name=display_name,
            limit=limit,
            owner=owner,
            project_ids=project_ids,
            session_id=session_id,
            statuses=statuses,
            user_metadata=user_metadata,
        )

        session_search_request.additional_properties = d
        return session_search_request

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
