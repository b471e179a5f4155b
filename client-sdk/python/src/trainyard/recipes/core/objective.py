"""Policy objectives: from rewards of groups to advantages of tokens, and the loss that the server computes.

All losses of the protocol are sums that are linear in the advantages, so means over tokens or sequences are factors of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, pstdev
from typing import Any, Literal

from tinker import types

from . import datums
from .rollout import Trajectory

Algorithm = Literal["grpo", "dapo", "dr_grpo", "gspo", "cispo", "reinforce"]
LossName = Literal["importance_sampling", "ppo", "cispo", "gspo"]
Aggregation = Literal["token", "sequence", "constant"]


@dataclass(frozen=True)
class Objective:
    """What an algorithm is made of."""

    loss: LossName
    clip_low: float
    """The smallest ratio is 1 - clip_low."""
    clip_high: float
    """The largest ratio is 1 + clip_high."""
    aggregation: Aggregation
    """`token`: mean over the batch's tokens; `sequence`: mean over sequences of their means; `constant`: the sum
    divided by the number of sequences and the limit of tokens."""
    normalize: bool
    """Divide advantages by the standard deviation of their group."""
    dynamic_sampling: bool
    """Groups without differing rewards are replaced by others."""
    overlong_buffer: int
    """Tokens before the limit in which an answer is punished linearly; 0 punishes none."""


ALGORITHMS: dict[Algorithm, Objective] = {
    # Shao et al. 2024.
    "grpo": Objective("ppo", 0.2, 0.2, "sequence", True, False, 0),
    # Yu et al. 2025: clip-higher, dynamic sampling, token-level loss, soft punishment of overlong answers.
    "dapo": Objective("ppo", 0.2, 0.28, "token", True, True, 32),
    # Liu et al. 2025: no division by the length of answers or by the deviation of rewards.
    "dr_grpo": Objective("ppo", 0.2, 0.2, "constant", False, False, 0),
    # Zheng et al. 2025: ratios of sequences.
    "gspo": Objective("gspo", 3e-4, 4e-4, "sequence", True, False, 0),
    # MiniMax 2025: the weight of a token is clipped, its gradient stays.
    "cispo": Objective("cispo", 1.0, 4.0, "token", True, False, 0),
    # Williams 1992, with an importance weight and the group's mean as the baseline.
    "reinforce": Objective("importance_sampling", 0.0, 0.0, "token", False, False, 0),
}


def loss_config(objective: Objective) -> dict[str, Any] | None:
    """The settings of the loss: absolute ratios, as the protocol has them."""
    if objective.loss == "importance_sampling":
        return None
    low, high = max(0.0, 1 - objective.clip_low), 1 + objective.clip_high
    return {"clip_low_threshold": low, "clip_high_threshold": high}


def shaped(trajectory: Trajectory, max_tokens: int, buffer: int, penalty: float) -> float:
    """The reward, less the soft punishment of an answer that comes near the limit (DAPO, equation 13)."""
    over = trajectory.answer_tokens - (max_tokens - buffer)
    return trajectory.reward - penalty * min(1.0, max(0.0, over / buffer)) if buffer else trajectory.reward


def group_advantages(rewards: Sequence[float], normalize: bool) -> list[float]:
    """How much better than its group each one is; 0 for all where none is."""
    baseline = mean(rewards)
    scale = (pstdev(rewards) if normalize else 1.0) or 1.0
    return [(reward - baseline) / scale for reward in rewards]


def scales(trajectories: Sequence[Trajectory], aggregation: Aggregation, max_tokens: int) -> list[float]:
    """The factor of each trajectory's advantages that turns the sum over tokens into the mean."""
    count = len(trajectories)
    if aggregation == "sequence":
        return [1 / (count * max(one.sampled, 1)) for one in trajectories]
    if aggregation == "constant":
        return [1 / (count * max_tokens)] * count
    tokens = sum(one.sampled for one in trajectories)
    return [1 / max(tokens, 1)] * count


def policy_datum(
    trajectory: Trajectory,
    advantages: Sequence[float],
    objective: Objective,
    logprobs: Sequence[float] | None = None,
) -> types.Datum:
    """An example with an advantage for each token; `logprobs` replace those of the policy that sampled."""
    mask = trajectory.mask if objective.loss == "gspo" else None
    return datums.policy(trajectory.tokens, logprobs or trajectory.logprobs, advantages, mask)


def token_advantages(trajectory: Trajectory, advantage: float) -> list[float]:
    """The advantage at each sampled token, 0 elsewhere."""
    return [advantage if own else 0.0 for own in trajectory.mask]


def sampler_kl(batch: Sequence[Trajectory], output: types.ForwardBackwardOutput) -> float:
    """The mean of log-probabilities when the tokens were sampled, less those that the update found."""
    drift = [
        before - after
        for one, after_all in zip(batch, datums.logprobs_of(output), strict=True)
        for own, before, after in zip(one.mask[1:], one.logprobs[1:], after_all, strict=True)
        if own
    ]
    return float(mean(drift)) if drift else 0.0
