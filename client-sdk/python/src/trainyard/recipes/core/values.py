"""Models with a scalar head: values of positions, and rewards of whole sequences.

The head is an extension of this server (docs/users/compatibility.md): a model that is created with the metadata
`SCALAR_HEAD` returns values instead of log-probabilities. The loss `value_mse` fits them to returns; `cross_entropy` is
the negative of their weighted sum, so that any derivative can be sent as weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import tinker
from numpy.typing import NDArray
from tinker import types

from . import datums
from .images import model_input
from .rollout import Trajectory

VALUE_MSE = cast(types.LossFnType, "value_mse")
"""The package's list of losses equals the protocol's."""


def valued(
    tokens: Sequence[int],
    returns: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
    old_values: Sequence[float] | None = None,
) -> types.Datum:
    """Returns an example for `value_mse`: one entry for each token. Without returns, it only requests values."""
    inputs = {"returns": datums.floats(returns or [0.0] * len(tokens))}
    if weights is not None:
        inputs["weights"] = datums.floats(weights)
    if old_values is not None:
        inputs["old_values"] = datums.floats(old_values)
    return types.Datum(model_input=model_input(tokens), loss_fn_inputs=inputs)


def sloped(tokens: Sequence[int], slope: float) -> types.Datum:
    """Returns an example for `cross_entropy`: the gradient of a loss with this derivative with respect to the last
    token's value."""
    # The slope of cross-entropy by a value is minus its weight.
    weights = [0.0] * (len(tokens) - 1) + [-slope]
    return types.Datum(
        model_input=model_input(tokens),
        loss_fn_inputs={
            "target_tokens": types.TensorData.from_numpy(np.asarray(tokens, np.int64)),
            "weights": datums.floats(weights),
        },
    )


def values_of(model: tinker.TrainingClient, sequences: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    """Returns the value of each token of each sequence, given the tokens up to it. A model without a scalar head
    refuses."""
    return datums.logprobs_of(model.forward([valued(tokens) for tokens in sequences], VALUE_MSE).result())


def last_values(model: tinker.TrainingClient, sequences: Sequence[Sequence[int]]) -> list[float]:
    """Returns the value of each sequence's last token: its reward."""
    return [float(values[-1]) for values in values_of(model, sequences)]


class RewardModel:
    """Scores episodes with a model that `reward_model` trained."""

    def __init__(self, service: tinker.ServiceClient, path: str, weight: float) -> None:
        self.weight = weight
        self.model = service.create_training_client_from_state(path).result()

    def score(self, groups: Sequence[Sequence[Trajectory]]) -> None:
        """Adds the score, times the weight, to the reward of each episode that did not fail."""
        every = [one for group in groups for one in group if not one.failed]
        if not every:
            return
        for one, score in zip(every, last_values(self.model, [one.tokens for one in every]), strict=True):
            one.reward += self.weight * score
            one.metrics["reward_model"] = score
