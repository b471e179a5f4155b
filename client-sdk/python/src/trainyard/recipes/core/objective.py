"""From advantages to examples: rewards after penalties, the weights of tokens in a mean, and the inputs of the server's
losses.

All losses of the protocol are sums that are linear in the advantages, so means over tokens or sequences are factors of
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tinker import types

from . import datums
from .algorithms import Aggregation, Objective
from .losses import Floats, Tokens
from .rollout import Trajectory


def loss_config(objective: Objective) -> dict[str, Any] | None:
    """Returns the settings of a loss of the protocol, with absolute ratios."""
    if objective.loss == "importance_sampling":
        return None
    low, high = max(0.0, 1 - objective.clip_low), 1 + objective.clip_high
    return {"clip_low_threshold": low, "clip_high_threshold": high}


def shaped(trajectory: Trajectory, max_tokens: int, buffer: int, penalty: float) -> float:
    """Returns the reward minus the soft penalty of an answer near the length limit (DAPO, equation 13)."""
    over = trajectory.answer_tokens - (max_tokens - buffer)
    return trajectory.reward - penalty * min(1.0, max(0.0, over / buffer)) if buffer else trajectory.reward


def scales(trajectories: Sequence[Trajectory], aggregation: Aggregation, max_tokens: int) -> list[float]:
    """The factor of each trajectory's advantages that turns the sum over tokens into the mean."""
    count = len(trajectories)
    if aggregation == "sequence":
        return [1 / (count * max(one.sampled, 1)) for one in trajectories]
    if aggregation == "constant":
        return [1 / (count * max_tokens)] * count
    if aggregation == "task":
        sampled = Counter[int]()
        for one in trajectories:
            sampled[one.task] += one.sampled
        return [1 / (len(sampled) * max(sampled[one.task], 1)) for one in trajectories]
    tokens = sum(one.sampled for one in trajectories)
    return [1 / max(tokens, 1)] * count


def policy_datum(trajectory: Trajectory, advantages: Sequence[float], objective: Objective) -> types.Datum:
    """An example with an advantage for each token."""
    mask = trajectory.mask if objective.loss == "gspo" else None
    return datums.policy(trajectory.tokens, trajectory.logprobs, advantages, mask)


def sampled_tokens(
    batch: Sequence[Trajectory],
    now: Sequence[NDArray[np.float64]],
    advantages: Sequence[Sequence[float]],
    factors: Sequence[float],
    references: Sequence[Sequence[float]] | None = None,
) -> Tokens:
    """Returns the sampled tokens of a batch. `now` are the current log-probabilities of all tokens but the first of
    each sequence, `references` those of all tokens under the reference."""
    masks = [np.asarray(one.mask[1:], np.bool_) for one in batch]
    counts = [int(mask.sum()) for mask in masks]
    return Tokens(
        now=_joined([values[mask] for values, mask in zip(now, masks, strict=True)]),
        old=_joined([_chosen(one.logprobs, mask) for one, mask in zip(batch, masks, strict=True)]),
        advantages=_joined([_chosen(own, mask) for own, mask in zip(advantages, masks, strict=True)]),
        scale=np.repeat(np.asarray(factors, np.float64), counts),
        sequence=np.repeat(np.arange(len(batch), dtype=np.int64), counts),
        reference=_joined([_chosen(own, mask) for own, mask in zip(references, masks, strict=True)])
        if references is not None
        else None,
    )


def _chosen(values: Sequence[float], mask: NDArray[np.bool_]) -> Floats:
    return np.asarray(values[1:], np.float64)[mask]


def _joined(parts: Sequence[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])


def weighted(batch: Sequence[Trajectory], weights: Floats, observed: float) -> list[types.Datum]:
    """Returns an example for `cross_entropy`: the weight of each sampled token of the batch, and one for the
    environment's messages."""
    left = iter(weights.tolist())
    examples = []
    for one in batch:
        answers = answered(one)
        row = [next(left) if own else observed * seen for own, seen in zip(one.mask[1:], answers[1:], strict=True)]
        examples.append(datums.datum(one.tokens, weights=datums.floats(row)))
    return examples


def answered(trajectory: Trajectory) -> list[bool]:
    """Returns whether a token belongs to the environment's messages."""
    first = trajectory.mask.index(True) if True in trajectory.mask else len(trajectory.mask)
    return [at > first and not own for at, own in enumerate(trajectory.mask)]


def sampler_kl(batch: Sequence[Trajectory], output: types.ForwardBackwardOutput) -> float:
    """Returns the mean log-probability at sampling time minus the mean that the update found."""
    drift = [
        before - after
        for one, after_all in zip(batch, datums.logprobs_of(output), strict=True)
        for own, before, after in zip(one.mask[1:], one.logprobs[1:], after_all, strict=True)
        if own
    ]
    return float(mean(drift)) if drift else 0.0
