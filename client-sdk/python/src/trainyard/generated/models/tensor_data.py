from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.tensor_dtype import TensorDtype
from ..types import UNSET, Unset

T = TypeVar("T", bound="TensorData")


@_attrs_define
class TensorData:
    """A tensor in JSON. If both index lists are set, it is sparse, and `data` contains the listed cells row by row.

    Attributes:
        data (list[float]): Elements in row-major order.
        dtype (TensorDtype): Element types of the JSON form.
        shape (list[int] | None | Unset): Extents, outermost first; one dimension by default.
        sparse_col_indices (list[int] | None | Unset): Columns of a sparse tensor: one per element.
        sparse_crow_indices (list[int] | None | Unset): Row pointers of a sparse tensor: rows + 1 entries.
    """

    data: list[float]
    dtype: TensorDtype
    shape: list[int] | None | Unset = UNSET
    sparse_col_indices: list[int] | None | Unset = UNSET
    sparse_crow_indices: list[int] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        data = self.data

        dtype = self.dtype.value

        shape: list[int] | None | Unset
        if isinstance(self.shape, Unset):
            shape = UNSET
        elif isinstance(self.shape, list):
            shape = self.shape

        else:
            shape = self.shape

        sparse_col_indices: list[int] | None | Unset
        if isinstance(self.sparse_col_indices, Unset):
            sparse_col_indices = UNSET
        elif isinstance(self.sparse_col_indices, list):
            sparse_col_indices = self.sparse_col_indices

        else:
            sparse_col_indices = self.sparse_col_indices

        sparse_crow_indices: list[int] | None | Unset
        if isinstance(self.sparse_crow_indices, Unset):
            sparse_crow_indices = UNSET
        elif isinstance(self.sparse_crow_indices, list):
            sparse_crow_indices = self.sparse_crow_indices

        else:
            sparse_crow_indices = self.sparse_crow_indices

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "data": data,
                "dtype": dtype,
            }
        )
        if shape is not UNSET:
            field_dict["shape"] = shape
        if sparse_col_indices is not UNSET:
            field_dict["sparse_col_indices"] = sparse_col_indices
        if sparse_crow_indices is not UNSET:
            field_dict["sparse_crow_indices"] = sparse_crow_indices

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        data = cast(list[float], d.pop("data"))

        dtype = TensorDtype(d.pop("dtype"))

        def _parse_shape(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                shape_type_0 = cast(list[int], data)

                return shape_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        shape = _parse_shape(d.pop("shape", UNSET))

        def _parse_sparse_col_indices(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                sparse_col_indices_type_0 = cast(list[int], data)

                return sparse_col_indices_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        sparse_col_indices = _parse_sparse_col_indices(
            d.pop("sparse_col_indices", UNSET)
        )

        def _parse_sparse_crow_indices(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                sparse_crow_indices_type_0 = cast(list[int], data)

                return sparse_crow_indices_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        sparse_crow_indices = _parse_sparse_crow_indices(
            d.pop("sparse_crow_indices", UNSET)
        )

        tensor_data = cls(
            data=data,
            dtype=dtype,
            shape=shape,
            sparse_col_indices=sparse_col_indices,
            sparse_crow_indices=sparse_crow_indices,
        )

        tensor_data.additional_properties = d
        return tensor_data

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
