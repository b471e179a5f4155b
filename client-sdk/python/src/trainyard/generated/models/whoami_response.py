from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.whoami_credential import WhoamiCredential
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.whoami_key import WhoamiKey
    from ..models.whoami_user import WhoamiUser


T = TypeVar("T", bound="WhoamiResponse")


@_attrs_define
class WhoamiResponse:
    """Response body of `auth/whoami`.

    Attributes:
        credential (WhoamiCredential): How a server identified a caller.
        operator (bool): Whether admins of this organisation manage all others.
        organisation (str): The organisation that owns the objects that the caller sees.
        role (str): `admin`, `member` or `read-only`.
        scopes (list[str]): What the caller may change: `train`, `sample`, `checkpoints`, `admin`.
        subject (str): Identifies the user, or the key of a program: the claim `sub` of its tokens.
        expires_at (datetime.datetime | None | Unset): Time at which the key or token of the call expires, in RFC 3339;
            absent if it never does.
        key (None | Unset | WhoamiKey):
        user (None | Unset | WhoamiUser):
    """

    credential: WhoamiCredential
    operator: bool
    organisation: str
    role: str
    scopes: list[str]
    subject: str
    expires_at: datetime.datetime | None | Unset = UNSET
    key: None | Unset | WhoamiKey = UNSET
    user: None | Unset | WhoamiUser = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.whoami_key import WhoamiKey
        from ..models.whoami_user import WhoamiUser

        credential = self.credential.value

        operator = self.operator

        organisation = self.organisation

        role = self.role

        scopes = self.scopes

        subject = self.subject

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        key: dict[str, Any] | None | Unset
        if isinstance(self.key, Unset):
            key = UNSET
        elif isinstance(self.key, WhoamiKey):
            key = self.key.to_dict()
        else:
            key = self.key

        user: dict[str, Any] | None | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        elif isinstance(self.user, WhoamiUser):
            user = self.user.to_dict()
        else:
            user = self.user

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "credential": credential,
                "operator": operator,
                "organisation": organisation,
                "role": role,
                "scopes": scopes,
                "subject": subject,
            }
        )
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if key is not UNSET:
            field_dict["key"] = key
        if user is not UNSET:
            field_dict["user"] = user

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.whoami_key import WhoamiKey
        from ..models.whoami_user import WhoamiUser

        d = dict(src_dict)
        credential = WhoamiCredential(d.pop("credential"))

        operator = d.pop("operator")

        organisation = d.pop("organisation")

        role = d.pop("role")

        scopes = cast(list[str], d.pop("scopes"))

        subject = d.pop("subject")

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        def _parse_key(data: object) -> None | Unset | WhoamiKey:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                key_type_0 = WhoamiKey.from_dict(data)

                return key_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | WhoamiKey, data)

        key = _parse_key(d.pop("key", UNSET))

        def _parse_user(data: object) -> None | Unset | WhoamiUser:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                user_type_0 = WhoamiUser.from_dict(data)

                return user_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | WhoamiUser, data)

        user = _parse_user(d.pop("user", UNSET))

        whoami_response = cls(
            credential=credential,
            operator=operator,
            organisation=organisation,
            role=role,
            scopes=scopes,
            subject=subject,
            expires_at=expires_at,
            key=key,
            user=user,
        )

        whoami_response.additional_properties = d
        return whoami_response

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
