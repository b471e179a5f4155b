"""Losses of the sampled tokens of a batch, with their derivatives with respect to the log-probabilities.

The server computes `importance_sampling`, `ppo`, `cispo` and `gspo` in one pass. Every other loss takes two: a forward
pass, from whose log-probabilities value and derivatives are computed here, and a backward pass of `cross_entropy` with
the negative derivatives as weights, which has the gradient of the loss. In the formulas, `p` is the current
log-probability, `q` the one at sampling time, `r = exp(p - q)` and `A` the advantage.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .algorithms import KlEstimator, LossName, Objective, Rejection

Floats = NDArray[np.float64]
BOUND = 20.0
"""Bound to which log-ratios are clamped, so that ratios stay finite."""


@dataclass(frozen=True)
class Tokens:
    """The sampled tokens of a batch, one sequence after another: one entry of each array for each token."""

    now: Floats
    """Log-probabilities under the weights being trained."""
    old: Floats
    """Log-probabilities in the denominator of the ratios."""
    advantages: Floats
    scale: Floats
    """Weight of each token in the mean that forms the loss."""
    sequence: NDArray[np.int64]
    """Index of each token's sequence, from 0."""
    reference: Floats | None = None
    """Log-probabilities under the reference, for a KL to it."""

    @property
    def log_ratio(self) -> Floats:
        return np.clip(self.now - self.old, -BOUND, BOUND)

    @property
    def ratio(self) -> Floats:
        return np.exp(self.log_ratio)

    @property
    def free(self) -> NDArray[np.bool_]:
        """Returns where the log-ratio is not clamped."""
        return np.abs(self.now - self.old) < BOUND

    def means(self, values: Floats) -> Floats:
        """The mean of a sequence's values, at each of its tokens."""
        return self.sums(values) / self.sums(np.ones_like(values))

    def sums(self, values: Floats) -> Floats:
        """The sum of a sequence's values, at each of its tokens."""
        totals = np.zeros(int(self.sequence.max(initial=-1)) + 1)
        np.add.at(totals, self.sequence, values)
        return np.asarray(totals[self.sequence], np.float64)

    def largest(self, values: Floats) -> Floats:
        """The largest of a sequence's values, at each of its tokens."""
        found = np.full(int(self.sequence.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(found, self.sequence, values)
        return np.asarray(found[self.sequence], np.float64)


@dataclass(frozen=True)
class Terms:
    """The loss is the sum of `values`; `slopes` is its derivative with respect to each token's log-probability."""

    values: Floats
    slopes: Floats


Formula = Callable[[Tokens, Objective, random.Random], Terms]


def importance_sampling(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`-r A`."""
    values = -tokens.ratio * tokens.advantages * tokens.scale
    return Terms(values, np.where(tokens.free, values, 0.0))


def ppo(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`-min(r A, clip(r) A)` (Schulman et al. 2017, arXiv:1707.06347). With `dual_clip` `c` at most `-c A` where A is
    negative, which bounds the loss of tokens that have become much likelier (Ye et al. 2020, arXiv:1912.09729)."""
    values, active = _clipped(tokens.ratio, tokens.advantages, objective)
    if objective.dual_clip:
        bound = -objective.dual_clip * tokens.advantages
        beyond = (tokens.advantages < 0) & (values > bound)
        values, active = np.where(beyond, bound, values), active & ~beyond
    values = values * tokens.scale
    return Terms(values, np.where(active & tokens.free, values, 0.0))


def cispo(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`-clip(r) p A`, the clipped ratio held constant (MiniMax 2025, arXiv:2506.13585)."""
    weights = np.clip(tokens.ratio, 1 - objective.clip_low, 1 + objective.clip_high)
    return _weighted(tokens, weights)


def gspo(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`ppo` with `s = exp(mean(p - q))` of the sequence as the value of each token's ratio, and the gradient of `s` by
    that token's own log-probability (GSPO-token, Zheng et al. 2025, arXiv:2507.18071)."""
    mean = tokens.means(tokens.now - tokens.old)
    values, active = _clipped(np.exp(np.clip(mean, -BOUND, BOUND)), tokens.advantages, objective)
    values = values * tokens.scale
    return Terms(values, np.where(active & (np.abs(mean) < BOUND), values, 0.0))


def sapo(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`-(4 / tau) sigmoid(tau (r - 1)) A`, whose slope falls smoothly away from `r = 1`; `tau` is `tau_positive` where
    A is positive and `tau_negative` elsewhere (Gao et al. 2025, arXiv:2511.20347)."""
    tau = np.where(tokens.advantages > 0, objective.tau_positive, objective.tau_negative)
    ratio, weight = tokens.ratio, tokens.advantages * tokens.scale
    gate = 0.5 * (1 + np.tanh(0.5 * tau * (ratio - 1)))
    slopes = -4 * gate * (1 - gate) * ratio * weight
    return Terms(-4 / tau * gate * weight, np.where(tokens.free, slopes, 0.0))


def gmpo(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`-A exp(mean(l))`, the geometric mean of a sequence's ratios: `l` is `p - q`, at most `clip_high` where A is
    positive and at least `-clip_low` where it is negative (Zhao et al. 2025, arXiv:2507.20673)."""
    raw, up, down = tokens.now - tokens.old, tokens.advantages > 0, tokens.advantages < 0
    active = (up & (raw <= objective.clip_high)) | (down & (raw >= -objective.clip_low))
    logs = np.where(up, np.minimum(raw, objective.clip_high), np.maximum(raw, -objective.clip_low))
    mean = tokens.means(np.where(up | down, logs, 0.0))
    values = -tokens.advantages * tokens.scale * np.exp(np.clip(mean, -BOUND, BOUND))
    return Terms(values, np.where(active & (np.abs(mean) < BOUND), tokens.means(values), 0.0))


def dppo_tv(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`-M min(r, ratio_cap) p A`, the weight held constant. `M` is 0 where the token has moved in the direction of its
    advantage until the binary total variation `|exp p - exp q|` is above `divergence`, else 1 (DPPO, Qi et al. 2026,
    arXiv:2602.04879)."""
    return _bounded(tokens, objective, np.abs(np.exp(tokens.now) - np.exp(tokens.old)))


def dppo_kl(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """As `dppo_tv`, with the binary KL divergence `b (q - p) + (1 - b) log((1 - b) / (1 - a))`, where `a = exp p` and
    `b = exp q` are held below 1."""
    p, q = np.minimum(tokens.now, -1e-8), np.minimum(tokens.old, -1e-8)
    b = np.exp(q)
    return _bounded(tokens, objective, b * (q - p) + (1 - b) * (np.log(-np.expm1(q)) - np.log(-np.expm1(p))))


def clip_cov(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`ppo`, but a share of the tokens, chosen at random among those with a covariance between `cov_low` and
    `cov_high`, counts as 0. The covariance of a token is `(A - mean A) (p - mean p)` (Clip-Cov, Cui et al. 2025,
    arXiv:2505.22617)."""
    values, active = _clipped(tokens.ratio, tokens.advantages, objective)
    covariances = _covariances(tokens)
    between = (covariances > objective.cov_low) & (covariances < objective.cov_high) & active
    eligible = np.flatnonzero(between).tolist()
    chosen = chance.sample(eligible, min(_count(tokens, objective), len(eligible)))
    kept = np.ones_like(values)
    kept[chosen] = 0.0
    values = values * tokens.scale * kept
    return Terms(values, np.where(active & tokens.free, values, 0.0))


def kl_cov(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """`-r A`, and `cov_kl |p - q|` added for the share of tokens with the largest covariances (KL-Cov, Cui et al. 2025,
    arXiv:2505.22617)."""
    largest = np.argsort(-_covariances(tokens), kind="stable")[: _count(tokens, objective)]
    apart = tokens.now - tokens.old
    weights = np.zeros_like(apart)
    weights[largest] = objective.cov_kl
    plain = -tokens.ratio * tokens.advantages
    slopes = np.where(tokens.free, plain, 0.0) + weights * np.sign(apart)
    return Terms(tokens.scale * (plain + weights * np.abs(apart)), tokens.scale * slopes)


FORMULAS: dict[LossName, Formula] = {
    "importance_sampling": importance_sampling,
    "ppo": ppo,
    "cispo": cispo,
    "gspo": gspo,
    "sapo": sapo,
    "gmpo": gmpo,
    "dppo_tv": dppo_tv,
    "dppo_kl": dppo_kl,
    "clip_cov": clip_cov,
    "kl_cov": kl_cov,
}


def computed(tokens: Tokens, objective: Objective, chance: random.Random) -> Terms:
    """Returns the loss of a batch. `chance` is the random source of losses that leave out tokens at random."""
    if not tokens.now.size:
        return Terms(tokens.now, tokens.now)
    return FORMULAS[objective.loss](tokens, objective, chance)


def kl(tokens: Tokens, estimator: KlEstimator) -> Terms:
    """The KL to the reference, with the log-ratio `x = reference - p`: `x^2 / 2` (`k2`) or `exp(x) - 1 - x` (`k3`), as
    in GRPO (Shao et al. 2024, arXiv:2402.03300, equation 4)."""
    assert tokens.reference is not None, "the objective says whether log-probabilities of the reference are needed"
    raw = tokens.reference - tokens.now
    x = np.clip(raw, -BOUND, BOUND)
    free = np.abs(raw) < BOUND
    if estimator == "k2":
        return Terms(tokens.scale * x**2 / 2, np.where(free, -tokens.scale * x, 0.0))
    return Terms(tokens.scale * (np.expm1(x) - x), np.where(free, -tokens.scale * np.expm1(x), 0.0))


def kept(tokens: Tokens, rejection: Rejection) -> NDArray[np.bool_]:
    """Returns which tokens are trained; `tokens.old` are log-probabilities of the sampling weights.

    Sequences are left out whose ratios have a geometric mean or a product out of bounds (Liu, Li et al. 2025, "When
    Speed Kills Stability"), whose divergences have a mean, a sum or a maximum above a bound, and those with a negative
    mean advantage that have become less likely by more than `negative` per token (DeepSeek-AI 2025, arXiv:2512.02556).
    Tokens are left out whose own ratio (IcePop, Ling Team 2025, arXiv:2510.18855) or divergence is out of bounds. With
    the log-ratio `x`, `k2` is `x^2 / 2` and `k3` is `exp(x) - 1 - x` (Schulman 2020, "Approximating KL Divergence").
    Of the tokens that remain, those with the largest `x^2` are left out until the mean of `x^2` is at most
    `second_moment` (M2PO, Zheng et al. 2025, arXiv:2510.01161).
    """
    if not tokens.now.size:
        return np.ones(0, np.bool_)
    logs = tokens.now - tokens.old
    divergences = {"k2": logs**2 / 2, "k3": np.expm1(tokens.log_ratio) - tokens.log_ratio}
    found = np.ones(tokens.now.shape, np.bool_)
    for name, bound in rejection.bounds.items():
        if name == "negative":
            found &= (tokens.means(tokens.advantages) >= 0) | (-tokens.means(logs) <= bound)
            continue
        if name == "second_moment":
            continue
        of, _, kind = name.rpartition("_")
        values = OVER[of](tokens, divergences.get(kind, logs))
        if kind == "low":
            found &= values >= np.log(bound)
        else:
            found &= values <= (np.log(bound) if kind == "high" else bound)
    if rejection.second_moment is not None:
        found[found] = _mean_at_most(logs[found] ** 2, rejection.second_moment)
    return found


def _mean_at_most(values: Floats, bound: float) -> NDArray[np.bool_]:
    """Returns which values remain if the largest are left out until the mean is at most a bound."""
    ascending = np.argsort(values, kind="stable")
    means = np.cumsum(values[ascending]) / np.arange(1, values.size + 1)
    found = np.zeros(values.shape, np.bool_)
    # Means of ever larger values only grow.
    found[ascending[means <= bound]] = True
    return found


OVER: dict[str, Callable[[Tokens, Floats], Floats]] = {
    "token": lambda _, values: values,
    "sequence": Tokens.means,
    "sequence_mean": Tokens.means,
    "sequence_sum": Tokens.sums,
    "sequence_max": Tokens.largest,
}
"""What a bound of `Rejection` is on, by the beginning of its name."""


def around(tokens: Tokens, shares: Floats, cap: float) -> tuple[Tokens, Floats]:
    """Returns the tokens of decoupled PPO whose proximal policy is interpolated, and the weights of stale samples.

    The proximal log-probabilities are `q + share (p - q)`, held constant (AReaL, "Proximal Log-Probability
    Approximation"). Ratios are to them, and advantages are multiplied by their ratio to the sampling weights, at most
    `cap`.
    """
    apart = np.clip(shares * (tokens.now - tokens.old), -BOUND, BOUND)
    weights = np.exp(apart)
    return replace(tokens, old=tokens.old + apart, advantages=tokens.advantages * np.minimum(weights, cap)), weights


def without(tokens: Tokens, learned: NDArray[np.bool_]) -> Tokens:
    """Returns the same tokens, of which only some count. The others remain in the means of their sequences."""
    return replace(tokens, scale=np.where(learned, tokens.scale, 0.0))


def _clipped(ratio: Floats, advantages: Floats, objective: Objective) -> tuple[Floats, NDArray[np.bool_]]:
    """`-min(r A, clip(r) A)`, and where its slope is not 0."""
    plain = ratio * advantages
    limited = np.clip(ratio, 1 - objective.clip_low, 1 + objective.clip_high) * advantages
    return -np.minimum(plain, limited), plain <= limited


def _weighted(tokens: Tokens, weights: Floats) -> Terms:
    """`-w p A` with constant weights."""
    slopes = -weights * tokens.advantages * tokens.scale
    return Terms(slopes * tokens.now, slopes)


def _bounded(tokens: Tokens, objective: Objective, divergence: Floats) -> Terms:
    away = np.where(tokens.advantages > 0, tokens.now > tokens.old, tokens.now < tokens.old)
    learned = ~(away & (divergence > objective.divergence))
    return _weighted(tokens, np.minimum(tokens.ratio, objective.ratio_cap) * learned)


def _covariances(tokens: Tokens) -> Floats:
    centered = tokens.now - tokens.now.mean()
    return np.asarray((tokens.advantages - tokens.advantages.mean()) * centered, np.float64)


def _count(tokens: Tokens, objective: Objective) -> int:
    """How many tokens a share is, at least 1."""
    return max(1, int(objective.cov_share * tokens.now.size))
