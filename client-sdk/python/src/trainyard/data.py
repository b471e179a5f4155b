"""Inputs and results of training and sampling."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .images import Image, Part, positions

Dtype = Literal["float32", "int64"]


@dataclass(frozen=True)
class Tensor:
    """A dense tensor: `data` row by row; one-dimensional without a `shape`."""

    data: Sequence[float]
    dtype: Dtype
    shape: tuple[int, ...] | None = None

    @classmethod
    def of(cls, name: str, values: Tensor | Sequence[float]) -> Tensor:
        """Returns an input of a loss: plain numbers are `int64` under a name that ends in `tokens`, otherwise
        `float32`."""
        if isinstance(values, Tensor):
            return values
        return cls(values, "int64" if name.endswith("tokens") else "float32")

    def to_bytes(self) -> bytes:
        """Returns the elements as little-endian bytes."""
        if self.dtype == "int64":
            return _little(array("q", [int(value) for value in self.data]))
        return _little(array("f", [float(value) for value in self.data]))


@dataclass(frozen=True)
class Datum:
    """An example: its input tokens and the inputs of the loss by name, such as `target_tokens` and `weights`.

    Tokens may include images, each of whose positions needs a row in the inputs of the loss. Plain numbers are sent as
    `int64` under a name that ends in `tokens`, otherwise as `float32`; a `Tensor` is sent unchanged.
    """

    tokens: Sequence[Part]
    loss_fn_inputs: Mapping[str, Tensor | Sequence[float]] = field(default_factory=dict)

    @classmethod
    def next_token(cls, tokens: Sequence[Part]) -> Datum:
        """Returns a sequence whose tokens are each predicted from those before it, all with weight 1.

        Images need `expected_tokens`; nothing is predicted at their positions. The last part must be a token.
        """
        if tokens and isinstance(tokens[-1], Image):
            raise ValueError("tokens: the last part is an image, which can't be predicted")
        following = positions(tokens)[1:]
        weights = [0.0 if target is None else 1.0 for target in following]
        targets = [target or 0 for target in following]
        return cls(tokens[:-1], {"target_tokens": targets, "weights": weights})


@dataclass(frozen=True)
class TrainingOutput:
    """Result of `forward` and `forward_backward`."""

    loss_fn_outputs: list[dict[str, Tensor]]
    """`logprobs` and `elementwise_loss` of each datum, in the request's order."""
    metrics: dict[str, float]
    """Keys `name:reduction`, such as `loss:sum`."""

    @property
    def loss(self) -> float:
        """Returns the sum of the loss over all data."""
        return self.metrics["loss:sum"]


@dataclass(frozen=True)
class OptimOutput:
    """Result of `optim_step`."""

    metrics: dict[str, float]


Candidates = list[list[tuple[int, float]] | None]
"""Pairs of token id and log-probability for each position, or `None` where there are none."""


@dataclass(frozen=True)
class SampledSequence:
    """One completion."""

    tokens: list[int]
    stop_reason: Literal["stop", "length"]
    logprobs: list[float] | None = None
    """One per token."""
    topk_logprobs: Candidates | None = None
    """Set if `topk_sample_logprobs` was requested."""


@dataclass(frozen=True)
class SampleOutput:
    """Result of `sample`."""

    sequences: list[SampledSequence]
    prompt_logprobs: list[float | None] | None = None
    """One per prompt token, `None` where there is none."""
    topk_prompt_logprobs: Candidates | None = None
    """With `topk_prompt_logprobs`."""
    prompt_cache_hit_tokens: int = 0
    """Prompt tokens found in the prefix cache."""


def floats(data: bytes) -> list[float]:
    """Returns a tensor of float32 elements, little-endian."""
    return _elements("f", data).tolist()


def integers(data: bytes, size: Literal[4, 8]) -> list[int]:
    """Returns a tensor of int32 or int64 elements, little-endian."""
    return [int(value) for value in _elements("i" if size == 4 else "q", data)]


def _elements(code: str, data: bytes) -> array[float]:
    values: array[float] = array(code)
    values.frombytes(data[: len(data) - len(data) % values.itemsize])
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _little(values: array[int] | array[float]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()
