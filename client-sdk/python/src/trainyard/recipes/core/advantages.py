"""Estimators of advantages: how much better each episode, or each token, was than a baseline.

`R` is the reward of an episode; other names are settings. Advantages of tokens have an entry for each token of the
sequence, 0 where it was not sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, mean, pstdev

import numpy as np

from .algorithms import Estimator
from .config import RecipeError
from .rollout import Trajectory, by_agent, by_episode

WHITENED: frozenset[Estimator] = frozenset({"reinforce_pp", "reinforce_pp_baseline", "gdpo"})
"""Estimators that normalise the advantages of all tokens of a step together, by `whitened`."""


class MovingBaselines:
    """For each agent a moving average of its rewards, which is 0 before the first (role-conditioned advantage
    estimation, Liu et al. 2025, arXiv:2506.24119)."""

    def __init__(self, decay: float, known: Mapping[str, float]) -> None:
        self.decay, self.known = decay, dict(known)

    def apart(self, agent: str, rewards: Sequence[float]) -> list[float]:
        """Each reward less the average of those before it."""
        found = []
        for reward in rewards:
            before = self.known.get(agent, 0.0)
            found.append(reward - before)
            self.known[agent] = self.decay * before + (1 - self.decay) * reward
        return found


def estimated(
    group: Sequence[Trajectory],
    rewards: Sequence[float],
    estimator: Estimator,
    normalize: bool,
    parts: Mapping[str, float] | None = None,
    moving: MovingBaselines | None = None,
) -> list[list[float]]:
    """The advantages of the tokens of a group's sequences, before `whitened`.

    The sequences of an episode have the advantage of its last one; in games, each agent is compared with itself in the
    other episodes. `remax` needs `Trajectory.baseline` of each, `optimal_token` its `squares`, `gdpo` its `metrics`
    that `parts` names, with weights, and `rae` the `moving` baselines.
    """
    found: list[list[float]] = [[] for _ in group]
    for places in by_agent(group).values():
        own = [group[at] for at in places]
        values = _of_agent(own, [rewards[at] for at in places], estimator, normalize, parts or {}, moving)
        for at, value in zip(places, values, strict=True):
            found[at] = value
    return found


def _of_agent(
    group: Sequence[Trajectory],
    rewards: Sequence[float],
    estimator: Estimator,
    normalize: bool,
    parts: Mapping[str, float],
    moving: MovingBaselines | None,
) -> list[list[float]]:
    if estimator == "optimal_token":
        return token_baseline(group, rewards)
    episodes = by_episode(group)
    last, counted = [group[places[-1]] for places in episodes], [rewards[places[-1]] for places in episodes]
    if estimator == "gdpo":
        values = decoupled(last, parts)
    elif estimator == "rae":
        assert moving is not None, "the recipe keeps the baselines"
        values = moving.apart(last[0].agent, counted)
    elif estimator == "opo":
        values = length_weighted(counted, [sum(group[at].sampled for at in places) for places in episodes])
    else:
        values = _of_episodes(last, counted, estimator)
    scale = (pstdev(counted) if normalize else 1.0) or 1.0
    of_sequence = {at: value / scale for places, value in zip(episodes, values, strict=True) for at in places}
    return [token_advantages(one, of_sequence[at]) for at, one in enumerate(group)]


def focal(rewards: Sequence[float], exponent: float, bounds: tuple[float, float]) -> float:
    """The factor `(1 - s)^exponent` on the advantages of a group, where `s` is the mean reward as a fraction of the way
    from the lower bound, a failure, to the higher, a success (F-GRPO, Plyusov et al. 2026, arXiv:2602.06717)."""
    low, high = bounds
    share = min(max((mean(rewards) - low) / (high - low), 0.0), 1.0)
    return float((1 - share) ** exponent)


def discounted(trajectory: Trajectory, values: Sequence[float], factor: float) -> list[float]:
    """The values of a sequence's tokens, times `factor` for each answer of the episode that follows theirs."""
    return [value * factor**later for value, later in zip(values, trajectory.later_answers(), strict=True)]


def _of_episodes(group: Sequence[Trajectory], rewards: Sequence[float], estimator: Estimator) -> list[float]:
    if estimator == "reinforce_pp":
        return list(rewards)
    if estimator == "rloo":
        return leave_one_out(rewards)
    if estimator == "remax":
        return [reward - baseline(one) for one, reward in zip(group, rewards, strict=True)]
    if estimator == "maxrl":
        return over_mean(rewards)
    if estimator == "best":
        return lead(rewards)
    return centered(rewards)


def centered(rewards: Sequence[float]) -> list[float]:
    """`R - mean R`."""
    center = mean(rewards)
    return [reward - center for reward in rewards]


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """`R` less the mean of the others' (RLOO, Ahmadian et al. 2024, arXiv:2402.14740); 0 for a group of one."""
    count = len(rewards)
    return [value * count / max(count - 1, 1) for value in centered(rewards)]


def length_weighted(rewards: Sequence[float], lengths: Sequence[int]) -> list[float]:
    """`R - sum(length R) / sum(length)`: the baseline of least variance if the squared norm of a sequence's gradient
    grows with its length (OPO, Hao et al. 2025, arXiv:2505.23585)."""
    weight = max(sum(lengths), 1)
    center = sum(length * reward for length, reward in zip(lengths, rewards, strict=True)) / weight
    return [reward - center for reward in rewards]


def over_mean(rewards: Sequence[float]) -> list[float]:
    """`(R - mean R) / mean R`, 0 where no reward is above 0: with rewards of 0 and 1, the gradient of the logarithm of
    the probability to succeed, to the order that the group's size allows (MaxRL, Tajwar et al. 2026)."""
    if min(rewards) < 0:
        raise RecipeError(f"algorithm: maxrl needs rewards of at least 0, and an episode got {min(rewards):g}")
    scale = mean(rewards) or 1.0
    return [value / scale for value in centered(rewards)]


def lead(rewards: Sequence[float]) -> list[float]:
    """`R` less the second largest reward for the largest one, 0 for the others, and for all where two are the largest:
    the gradient of the expected largest reward of a group (Tang et al. 2025, arXiv:2503.19595)."""
    second, first = sorted(rewards)[-2:] if len(rewards) > 1 else (0.0, 0.0)
    return [first - second if reward == first else 0.0 for reward in rewards]


def decoupled(group: Sequence[Trajectory], parts: Mapping[str, float]) -> list[float]:
    """`sum(w_k (R_k - mean R_k) / std R_k)` over the rewards `k` of an episode, without those that are equal in all of
    the group (GDPO, Liu et al. 2026, arXiv:2601.05242); `whitened` follows."""
    found = np.zeros(len(group))
    for name, weight in parts.items():
        values = np.asarray(part_of(group, name), np.float64)
        found += weight * (values - values.mean()) / (values.std() or 1.0)
    return [float(value) for value in found]


def part_of(group: Sequence[Trajectory], name: str) -> list[float]:
    """A reward of each episode: the metric of this name."""
    for one in group:
        if name not in one.metrics:
            has = ", ".join(sorted(one.metrics)) or "none"
            raise RecipeError(f"reward_parts: an episode has no metric {name!r}; it has {has}")
    return [one.metrics[name] for one in group]


def baseline(trajectory: Trajectory) -> float:
    """The reward of the greedy answer to the same task (ReMax, Li et al. 2023, arXiv:2310.10505)."""
    if trajectory.baseline is None:
        raise RecipeError("algorithm: remax needs the reward of a greedy episode of the task, which was not sampled")
    return trajectory.baseline


def token_baseline(group: Sequence[Trajectory], rewards: Sequence[float]) -> list[list[float]]:
    """`R - B_t`, where `B_t = sum(W_t R) / sum(W_t)` over the sequences that have a sampled token number `t`, and `W_t`
    is the sum of `1 - 2 exp(p) + s` over the sampled tokens up to `t`: the squared norm of the gradient by the logits,
    with the log-probability `p` of the token and the sum `s` of the squared probabilities of all (OTB, Li et al. 2026,
    "The Optimal Token Baseline").

    Tokens of all turns are counted one after another. Where only one sequence is left, its advantage is 0.
    """
    energies = [_energies(one) for one in group]
    longest = max((len(one) for one in energies), default=0)
    weights = np.zeros((len(group), longest))
    for at, own in enumerate(energies):
        weights[at, : len(own)] = own
    total = weights.sum(axis=0)
    sums = (weights * np.asarray(rewards, np.float64)[:, None]).sum(axis=0)
    # A token of probability 1 has no gradient, so its baseline does not matter.
    baselines = sums / np.where(total > 0, total, 1.0)
    found = []
    for one, reward in zip(group, rewards, strict=True):
        values = iter((reward - baselines[: one.sampled]).tolist())
        found.append([next(values) if own else 0.0 for own in one.mask])
    return found


def _energies(trajectory: Trajectory) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """`W_t` of each sampled token."""
    own = np.asarray(trajectory.mask, np.bool_)
    probabilities = np.exp(np.asarray(trajectory.logprobs, np.float64)[own])
    squares = np.asarray(trajectory.squares, np.float64)[own]
    # The server's candidates may leave out the sampled token, whose square then is not in the sum.
    return np.cumsum(np.maximum(1 - 2 * probabilities + squares, 0.0))


def to_go(distances: dict[int, float], count: int) -> list[float]:
    """Returns, for each of `count` tokens, the sum of the distances from that token on."""
    found, running = [0.0] * count, 0.0
    for at in reversed(range(count)):
        running += distances.get(at, 0.0)
        found[at] = running
    return found


def whitened(values: Sequence[Sequence[float]], masks: Sequence[Sequence[bool]]) -> list[list[float]]:
    """Values of the masked tokens of all sequences, shifted and scaled to mean 0 and standard deviation 1
    (REINFORCE++, Hu et al. 2025, arXiv:2501.03262); 0 elsewhere, and everywhere if they are equal."""
    every = [value for own, mask in zip(values, masks, strict=True) for value, on in zip(own, mask, strict=True) if on]
    center, scale = (fmean(every), pstdev(every) or 1.0) if every else (0.0, 1.0)
    return [
        [(value - center) / scale if on else 0.0 for value, on in zip(own, mask, strict=True)]
        for own, mask in zip(values, masks, strict=True)
    ]


def token_advantages(trajectory: Trajectory, advantage: float) -> list[float]:
    """The advantage at each sampled token, 0 elsewhere."""
    return [advantage if own else 0.0 for own in trajectory.mask]
