from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.checkpoint_cursor import CheckpointCursor
    from ..models.checkpoint_search_request_user_metadata import (
        CheckpointSearchRequestUserMetadata,
    )
    from ..models.search_owner_type_0 import SearchOwnerType0
    from ..models.search_owner_type_1 import SearchOwnerType1
    from ..models.search_owner_type_2 import SearchOwnerType2


T = TypeVar("T", bound="CheckpointSearchRequest")


@_attrs_define
class CheckpointSearchRequest:
    """Request body of `checkpoints/search`. A checkpoint must satisfy every condition that is set.

    Attributes:
        base_models (list[str] | None | Unset): Base models, one of which the checkpoint must belong to. An empty list
            matches nothing.
        checkpoint_type (None | str | Unset): Kind of the checkpoint: `training`, `sampler` or `external`.
        cursor (CheckpointCursor | None | Unset):
        limit (int | Unset): Maximum number of checkpoints to return.
        owner (SearchOwnerType0 | SearchOwnerType1 | SearchOwnerType2 | Unset): Owners whose objects are searched.
        project_ids (list[str] | None | Unset): Projects of the caller, one of which must contain the checkpoint.
        user_metadata (CheckpointSearchRequestUserMetadata | Unset): Entries that the checkpoint's metadata must
            contain.
    """

    base_models: list[str] | None | Unset = UNSET
    checkpoint_type: None | str | Unset = UNSET
    cursor: CheckpointCursor | None | Unset = UNSET
    limit: int | Unset = UNSET
    owner: SearchOwnerType0 | SearchOwnerType1 | SearchOwnerType2 | Unset = UNSET
    project_ids: list[str] | None | Unset = UNSET
    user_metadata: CheckpointSearchRequestUserMetadata | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.checkpoint_cursor import CheckpointCursor
        from ..models.search_owner_type_0 import SearchOwnerType0
        from ..models.search_owner_type_1 import SearchOwnerType1

        base_models: list[str] | None | Unset
        if isinstance(self.base_models, Unset):
            base_models = UNSET
        elif isinstance(self.base_models, list):
            base_models = self.base_models

        else:
            base_models = self.base_models

        checkpoint_type: None | str | Unset
        if isinstance(self.checkpoint_type, Unset):
            checkpoint_type = UNSET
        else:
            checkpoint_type = self.checkpoint_type

        cursor: dict[str, Any] | None | Unset
        if isinstance(self.cursor, Unset):
            cursor = UNSET
        elif isinstance(self.cursor, CheckpointCursor):
            cursor = self.cursor.to_dict()
        else:
            cursor = self.cursor

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

        user_metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.user_metadata, Unset):
            user_metadata = self.user_metadata.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if base_models is not UNSET:
            field_dict["base_models"] = base_models
        if checkpoint_type is not UNSET:
            field_dict["checkpoint_type"] = checkpoint_type
        if cursor is not UNSET:
            field_dict["cursor"] = cursor
        if limit is not UNSET:
            field_dict["limit"] = limit
        if owner is not UNSET:
            field_dict["owner"] = owner
        if project_ids is not UNSET:
            field_dict["project_ids"] = project_ids
        if user_metadata is not UNSET:
            field_dict["user_metadata"] = user_metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.checkpoint_cursor import CheckpointCursor
        from ..models.checkpoint_search_request_user_metadata import (
            CheckpointSearchRequestUserMetadata,
        )
        from ..models.search_owner_type_0 import SearchOwnerType0
        from ..models.search_owner_type_1 import SearchOwnerType1
        from ..models.search_owner_type_2 import SearchOwnerType2

        d = dict(src_dict)

        def _parse_base_models(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                base_models_type_0 = cast(list[str], data)

                return base_models_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        base_models = _parse_base_models(d.pop("base_models", UNSET))

        def _parse_checkpoint_type(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        checkpoint_type = _parse_checkpoint_type(d.pop("checkpoint_type", UNSET))

        def _parse_cursor(data: object) -> CheckpointCursor | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                cursor_type_0 = CheckpointCursor.from_dict(data)

                return cursor_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CheckpointCursor | None | Unset, data)

        cursor = _parse_cursor(d.pop("cursor", UNSET))

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

        _user_metadata = d.pop("user_metadata", UNSET)
        user_metadata: CheckpointSearchRequestUserMetadata | Unset
        if isinstance(_user_metadata, Unset):
            user_metadata = UNSET
        else:
            user_metadata = CheckpointSearchRequestUserMetadata.from_dict(
                _user_metadata
            )

        checkpoint_search_request = cls(
            base_models=base_models,
            checkpoint_type=checkpoint_type,
            cursor=cursor,
            limit=limit,
            owner=owner,
            project_ids=project_ids,
            user_metadata=user_metadata,
        )

        return checkpoint_search_request
