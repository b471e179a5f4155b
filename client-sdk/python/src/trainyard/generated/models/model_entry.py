from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="ModelEntry")


@_attrs_define
class ModelEntry:
    """A base model or a sampler checkpoint.

    Attributes:
        created (int): Time of the save, in seconds since 1970; 0 for base models.
        id (str): Name of the base model, or path of the checkpoint.
        max_model_len (int): Maximum length of prompt and completion together, in tokens.
        object_ (str): Always the text `model`.
        owned_by (str): `trainyard` for base models, `user` for checkpoints.
        root (None | str | Unset): Base model of the checkpoint.
    """

    created: int
    id: str
    max_model_len: int
    object_: str
    owned_by: str
    root: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        created = self.created

        id = self.id

        max_model_len = self.max_model_len

        object_ = self.object_

        owned_by = self.owned_by

        root: None | str | Unset
        if isinstance(self.root, Unset):
            root = UNSET
        else:
            root = self.root

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "created": created,
                "id": id,
                "max_model_len": max_model_len,
                "object": object_,
                "owned_by": owned_by,
            }
        )
        if root is not UNSET:
            field_dict["root"] = root

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        created = d.pop("created")

        id = d.pop("id")

        max_model_len = d.pop("max_model_len")

        object_ = d.pop("object")

        owned_by = d.pop("owned_by")

        def _parse_root(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        root = _parse_root(d.pop("root", UNSET))

        model_entry = cls(
            created=created,
            id=id,
            max_model_len=max_model_len,
            object_=object_,
            owned_by=owned_by,
            root=root,
        )

        model_entry.additional_properties = d
        return model_entry

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
