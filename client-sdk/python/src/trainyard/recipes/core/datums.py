"""Examples of the protocol: tokens, targets shifted by one, and the inputs of the loss for each target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from tinker import types

from .chat import Example
from .images import model_input


def supervised(example: Example, scale: float = 1.0) -> types.Datum:
    """Returns an example for `cross_entropy`: each token is predicted from those before it."""
    weights = [weight * scale for weight in example.weights[1:]]
    return datum(example.tokens, weights=floats(weights))


def policy(
    tokens: Sequence[int], logprobs: Sequence[float], advantages: Sequence[float], mask: Sequence[bool] | None = None
) -> types.Datum:
    """Returns an example for the policy losses. Position i of each list belongs to token i; the first token is never a
    target.

    `mask` adds the positions over which `gspo` averages its ratio.
    """
    inputs = {"logprobs": floats(logprobs[1:]), "advantages": floats(advantages[1:])}
    if mask is not None:
        inputs["sequence_ratio_mask"] = floats([float(one) for one in mask[1:]])
    return datum(tokens, **inputs)


def datum(tokens: Sequence[int], **inputs: types.TensorData) -> types.Datum:
    """Returns an example in which each token but the first is a target."""
    targets = types.TensorData.from_numpy(np.asarray(tokens[1:], np.int64))
    return types.Datum(
        model_input=model_input(tokens[:-1]),
        loss_fn_inputs={"target_tokens": targets, **inputs},
    )


def with_weights(example: types.Datum, name: str, weights: Sequence[float]) -> types.Datum:
    """Returns the example with another input, one number for each position."""
    return types.Datum(
        model_input=example.model_input, loss_fn_inputs={**example.loss_fn_inputs, name: floats(weights)}
    )


def values_of(output: types.ForwardBackwardOutput, name: str) -> list[NDArray[np.float64]]:
    """Returns an output of each datum."""
    return [np.asarray(one[name].to_numpy(), dtype=np.float64) for one in output.loss_fn_outputs]


def floats(values: Sequence[float]) -> types.TensorData:
    return types.TensorData.from_numpy(np.asarray(values, np.float32))


def weight_of(data: Iterable[Example]) -> float:
    """Returns the sum of the weights of all targets."""
    return sum(sum(example.weights[1:]) for example in data)


def logprobs_of(output: types.ForwardBackwardOutput) -> list[NDArray[np.float64]]:
    """Returns the log-probability of each target of each datum."""
    return values_of(output, "logprobs")


def joined(examples: Iterable[Example], length: int) -> list[Example]:
    """Examples one after another in rows of `length` tokens; each sees what precedes it in its row.

    An example that does not fit begins a new row, and is truncated at its end.
    """
    rows: list[Example] = []
    for example in examples:
        if not rows or len(rows[-1].tokens) + len(example.tokens) > length:
            rows.append(Example())
        # The first token of an example is not predicted from the example before it.
        rows[-1].tokens += example.tokens
        rows[-1].weights += [0.0, *example.weights[1:]]
    return [row.cut(length) for row in rows]


def scalar(value: float) -> types.TensorData:
    """Returns an input without dimensions, for custom losses."""
    return types.TensorData.from_numpy(np.asarray(value, np.float32))
