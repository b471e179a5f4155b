"""Training requests and the results of training and sampling in protobuf (`openapi/tinker_public.proto`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from . import _wire as wire
from .data import Candidates, Datum, Dtype, SampledSequence, SampleOutput, Tensor, TrainingOutput, floats, integers
from .errors import ProtocolError
from .images import Image, chunks

_FLOAT32, _INT64, _INT32 = 1, 2, 3
_NO_CANDIDATE = (0, -99_999.0)


def training_request(
    run_id: str,
    seq_id: int,
    data: Sequence[Datum],
    loss_fn: str,
    config: Mapping[str, float | str],
    forward_only: bool,
) -> bytes:
    """Encodes a `ForwardBackwardRequest`."""
    parts = [wire.text_field(1, run_id), wire.number_field(2, seq_id)]
    parts += [wire.bytes_field(3, _datum(datum)) for datum in data]
    parts.append(wire.text_field(4, loss_fn))
    if forward_only:
        parts.append(wire.number_field(6, 1))
    for name, value in config.items():
        setting = wire.text_field(2, value) if isinstance(value, str) else wire.double_field(1, float(value))
        parts.append(wire.bytes_field(7, wire.text_field(1, name) + wire.bytes_field(2, setting)))
    return b"".join(parts)


def _datum(datum: Datum) -> bytes:
    parts = [wire.bytes_field(1, _chunk(chunk)) for chunk in chunks(datum.tokens)]
    for name, values in datum.loss_fn_inputs.items():
        parts.append(
            wire.bytes_field(2, wire.text_field(1, name) + wire.bytes_field(2, _tensor(Tensor.of(name, values))))
        )
    return b"".join(parts)


def _chunk(chunk: list[int] | Image) -> bytes:
    if not isinstance(chunk, Image):
        return wire.bytes_field(1, wire.bytes_field(1, _int32(Tensor(chunk, "int64"))))
    image = wire.bytes_field(1, chunk.data) + wire.text_field(2, chunk.format)
    if chunk.expected_tokens is not None:
        image += wire.number_field(3, chunk.expected_tokens)
    return wire.bytes_field(2, image)


def _int32(tokens: Tensor) -> bytes:
    values = integers(tokens.to_bytes(), 8)
    outside = next((value for value in values if not 0 <= value < 1 << 31), None)
    if outside is not None:
        raise ValueError(f"tokens: {outside} is not a token id")
    return b"".join(value.to_bytes(4, "little") for value in values)


def _tensor(tensor: Tensor) -> bytes:
    parts = [wire.bytes_field(1, tensor.to_bytes())]
    parts.append(wire.number_field(3, _INT64 if tensor.dtype == "int64" else _FLOAT32))
    if tensor.shape is not None:
        parts.append(wire.bytes_field(4, b"".join(wire.varint(extent) for extent in tensor.shape)))
    return b"".join(parts)


def training_output(message: bytes) -> TrainingOutput:
    """Decodes a `ForwardBackwardOutput`."""
    outputs: list[dict[str, Tensor]] = []
    metrics: dict[str, float] = {}
    for number, value in wire.fields(message):
        if number == 2:
            outputs += _array_record(wire.as_bytes(value))
        elif number == 3:
            name, metric = _entry(value)
            metrics[name] = wire.as_double(metric) if metric else 0.0
    return TrainingOutput(outputs, metrics)


def _entry(value: int | bytes) -> tuple[str, bytes]:
    """Key and value of a map's entry."""
    name, content = "", b""
    for number, part in wire.fields(wire.as_bytes(value)):
        if number == 1:
            name = wire.as_text(part)
        elif number == 2:
            content = wire.as_bytes(part)
    return name, content


def _array_record(message: bytes) -> list[dict[str, Tensor]]:
    batched: dict[str, bytes] = {}
    count = 0
    for number, value in wire.fields(message):
        if number == 2:
            name, tensor = _entry(value)
            batched[name] = tensor
        elif number == 3:
            count = wire.as_int(value)
    columns = {name: _batched(tensor, count) for name, tensor in batched.items()}
    return [{name: column[datum] for name, column in columns.items()} for datum in range(count)]


def _batched(message: bytes, count: int) -> list[Tensor]:
    """One tensor for each datum."""
    data, offsets, dtype, trailing = b"", [], 0, []
    for number, value in wire.fields(message):
        if number == 1:
            data = wire.as_bytes(value)
        elif number == 2:
            offsets = integers(wire.as_bytes(value), 8)
        elif number == 3:
            dtype = wire.as_int(value)
        elif number == 4:
            trailing += wire.as_integers(value)
    if len(offsets) != count + 1:
        raise ProtocolError(f"batched tensor: {len(offsets)} offsets for {count} data")
    row = math.prod(trailing)
    tensors = []
    for start, end in itertools.pairwise(offsets):
        values, kind = _values(data[start:end], dtype)
        shape = (len(values) // row if row else 0, *trailing)
        tensors.append(Tensor(values, kind, shape))
    return tensors


def _values(data: bytes, dtype: int) -> tuple[Sequence[float], Dtype]:
    if dtype == _FLOAT32:
        return floats(data), "float32"
    if dtype in (_INT64, _INT32):
        return integers(data, 8 if dtype == _INT64 else 4), "int64"
    raise ProtocolError(f"tensor: unknown element type {dtype}")


def sample_output(message: bytes) -> SampleOutput:
    """Decodes a `SampleResponse`."""
    sequences: list[SampledSequence] = []
    prompt_logprobs: list[float | None] | None = None
    topk: Candidates | None = None
    hits = 0
    for number, value in wire.fields(message):
        if number == 1:
            sequences.append(_sequence(wire.as_bytes(value)))
        elif number == 2:
            prompt_logprobs = [None if math.isnan(x) else x for x in floats(wire.as_bytes(value))]
        elif number == 3:
            topk = _topk(wire.as_bytes(value))
        elif number == 4:
            hits = wire.as_int(value)
    return SampleOutput(sequences, prompt_logprobs, topk, hits)


def _sequence(message: bytes) -> SampledSequence:
    tokens: list[int] = []
    logprobs: list[float] | None = None
    topk: Candidates | None = None
    reason = 0
    for number, value in wire.fields(message):
        if number == 1:
            reason = wire.as_int(value)
        elif number == 2:
            tokens = integers(wire.as_bytes(value), 4)
        elif number == 3:
            logprobs = floats(wire.as_bytes(value))
        elif number == 4:
            topk = _topk(wire.as_bytes(value))
    return SampledSequence(tokens, "length" if reason == 1 else "stop", logprobs, topk)


def _topk(message: bytes) -> Candidates:
    ids: list[int] = []
    logprobs: list[float] = []
    k = 0
    for number, value in wire.fields(message):
        if number == 1:
            ids = integers(wire.as_bytes(value), 4)
        elif number == 2:
            logprobs = floats(wire.as_bytes(value))
        elif number == 3:
            k = wire.as_int(value)
    if k == 0 or len(ids) != len(logprobs) or len(ids) % k:
        if ids or logprobs:
            raise ProtocolError(f"candidates: {len(ids)} ids and {len(logprobs)} log-probabilities in rows of {k}")
        return []
    cells = list(zip(ids, logprobs, strict=True))
    rows = (cells[start : start + k] for start in range(0, len(cells), k))
    found = ([cell for cell in row if cell != _NO_CANDIDATE] for row in rows)
    return [row or None for row in found]
