from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ClientConfigResponse")


@_attrs_define
class ClientConfigResponse:
    """Response body of `client/config`: settings that the server chooses for the client. The client uses its own defaults
    for settings that are not listed.

        Attributes:
            credential_default_source (str): Source of the credential.
            custom_loss_server_side (bool): Whether to run custom losses on the server.
            fwdbwd_max_chunk_bytes_count (int): Estimated maximum size of a `forward_backward` request, in bytes.
            fwdbwd_max_chunk_len (int): Maximum number of datums per `forward_backward` request.
            parallel_fwdbwd_chunks (bool): Whether to post the chunks of a call concurrently.
            pjwt_auth_enabled (bool): Whether to exchange the API key for a token at `auth/token`, and to call with the
                token.
            proto_compress_fwdbwd (bool): Whether to compress `forward_backward` bodies with zstd.
            sample_join_sampling_session (bool): Whether to ask the server for the numbers of clones.
            sample_use_retrieve_futures (bool): Whether to learn of finished samples through `retrieve_futures`.
    """

    credential_default_source: str
    custom_loss_server_side: bool
    fwdbwd_max_chunk_bytes_count: int
    fwdbwd_max_chunk_len: int
    parallel_fwdbwd_chunks: bool
    pjwt_auth_enabled: bool
    proto_compress_fwdbwd: bool
    sample_join_sampling_session: bool
    sample_use_retrieve_futures: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        credential_default_source = self.credential_default_source

        custom_loss_server_side = self.custom_loss_server_side

        fwdbwd_max_chunk_bytes_count = self.fwdbwd_max_chunk_bytes_count

        fwdbwd_max_chunk_len = self.fwdbwd_max_chunk_len

        parallel_fwdbwd_chunks = self.parallel_fwdbwd_chunks

        pjwt_auth_enabled = self.pjwt_auth_enabled

        proto_compress_fwdbwd = self.proto_compress_fwdbwd

        sample_join_sampling_session = self.sample_join_sampling_session

        sample_use_retrieve_futures = self.sample_use_retrieve_futures

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "credential_default_source": credential_default_source,
                "custom_loss_server_side": custom_loss_server_side,
                "fwdbwd_max_chunk_bytes_count": fwdbwd_max_chunk_bytes_count,
                "fwdbwd_max_chunk_len": fwdbwd_max_chunk_len,
                "parallel_fwdbwd_chunks": parallel_fwdbwd_chunks,
                "pjwt_auth_enabled": pjwt_auth_enabled,
                "proto_compress_fwdbwd": proto_compress_fwdbwd,
                "sample_join_sampling_session": sample_join_sampling_session,
                "sample_use_retrieve_futures": sample_use_retrieve_futures,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        credential_default_source = d.pop("credential_default_source")

        custom_loss_server_side = d.pop("custom_loss_server_side")

        fwdbwd_max_chunk_bytes_count = d.pop("fwdbwd_max_chunk_bytes_count")

        fwdbwd_max_chunk_len = d.pop("fwdbwd_max_chunk_len")

        parallel_fwdbwd_chunks = d.pop("parallel_fwdbwd_chunks")

        pjwt_auth_enabled = d.pop("pjwt_auth_enabled")

        proto_compress_fwdbwd = d.pop("proto_compress_fwdbwd")

        sample_join_sampling_session = d.pop("sample_join_sampling_session")

        sample_use_retrieve_futures = d.pop("sample_use_retrieve_futures")

        client_config_response = cls(
            credential_default_source=credential_default_source,
            custom_loss_server_side=custom_loss_server_side,
            fwdbwd_max_chunk_bytes_count=fwdbwd_max_chunk_bytes_count,
            fwdbwd_max_chunk_len=fwdbwd_max_chunk_len,
            parallel_fwdbwd_chunks=parallel_fwdbwd_chunks,
            pjwt_auth_enabled=pjwt_auth_enabled,
            proto_compress_fwdbwd=proto_compress_fwdbwd,
            sample_join_sampling_session=sample_join_sampling_session,
            sample_use_retrieve_futures=sample_use_retrieve_futures,
        )

        client_config_response.additional_properties = d
        return client_config_response

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
