from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.session_response_user_metadata import SessionResponseUserMetadata


T = TypeVar("T", bound="SessionResponse")


@_attrs_define
class SessionResponse:
    """Response body of `sessions/{id}`.

    Attributes:
        sampler_ids (list[str]): Ids of its sampling sessions.
        training_run_ids (list[str]): Ids of its training runs.
        user_metadata (SessionResponseUserMetadata): Metadata that the client set when it created the session. Values
            that are not text are written as JSON.
        display_name (None | str | Unset): Name for display; any text.
    """

    sampler_ids: list[str]
    training_run_ids: list[str]
    user_metadata: SessionResponseUserMetadata
    display_name: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        sampler_ids = self.sampler_ids

        training_run_ids = self.training_run_ids

        user_metadata = self.user_metadata.to_dict()

        display_name: None | str | Unset
        if isinstance(self.display_name, Unset):
            display_name = UNSET
        else:
            display_name = self.display_name

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sampler_ids": sampler_ids,
                "training_run_ids": training_run_ids,
                "user_metadata": user_metadata,
            }
        )
        if display_name is not UNSET:
            field_dict["display_name"] = display_name

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.session_response_user_metadata import SessionResponseUserMetadata

        d = dict(src_dict)
        sampler_ids = cast(list[str], d.pop("sampler_ids"))

        training_run_ids = cast(list[str], d.pop("training_run_ids"))

        user_metadata = SessionResponseUserMetadata.from_dict(d.pop("user_metadata"))

        def _parse_display_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        display_name = _parse_display_name(d.pop("display_name", UNSET))

        session_response = cls(
            sampler_ids=sampler_ids,
            training_run_ids=training_run_ids,
            user_metadata=user_metadata,
            display_name=display_name,
        )

        session_response.additional_properties = d
        return session_response

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
