"""Requests of the Tinker API, without sending them: their bodies, and how their answers are read.

The synchronous and the asynchronous client differ only in how they send these.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import httpx
import zstandard

from . import _codec
from .data import Datum, OptimOutput, SampleOutput, TrainingOutput
from .errors import ProtocolError, RequestFailedError
from .generated.models import AdamParamsBody as AdamParams
from .generated.models import (
    CreateModelRequest,
    CreateModelRequestUserMetadata,
    CreateSamplingSessionRequest,
    CreateSessionRequest,
    CreateSessionRequestUserMetadata,
    FinishKind,
    FinishReason,
    FinishRequest,
    HeartbeatRequest,
    InputChunk,
    LoadWeightsRequest,
    LoraConfig,
    ModelInput,
    OptimStepRequest,
    RetrieveFutureRequest,
    SampleRequest,
    SamplingParams,
    SaveWeightsForSamplerRequest,
    SaveWeightsRequest,
)
from .generated.types import UNSET
from .images import Image, Part, chunks

T = TypeVar("T")

JSON, PROTOBUF = "application/json", "application/x-protobuf"

POLL_SECONDS = 45.0
"""Timeout of `retrieve_future` in seconds; the server answers within half a minute."""

COMPRESSED_FROM = 1024
"""Bytes; smaller bodies are sent uncompressed."""


class Body(Protocol):
    """A generated model."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the body as JSON."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """A POST request, and how the answer is read."""

    path: str
    content: bytes
    read: Callable[[httpx.Response], T]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """A future that has no result yet."""

    queue_state: str
    reason: str | None


Result = Callable[[httpx.Response], T]
"""Reads a future's result."""


def _post(path: str, body: Body, read: Callable[[httpx.Response], T], accept: str = JSON) -> Call[T]:
    content = json.dumps(body.to_dict(), allow_nan=False).encode()
    return Call(f"/api/v1/{path}", content, read, {"content-type": JSON, "accept": accept})


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except ValueError as error:
        raise ProtocolError(f"{response.request.url.path}: the answer is not JSON") from error
    if not isinstance(body, dict):
        raise ProtocolError(f"{response.request.url.path}: expected a JSON object")
    return body


def _text(name: str) -> Callable[[httpx.Response], str]:
    """Reads one field of a JSON answer."""

    def read(response: httpx.Response) -> str:
        value = _object(response).get(name)
        if not isinstance(value, str):
            raise ProtocolError(f"{response.request.url.path}: the answer has no {name}")
        return value

    return read


def _nothing(_: httpx.Response) -> None:
    return None


# Sessions


def create_session(
    version: str, tags: Sequence[str], user_metadata: Mapping[str, Any], project_id: str | None
) -> Call[str]:
    """Returns the session's id."""
    metadata = CreateSessionRequestUserMetadata.from_dict(user_metadata)
    body = CreateSessionRequest(
        sdk_version=version, tags=list(tags), user_metadata=metadata, project_id=project_id or UNSET
    )
    return _post("create_session", body, _text("session_id"))


def heartbeat(session_id: str) -> Call[None]:
    """Keeps a session alive."""
    return _post("session_heartbeat", HeartbeatRequest(session_id=session_id), _nothing)


def finish(session_id: str, kind: FinishKind, detail: str | None) -> Call[None]:
    """Ends a session."""
    body = FinishRequest(reason=FinishReason(type_=kind), detail=detail or UNSET)
    return _post(f"sessions/{session_id}/finish", body, _nothing)


# Runs


def create_run(
    session_id: str, number: int, base_model: str, lora: LoraConfig, user_metadata: Mapping[str, Any]
) -> Call[str]:
    """Returns a future of a run."""
    metadata = CreateModelRequestUserMetadata.from_dict(user_metadata)
    body = CreateModelRequest(
        session_id=session_id, model_seq_id=number, base_model=base_model, lora_config=lora, user_metadata=metadata
    )
    return _post("create_model", body, _text("request_id"))


def resume_run(session_id: str, number: int, path: str, base_model: str | None, optimizer: bool) -> Call[str]:
    """Returns a future of a run that begins with a checkpoint."""
    body = LoadWeightsRequest(
        session_id=session_id, model_seq_id=number, path=path, optimizer=optimizer, base_model=base_model or UNSET
    )
    return _post("load_weights", body, _text("request_id"))


def training_pass(
    run_id: str,
    seq_id: int,
    data: Sequence[Datum],
    loss_fn: str,
    config: Mapping[str, float | str],
    forward_only: bool,
) -> Call[str]:
    """Starts `forward` or `forward_backward`; the request is protobuf and compressed."""
    content = _codec.training_request(run_id, seq_id, data, loss_fn, config, forward_only)
    headers = {"content-type": PROTOBUF, "accept": JSON}
    if len(content) >= COMPRESSED_FROM:
        content = zstandard.ZstdCompressor().compress(content)
        headers["content-encoding"] = "zstd"
    return Call("/api/v1/forward_backward", content, _text("request_id"), headers)


def optim_step(run_id: str, seq_id: int, adam: AdamParams) -> Call[str]:
    """Applies the accumulated gradient."""
    return _post("optim_step", OptimStepRequest(model_id=run_id, seq_id=seq_id, adam_params=adam), _text("request_id"))


def save_state(run_id: str, seq_id: int, name: str, overwrite: bool, ttl_seconds: int | None) -> Call[str]:
    """Saves weights and optimizer state."""
    body = SaveWeightsRequest(
        model_id=run_id, seq_id=seq_id, path=name, overwrite=overwrite, ttl_seconds=_or_unset(ttl_seconds)
    )
    return _post("save_weights", body, _text("request_id"))


def load_state(run_id: str, seq_id: int, path: str, optimizer: bool) -> Call[str]:
    """Loads a checkpoint into an existing run."""
    body = LoadWeightsRequest(model_id=run_id, seq_id=seq_id, path=path, optimizer=optimizer)
    return _post("load_weights", body, _text("request_id"))


def save_sampler(run_id: str, seq_id: int, name: str, ttl_seconds: int | None) -> Call[str]:
    """Saves a named checkpoint for sampling."""
    body = SaveWeightsForSamplerRequest(model_id=run_id, seq_id=seq_id, path=name, ttl_seconds=_or_unset(ttl_seconds))
    return _post("save_weights_for_sampler", body, _text("request_id"))


def snapshot(run_id: str, seq_id: int, number: int) -> Call[str]:
    """Freezes the weights for sampling, without a checkpoint."""
    body = SaveWeightsForSamplerRequest(model_id=run_id, seq_id=seq_id, sampling_session_seq_id=number)
    return _post("save_weights_for_sampler", body, _text("request_id"))


def _or_unset(value: int | None) -> Any:  # noqa: ANN401 - the generator's marker has no public type
    return UNSET if value is None else value


# Sampling


def sampling_session(session_id: str, number: int, base_model: str | None, path: str | None) -> Call[str]:
    """Returns the id of a sampling session."""
    body = CreateSamplingSessionRequest(
        session_id=session_id,
        sampling_session_seq_id=number,
        base_model=base_model or UNSET,
        model_path=path or UNSET,
    )
    return _post("create_sampling_session", body, _text("sampling_session_id"))


def sample(
    sampler_id: str,
    seq_id: int,
    prompt: Sequence[Part],
    num_samples: int,
    params: SamplingParams,
    prompt_logprobs: bool,
    topk_prompt_logprobs: int,
    topk_sample_logprobs: int,
) -> Call[str]:
    """Samples completions of a prompt."""
    body = SampleRequest(
        sampling_session_id=sampler_id,
        seq_id=seq_id,
        prompt=ModelInput(chunks=[_chunk(chunk) for chunk in chunks(prompt)]),
        num_samples=num_samples,
        sampling_params=params,
        prompt_logprobs=prompt_logprobs,
        topk_prompt_logprobs=topk_prompt_logprobs,
        topk_sample_logprobs=topk_sample_logprobs,
    )
    return _post("asample", body, _text("request_id"))


def _chunk(chunk: list[int] | Image) -> InputChunk:
    if not isinstance(chunk, Image):
        return InputChunk(tokens=chunk, type_="encoded_text")
    return InputChunk(
        data=base64.b64encode(chunk.data).decode(),
        format_=chunk.format,
        expected_tokens=UNSET if chunk.expected_tokens is None else chunk.expected_tokens,
        type_="image",
    )


# Futures


def retrieve(request_id: str, result: Result[T]) -> Call[T | Pending]:
    """Waits for a result, for at most half a minute."""

    def read(response: httpx.Response) -> T | Pending:
        if response.headers.get("content-type", "").startswith(PROTOBUF):
            return result(response)
        body = _object(response)
        if body.get("type") == "try_again":
            return Pending(str(body.get("queue_state", "")), body.get("queue_state_reason"))
        if "error" in body:
            raise RequestFailedError(str(body["error"]), str(body.get("category", "unknown")), request_id)
        return result(response)

    return _post("retrieve_future", RetrieveFutureRequest(request_id=request_id), read, f"{PROTOBUF}, {JSON}")


def training_result(response: httpx.Response) -> TrainingOutput:
    """Reads the result of `forward` or `forward_backward`."""
    _expect_protobuf(response)
    return _codec.training_output(response.content)


def sample_result(response: httpx.Response) -> SampleOutput:
    """Reads the result of `sample`."""
    _expect_protobuf(response)
    return _codec.sample_output(response.content)


def optim_result(response: httpx.Response) -> OptimOutput:
    """Reads the result of `optim_step`."""
    metrics = _object(response).get("metrics")
    return OptimOutput(dict(metrics) if isinstance(metrics, dict) else {})


run_result = _text("model_id")
path_result = _text("path")
sampler_result = _text("sampling_session_id")


def _expect_protobuf(response: httpx.Response) -> None:
    if not response.headers.get("content-type", "").startswith(PROTOBUF):
        raise ProtocolError(f"{response.request.url.path}: the result is not protobuf")
