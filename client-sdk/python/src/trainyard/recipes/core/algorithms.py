"""Algorithms as data: an estimator of advantages, a loss with its settings, and how tokens are averaged.

`ALGORITHMS` has the named ones; any setting of a recipe replaces one field of them. `advantages` has the formulas of
the estimators, `losses` those of the losses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

from .config import ConfigError, check, opt

Algorithm = Literal[
    "grpo", "dapo", "dr_grpo", "gspo", "cispo", "reinforce", "rloo", "reinforce_pp", "reinforce_pp_baseline", "remax",
    "opo", "maxrl", "optimal_token", "grpo_passk", "gdpo", "f_grpo", "rae", "dual_clip", "sapo", "gmpo", "dppo",
    "clip_cov", "kl_cov", "echo",
]  # fmt: skip
LossName = Literal[
    "importance_sampling", "ppo", "cispo", "gspo", "sapo", "gmpo", "dppo_tv", "dppo_kl", "clip_cov", "kl_cov",
]  # fmt: skip
Estimator = Literal[
    "group", "rloo", "reinforce_pp", "reinforce_pp_baseline", "remax", "opo", "maxrl", "optimal_token", "best",
    "gdpo", "rae",
]  # fmt: skip
Aggregation = Literal["token", "sequence", "constant", "task"]
KlEstimator = Literal["k2", "k3", "full"]

SERVER_LOSSES = frozenset({"importance_sampling", "ppo", "cispo", "gspo"})
"""Losses of the protocol. The others are computed here from a forward pass."""
CLIPS = ("clip_low", "clip_high")
LOSS_SETTINGS: dict[LossName, tuple[str, ...]] = {
    "importance_sampling": (),
    "ppo": (*CLIPS, "dual_clip"),
    "cispo": CLIPS,
    "gspo": CLIPS,
    "sapo": ("tau_positive", "tau_negative"),
    "gmpo": CLIPS,
    "dppo_tv": ("divergence", "ratio_cap"),
    "dppo_kl": ("divergence", "ratio_cap"),
    "clip_cov": (*CLIPS, "cov_share", "cov_low", "cov_high"),
    "kl_cov": ("cov_share", "cov_kl"),
}
"""Settings that each loss reads."""
ALONE: frozenset[Estimator] = frozenset({"reinforce_pp", "remax", "rae"})
"""Estimators whose baseline does not come from the group."""
DIVIDED: frozenset[Estimator] = frozenset({"group", "rloo", "remax", "opo", "best"})
"""Estimators for which `normalize` divides by the group's standard deviation; the others do their own scaling."""


@dataclass(frozen=True)
class Objective:
    """The parts of an algorithm. Settings of losses other than its own have no effect."""

    loss: LossName = "ppo"
    advantage: Estimator = "group"
    aggregation: Aggregation = "token"
    """`token`: mean over the batch's tokens; `sequence`: mean over sequences of their means; `constant`: the sum
    divided by the number of sequences and the limit of tokens; `task`: mean over tasks of the mean over the tokens of
    their sequences."""
    normalize: bool = False
    """Whether to divide advantages by the standard deviation of their group."""
    focal: float = 0.0
    """Exponent of the share of a group that failed, by which its advantages are multiplied; 0 sets no factor."""
    dynamic_sampling: bool = False
    """Whether to replace groups whose rewards are all equal."""
    overlong_buffer: int = 0
    """Tokens before the limit in which an answer is penalised linearly; 0 penalises none."""
    clip_low: float = 0.2
    """The smallest ratio is 1 - clip_low; for `gmpo` the smallest log-ratio is -clip_low."""
    clip_high: float = 0.2
    """The largest ratio is 1 + clip_high; for `gmpo` the largest log-ratio is clip_high."""
    dual_clip: float = 0.0
    """The largest ratio where the advantage is negative; 0 sets no bound."""
    tau_positive: float = 1.0
    tau_negative: float = 1.05
    """Temperatures of the gate of `sapo`, for positive and for non-positive advantages."""
    divergence: float = 0.15
    """Largest divergence of `dppo_tv` and `dppo_kl`, beyond which a token has no gradient."""
    ratio_cap: float = 20.0
    """The largest weight of a token in `dppo_tv` and `dppo_kl`."""
    cov_share: float = 2e-4
    """Fraction of tokens that `clip_cov` leaves out, and that `kl_cov` penalises."""
    cov_low: float = 1.0
    cov_high: float = 5.0
    """Covariances between which `clip_cov` leaves tokens out."""
    cov_kl: float = 1.0
    """Weight of the KL to the sampling policy in `kl_cov`."""
    echo: float = 0.0
    """Weight of the cross-entropy on the environment's messages."""
    entropy: float = 0.0
    """Weight of the policy's entropy, which is subtracted from the loss."""
    kl_loss: float = 0.0
    """Weight of the KL to the reference as a term of the loss."""
    kl_estimator: KlEstimator = "k3"
    """How that KL is estimated from the sampled tokens; `full` is exact, over the whole vocabulary."""

    @property
    def of_server(self) -> bool:
        """Whether the server has the loss of the policy."""
        return self.loss in SERVER_LOSSES and not self.dual_clip

    @property
    def one_pass(self) -> bool:
        """Whether the server computes the whole loss."""
        return self.of_server and not self.estimates_kl

    @property
    def estimates_kl(self) -> bool:
        """Whether the loss has a KL that is estimated from the sampled tokens."""
        return self.kl_loss > 0 and self.kl_estimator != "full"

    @property
    def means(self) -> tuple[tuple[Literal["entropy", "kl_loss"], float], ...]:
        """Weights of what the server adds to the loss, of the whole distributions where the policy sampled."""
        return ("entropy", self.entropy), ("kl_loss", 0.0 if self.estimates_kl else self.kl_loss)


def _clipped(low: float, high: float, aggregation: Aggregation, normalize: bool) -> Objective:
    return Objective(clip_low=low, clip_high=high, aggregation=aggregation, normalize=normalize)


ALGORITHMS: dict[Algorithm, Objective] = {
    # Shao et al. 2024, arXiv:2402.03300.
    "grpo": Objective(aggregation="sequence", normalize=True),
    # Yu et al. 2025, arXiv:2503.14476: clip-higher, dynamic sampling, token-level loss, soft punishment of overlong
    # answers.
    "dapo": Objective(clip_high=0.28, normalize=True, dynamic_sampling=True, overlong_buffer=32),
    # Liu et al. 2025, arXiv:2503.20783: no division by the length of answers or by the deviation of rewards.
    "dr_grpo": Objective(aggregation="constant"),
    # Zheng et al. 2025, arXiv:2507.18071: ratios of sequences.
    "gspo": Objective("gspo", aggregation="sequence", normalize=True, clip_low=3e-4, clip_high=4e-4),
    # MiniMax 2025, arXiv:2506.13585: the weight of a token is clipped, its gradient stays.
    "cispo": Objective("cispo", normalize=True, clip_low=1.0, clip_high=4.0),
    # Williams 1992, with an importance weight and the group's mean as the baseline.
    "reinforce": Objective("importance_sampling"),
    # Ahmadian et al. 2024, arXiv:2402.14740: the mean of the others is the baseline.
    "rloo": Objective("importance_sampling", "rloo"),
    # Hu et al. 2025, arXiv:2501.03262: advantages of the whole batch are normalised, without or with a baseline.
    "reinforce_pp": Objective(advantage="reinforce_pp"),
    "reinforce_pp_baseline": Objective(advantage="reinforce_pp_baseline"),
    # Li et al. 2023, arXiv:2310.10505: the reward of the greedy answer is the baseline.
    "remax": Objective("importance_sampling", "remax"),
    # Hao et al. 2025, arXiv:2505.23585: the mean weighted by lengths is the baseline.
    "opo": Objective("importance_sampling", "opo"),
    # Tajwar et al. 2026, "Maximum Likelihood Reinforcement Learning": advantages are divided by the mean reward.
    "maxrl": Objective(advantage="maxrl"),
    # Li et al. 2026, "The Optimal Token Baseline": a baseline of its own at each position.
    "optimal_token": Objective("importance_sampling", "optimal_token"),
    # Tang et al. 2025, arXiv:2503.19595: of each group only the best answer is learned, by its lead.
    "grpo_passk": Objective(advantage="best", aggregation="sequence", normalize=True),
    # Liu et al. 2026, arXiv:2601.05242: several rewards, each normalised in its group by itself.
    "gdpo": Objective(advantage="gdpo"),
    # Plyusov et al. 2026, arXiv:2602.06717: tasks that mostly succeed count less.
    "f_grpo": Objective(aggregation="sequence", normalize=True, focal=1.0),
    # Liu et al. 2025, arXiv:2506.24119: a moving average of each agent's rewards is its baseline.
    "rae": Objective("importance_sampling", "rae"),
    # Ye et al. 2020, arXiv:1912.09729: ratios have a bound where the advantage is negative, too.
    "dual_clip": Objective(aggregation="sequence", normalize=True, dual_clip=3.0),
    # Gao et al. 2025, arXiv:2511.20347: a soft gate in place of the clip.
    "sapo": Objective("sapo", aggregation="sequence", normalize=True),
    # Zhao et al. 2025, arXiv:2507.20673: the geometric mean of ratios, clipped in their logarithms.
    "gmpo": Objective("gmpo", aggregation="sequence", normalize=True, clip_low=0.4, clip_high=0.4),
    # Qi et al. 2026, arXiv:2602.04879: a bound on the divergence in place of that on ratios.
    "dppo": Objective("dppo_tv"),
    # Cui et al. 2025, arXiv:2505.22617: tokens that would lower the entropy most learn nothing, or are held back.
    "clip_cov": Objective("clip_cov", normalize=True),
    "kl_cov": Objective("kl_cov", normalize=True, cov_share=2e-3),
    # Shrivastava et al. 2026, arXiv:2605.24517: also predicts what the environment answers.
    "echo": Objective(aggregation="sequence", normalize=True, echo=0.05),
}


@dataclass(frozen=True)
class Rejection:
    """Bounds beyond which samples are excluded from the loss, because the weights have moved too far from the sampling
    weights.

    Ratios are those of the weights before an update to the weights that sampled. A value of `None` sets no bound.
    """

    sequence_low: float | None = opt(None, "the smallest geometric mean of a sequence's ratios")
    sequence_high: float | None = opt(None, "the largest geometric mean of a sequence's ratios")
    sequence_mean_k2: float | None = opt(None, "the largest mean of a sequence's squared log-ratios, halved")
    sequence_mean_k3: float | None = opt(None, "the largest mean of a sequence's ratio - 1 - log-ratio")
    sequence_sum_low: float | None = opt(None, "the smallest product of a sequence's ratios")
    sequence_sum_high: float | None = opt(None, "the largest product of a sequence's ratios")
    sequence_sum_k2: float | None = opt(None, "the largest sum of a sequence's squared log-ratios, halved")
    sequence_sum_k3: float | None = opt(None, "the largest sum of a sequence's ratio - 1 - log-ratio")
    sequence_max_k2: float | None = opt(None, "the largest squared log-ratio in a sequence, halved")
    sequence_max_k3: float | None = opt(None, "the largest ratio - 1 - log-ratio in a sequence")
    token_low: float | None = opt(None, "the smallest ratio of a token")
    token_high: float | None = opt(None, "the largest ratio of a token")
    token_k2: float | None = opt(None, "the largest squared log-ratio of a token, halved")
    token_k3: float | None = opt(None, "the largest ratio - 1 - log-ratio of a token")
    negative: float | None = opt(
        None, "largest drop of the mean log-ratio per token for a sequence with negative advantage"
    )
    second_moment: float | None = opt(
        None, "largest mean of the squared log-ratios of all tokens that are kept; those with the largest are left out"
    )

    def __post_init__(self) -> None:
        for name, bound in self.bounds.items():
            key = f"rejection.{name}"
            if name.endswith("_low"):
                check(0 < bound < 1, key, "must be above 0 and below 1: the weights that sampled have ratio 1")
            elif name.endswith("_high"):
                check(bound > 1, key, "must be greater than 1: the weights that sampled have ratio 1")
            elif name == "negative":
                check(bound >= 0, key, "must be at least 0")
            else:
                check(bound > 0, key, "must be greater than 0, the divergence of the weights that sampled")

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are set, by name."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: bound for name, bound in every.items() if bound is not None}

    @property
    def active(self) -> bool:
        return bool(self.bounds)


def check_settings(objective: Objective, given: Iterable[str]) -> None:
    """Refuses settings that do not belong to the objective's loss or estimator, and values out of range.

    `given` contains the names of settings that were set explicitly rather than by the algorithm.
    """
    known = LOSS_SETTINGS[objective.loss]
    every = {name for names in LOSS_SETTINGS.values() for name in names}
    for name in given:
        if name in every and name not in known:
            has = f"its settings: {', '.join(known)}" if known else "it has no settings"
            raise ConfigError(f"{name}: not a setting of the loss {objective.loss}; {has}")
    if "normalize" in given and objective.normalize and objective.advantage not in DIVIDED:
        text = f"the estimator {objective.advantage} does its own scaling"
        raise ConfigError(f"normalize: {text}; normalize is for {', '.join(sorted(DIVIDED))}")
    if "kl_estimator" in given and not objective.kl_loss:
        raise ConfigError("kl_estimator: only for kl_loss, which is 0; kl is always estimated by k1")
    _check_values(objective)
    if objective.loss == "gmpo" and objective.aggregation != "sequence":
        raise ConfigError(
            f"aggregation: gmpo is a mean over sequences, so it must be sequence, not {objective.aggregation}"
        )
    if objective.advantage == "gdpo" and objective.overlong_buffer:
        raise ConfigError("overlong_buffer: gdpo learns the rewards in reward_parts, which have no penalty")
    if objective.advantage == "maxrl" and objective.overlong_buffer:
        raise ConfigError("overlong_buffer: penalties may make rewards negative, and maxrl needs rewards of at least 0")


def _check_values(objective: Objective) -> None:
    check(objective.clip_low >= 0, "clip_low", "must be at least 0")
    check(objective.clip_high >= 0, "clip_high", "must be at least 0")
    check(objective.dual_clip == 0 or objective.dual_clip > 1, "dual_clip", "must be 0 or greater than 1")
    for name in ("tau_positive", "tau_negative", "divergence"):
        check(getattr(objective, name) > 0, name, "must be greater than 0")
    check(objective.ratio_cap >= 1, "ratio_cap", "must be at least 1")
    check(0 < objective.cov_share <= 1, "cov_share", "must be a fraction above 0 and at most 1")
    check(objective.cov_low < objective.cov_high, "cov_low", "must be less than cov_high")
    check(objective.cov_kl >= 0, "cov_kl", "must be at least 0")
    for name in ("echo", "entropy", "kl_loss", "focal"):
        check(getattr(objective, name) >= 0, name, "must be at least 0")
