"""Reinforcement learning with groups of samples: GRPO and its relatives, on one or several turns.

    python -m trainyard.recipes.grpo --folder runs/grpo --environment.name arithmetic --algorithm dapo --steps 50

An algorithm is data (`core.algorithms`): an estimator of advantages, a loss and its settings, each of which can be set.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, mean
from typing import Any

import tinker

from .core import advantages as estimators
from .core import data
from .core.algorithms import (
    ALGORITHMS,
    ALONE,
    Aggregation,
    Algorithm,
    Estimator,
    KlEstimator,
    LossName,
    Objective,
    Rejection,
    check_settings,
)
from .core.attempts import Group
from .core.config import check, opt, run_main
from .core.curriculum import Curriculum, CurriculumConfig
from .core.episodes import (
    Player,
    Playing,
    fill_squares,
    load_suites,
    log_ratios,
    mean_of,
    reference_logprobs,
    sampler,
    snapshot,
    summary,
)
from .core.objective import shaped
from .core.rollout import Snapshot, Trajectory, last_of_episodes
from .core.run import Run, opened
from .core.seeds import seed_of
from .core.updates import Batch, Updates


@dataclass(frozen=True)
class Config(Playing):
    """Settings of reinforcement learning."""

    groups: int = opt(8, "tasks of a step")
    group_size: int = opt(8, "episodes of each task")
    algorithm: Algorithm = opt("grpo", "preset for the estimator, the loss and their settings that are not set")
    advantage: Estimator | None = opt(None, "estimator of advantages")
    loss: LossName | None = opt(None, "loss of the policy")
    clip_low: float | None = opt(
        None, "the smallest ratio is 1 - clip_low; for gmpo the smallest log-ratio is -clip_low"
    )
    clip_high: float | None = opt(
        None, "the largest ratio is 1 + clip_high; for gmpo the largest log-ratio is clip_high"
    )
    dual_clip: float | None = opt(None, "the largest ratio where the advantage is negative, for ppo; 0 sets no bound")
    tau_positive: float | None = opt(None, "temperature of the gate where the advantage is positive, for sapo")
    tau_negative: float | None = opt(None, "temperature of the gate elsewhere, for sapo")
    divergence: float | None = opt(None, "the largest divergence of a token, for dppo_tv and dppo_kl")
    ratio_cap: float | None = opt(None, "the largest weight of a token, for dppo_tv and dppo_kl")
    cov_share: float | None = opt(None, "fraction of tokens that are left out (clip_cov) or penalised (kl_cov)")
    cov_low: float | None = opt(None, "covariance above which tokens may be left out, for clip_cov")
    cov_high: float | None = opt(None, "covariance below which tokens may be left out, for clip_cov")
    cov_kl: float | None = opt(None, "weight of the KL to the sampling policy, for kl_cov")
    aggregation: Aggregation | None = opt(None, "mean over tokens, sequences or tasks, or a constant divisor")
    normalize: bool | None = opt(None, "divide advantages by the standard deviation of the group's rewards")
    reward_parts: dict[str, float] = opt(
        {}, "metrics of an episode that are rewards of their own, with weights, for gdpo"
    )
    focal: float | None = opt(None, "exponent of the share of failures by which a group's advantages are multiplied")
    focal_rewards: list[float] = opt([0.0, 1.0], "rewards of a failure and of a success, for focal")
    baseline_decay: float = opt(0.95, "weight of the former rewards in an agent's moving baseline, for rae")
    dynamic_sampling: bool | None = opt(None, "replace groups whose rewards are all equal")
    sampling_rounds: int = opt(4, "how many times such groups are replaced in a step")
    replace_from: float = opt(
        0.0, "fraction of informative groups from which copies of them replace the others, not new tasks; 0 never"
    )
    overlong_buffer: int | None = opt(None, "tokens before the limit in which answers are penalised; 0 penalises none")
    overlong_penalty: float = opt(1.0, "largest penalty")
    mask_truncated: bool = opt(False, "exclude truncated answers from the loss")
    rejection: Rejection = opt(Rejection(), "")
    echo: float | None = opt(None, "weight of the cross-entropy on the environment's messages")
    entropy: float | None = opt(None, "weight of the policy's entropy where it sampled, as a bonus")
    turn_discount: float = opt(1.0, "factor on the advantage of an answer for each later answer of the episode")
    kl: float = opt(0.0, "weight of the KL to the reference, subtracted from the advantages")
    kl_target: float = opt(0.0, "KL per token towards which kl is adapted after each step; 0 keeps it")
    kl_horizon: int = opt(10000, "sequences in which kl can grow or fall by a fifth of itself, for kl_target")
    kl_loss: float | None = opt(None, "weight of the KL to the reference as a term of the loss")
    kl_estimator: KlEstimator | None = opt(None, "estimate of that KL from the sampled tokens, or full: exact")
    reference: str = opt("", "tinker:// path of the reference's sampler weights; default: the base model")
    minibatches: int = opt(1, "optimizer updates per step, each on a part of its samples")
    curriculum: CurriculumConfig = opt(CurriculumConfig(), "")

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = self.chosen
        check(self.groups > 0, "groups", "must be at least 1")
        other = chosen.kl_estimator == "full" and bool(self.reference)
        check(not other, "kl_estimator", "full is the KL to the base model, so it can't be used with reference")
        alone = chosen.advantage in ALONE
        check(
            alone or self.group_size > 1,
            "group_size",
            "must be at least 2: the group's other episodes are the baseline",
        )
        check(self.group_size > 0, "group_size", "must be at least 1")
        check(self.kl >= 0, "kl", "must be at least 0")
        check(self.kl_target >= 0, "kl_target", "must be at least 0")
        check(self.kl > 0 or not self.kl_target, "kl_target", "kl, with which it begins, must be greater than 0")
        check(self.kl_horizon > 0, "kl_horizon", "must be at least 1")
        check(0 <= self.replace_from <= 1, "replace_from", "must be a fraction from 0 to 1")
        check(
            chosen.dynamic_sampling or not self.replace_from,
            "replace_from",
            "needs dynamic_sampling, without which no group is replaced",
        )
        low_high = self.focal_rewards
        check(
            len(low_high) == 2 and low_high[0] < low_high[1],
            "focal_rewards",
            "two rewards are required: that of a failure, and a larger one of a success",
        )
        check(chosen.focal > 0 or low_high == [0.0, 1.0], "focal_rewards", "only for focal, which is 0")
        check(0 <= self.baseline_decay < 1, "baseline_decay", "must be at least 0 and below 1")
        moving = chosen.advantage == "rae" or self.baseline_decay == 0.95
        check(moving, "baseline_decay", f"only for rae, not for {chosen.advantage}")
        check(0 < self.turn_discount <= 1, "turn_discount", "must be a factor above 0 and at most 1")
        check(
            self.turn_discount == 1 or self.limits.max_turns > 1,
            "turn_discount",
            "an episode has one answer, since limits.max_turns is 1",
        )
        check(0 < self.minibatches <= self.groups, "minibatches", "must be from 1 to groups")
        check_settings(chosen, self.given)
        with_parts = chosen.advantage == "gdpo"
        check(bool(self.reward_parts) or not with_parts, "reward_parts", "gdpo needs names of metrics, with weights")
        for name, weight in self.reward_parts.items():
            check(isinstance(weight, (int, float)) and weight > 0, f"reward_parts.{name}", "must be greater than 0")
        check(with_parts or not self.reward_parts, "reward_parts", f"only for gdpo, not for {chosen.advantage}")
        check(
            self.group_size > 1 or not chosen.dynamic_sampling,
            "dynamic_sampling",
            "the rewards of a group of one are all equal, so every group would be replaced",
        )
        check(
            chosen.advantage != "optimal_token" or self.limits.temperature == 1,
            "limits.temperature",
            "optimal_token needs 1: it compares probabilities of samples with those of the model",
        )
        check(
            not chosen.echo or self.limits.max_turns > 1,
            "echo",
            "the environment's messages come between answers, and limits.max_turns is 1",
        )

    @property
    def given(self) -> dict[str, object]:
        """The settings of the objective that are not left to the algorithm."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(Objective)
            if getattr(self, field.name) is not None
        }

    @property
    def chosen(self) -> Objective:
        """The algorithm with the settings that replace its own."""
        return replace(ALGORITHMS[self.algorithm], **self.given)  # type: ignore[arg-type]

    @property
    def objective(self) -> Objective:
        """What is optimized."""
        return self.chosen


class Learner:
    """Turns groups of episodes into updates."""

    def __init__(self, run: Run, config: Config) -> None:
        self.run, self.config, self.objective = run, config, config.objective
        self.updates = Updates(
            run.training, self.objective, config.rejection, config.limits.max_tokens, config.mask_truncated
        )
        self.reference: tinker.SamplingClient | None = None
        if config.kl or self.objective.estimates_kl:
            self.reference = sampler(run, config.reference)
        self.kl = float(run.state.get("kl", config.kl))
        self.moving = estimators.MovingBaselines(config.baseline_decay, run.state.get("baselines", {}))

    @property
    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        kl = {"kl": self.kl} if self.config.kl_target else {}
        return kl | ({"baselines": self.moving.known} if self.objective.advantage == "rae" else {})

    def reward(self, one: Trajectory) -> float:
        """The reward after the punishment of an overlong answer."""
        return shaped(one, self.config.limits.max_tokens, self.objective.overlong_buffer, self.config.overlong_penalty)

    def informative(self, group: Group) -> bool:
        """Whether a group's rewards differ, in games those of an agent."""
        last = last_of_episodes(group)
        if parts := self.config.reward_parts:
            return any(len(set(estimators.part_of(last, name))) > 1 for name in parts)
        return len({(one.agent, self.reward(one)) for one in last}) > len({one.agent for one in last})

    def weight(self, group: Group) -> float:
        """The factor on a group's advantages."""
        if not self.objective.focal:
            return 1.0
        low, high = self.config.focal_rewards
        return estimators.focal([one.reward for one in last_of_episodes(group)], self.objective.focal, (low, high))

    def prepare(self, groups: Sequence[Group], policy: tinker.SamplingClient) -> None:
        """Adds what the estimator needs of the policy to the episodes."""
        if self.objective.advantage == "optimal_token":
            fill_squares(policy, [one for group in groups for one in group])

    def advantages(
        self, groups: Sequence[Group], references: Sequence[Mapping[int, float]]
    ) -> tuple[list[list[float]], dict[str, float]]:
        """For each trajectory of all groups the advantage of each token, before the division by a mean's count.
        `references` are log-probabilities of its sampled tokens under the reference, if there is one."""
        objective, config = self.objective, self.config
        trajectories = [one for group in groups for one in group]
        values: list[list[float]] = []
        for group in groups:
            rewards = [self.reward(one) for one in group]
            found = estimators.estimated(
                group, rewards, objective.advantage, objective.normalize, config.reward_parts, self.moving
            )
            weight = self.weight(group)
            values += [[weight * value for value in own] for own in found]
        if config.turn_discount < 1:
            values = [
                estimators.discounted(one, own, config.turn_discount)
                for one, own in zip(trajectories, values, strict=True)
            ]
        metrics: dict[str, float] = {}
        distances = log_ratios(trajectories, references) if references else []
        if distances:
            metrics["kl"] = mean_of(distances)
        learned = [not (config.mask_truncated and one.truncated) for one in trajectories]
        if objective.advantage == "reinforce_pp":
            # There the distance is part of the reward, so each token has that of all that follow.
            for own, distance in zip(values, distances, strict=False):
                for at, rest in enumerate(estimators.to_go(distance, len(own))):
                    own[at] -= self.kl * rest
        if objective.advantage in estimators.WHITENED:
            masks = [[own and counts for own in one.mask] for one, counts in zip(trajectories, learned, strict=True)]
            values = estimators.whitened(values, masks)
        if objective.advantage != "reinforce_pp":
            for own, distance in zip(values, distances, strict=False):
                for at, apart in distance.items():
                    own[at] -= self.kl * apart
        if config.kl_target:
            metrics["kl_weight"] = self.kl
            self.kl = adapted(self.kl, metrics["kl"] / config.kl_target, len(trajectories) / config.kl_horizon)
        return values, metrics

    def corrected(self, batch: Batch) -> dict[str, float]:
        """For recipes whose samples are older than the weights: may change log-probabilities and advantages."""
        return {}

    def update(self, step: int, groups: Sequence[Group]) -> dict[str, float]:
        """One optimizer step, or several on parts of the groups."""
        trajectories = [one for group in groups for one in group]
        references = reference_logprobs(self.reference, trajectories) if self.reference else []
        advantages, metrics = self.advantages(groups, references)
        batch = Batch(trajectories, advantages, [one.logprobs for one in trajectories])
        if self.objective.estimates_kl:
            batch.references = [
                [own.get(at, 0.0) for at in range(len(one.tokens))]
                for one, own in zip(trajectories, references, strict=True)
            ]
        metrics |= self.corrected(batch)
        order = list(range(len(trajectories)))
        random.Random(seed_of(self.config.seed, step, "minibatches")).shuffle(order)
        size = -(-len(order) // self.config.minibatches)
        for first in range(0, len(order), size):
            chance = random.Random(seed_of(self.config.seed, step, first, "tokens"))
            metrics |= self.apply(step, batch.part(sorted(order[first : first + size])), chance)
            # The weights have moved.
            batch.now = None
        return metrics

    def apply(self, step: int, batch: Batch, chance: random.Random) -> dict[str, float]:
        """One gradient and one optimizer step."""
        gradient = self.updates.gradient(batch, chance)
        stepped = self.run.optimize(step)
        return gradient.result() | (stepped.result().metrics or {})


def adapted(weight: float, ratio: float, share: float) -> float:
    """The next weight of a KL that was `ratio` times its target, after a step with this share of the horizon (Ziegler
    et al. 2019, arXiv:1909.08593, section 2.2)."""
    return weight * (1 + min(max(ratio - 1, -0.2), 0.2) * share)


def collect(
    player: Player, learner: Learner, policy: Snapshot, config: Config, tasks: data.Tasks, step: int
) -> tuple[list[Group], list[Group]]:
    """The groups of a step, and all that were sampled for it."""
    used: list[Group] = []
    sampled: list[Group] = []
    rounds = config.sampling_rounds if learner.objective.dynamic_sampling else 0
    for round_ in range(rounds + 1):
        wanted = config.groups - len(used)
        groups = player.play_full(policy, tasks, wanted, seed_of(config.seed, step, round_), config.group_size)
        sampled += groups
        used += [group for group in groups if not learner.objective.dynamic_sampling or learner.informative(group)]
        missing = config.groups - len(used)
        if missing == 0:
            break
        if used and 0 < config.replace_from * config.groups <= len(used):
            used += random.Random(seed_of(config.seed, step, "copies")).choices(used, k=missing)
            break
    return used, sampled


def with_baselines(
    player: Player, learner: Learner, policy: Snapshot, groups: list[Group], seed: int
) -> tuple[list[Group], dict[str, float]]:
    """The groups whose tasks the greedy policy played to the end, with its reward as the baseline, for `remax`."""
    if learner.objective.advantage != "remax" or not groups:
        return groups, {}
    greedy = Snapshot(policy.sampler, policy.version, greedy=True)
    played = player.play(greedy, [group[0].task for group in groups], seed, 1)
    rewards = {(one.task, one.agent): learner.reward(one) for group in played for one in last_of_episodes(group)}
    kept = [group for group in groups if all((one.task, one.agent) in rewards for one in group)]
    for group in kept:
        for one in group:
            one.baseline = rewards[one.task, one.agent]
    missing = float(len(groups) - len(kept))
    return kept, {"greedy_reward": fmean(rewards.values()) if rewards else 0.0, "without_baseline": missing}


def train(config: Config, recipe: str) -> None:
    """The loop of `grpo` and `agent_env`: sample, score, update."""
    suites = load_suites(config)
    with opened(recipe, config) as run:
        player, learner = Player(run, config, suites), Learner(run, config)
        tasks = Curriculum(len(player.suite), config.seed, config.curriculum, run.state)
        for step in run.steps():
            policy = snapshot(run, step)
            metrics: dict[str, float] = {}
            if step == 0 and config.eval_tasks:
                metrics |= {f"{key}_before": value for key, value in player.held_out(policy).items()}
            used, sampled = collect(player, learner, policy, config, tasks, step)
            used, found = with_baselines(player, learner, policy, used, seed_of(config.seed, step, "greedy"))
            metrics |= found | summary(sampled) | {"informative": mean(learner.informative(group) for group in sampled)}
            metrics |= player.tally.metrics("env") | tasks.observe(sampled)
            if config.replace_from:
                metrics["copied"] = float(len(used) - len(set(map(id, used))))
            if used:
                learner.prepare(used, policy.sampler)
                metrics |= learner.update(step, used)
            if config.eval_tasks and run.evaluates(step):
                metrics |= player.held_out(snapshot(run, step + 1))
            run.record(step, metrics, ("reward", "held_out/reward", "answer_tokens"))
            run.after(step, tasks.state | learner.state)


def main(config: Config) -> None:
    train(config, "grpo")


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.grpo")


if __name__ == "__main__":
    raise SystemExit(cli())
