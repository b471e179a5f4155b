"""Reinforcement learning with groups of samples: GRPO and its relatives, on one or several turns.

python -m trainyard.recipes.grpo --folder runs/grpo --environment.name arithmetic --algorithm dapo --steps 50
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean

import tinker

from .core import data
from .core.attempts import Group
from .core.config import check, opt, run_main
from .core.episodes import Player, Playing, load_suites, log_ratios, mean_of, sampler, snapshot, summary
from .core.objective import (
    ALGORITHMS,
    Aggregation,
    Algorithm,
    LossName,
    Objective,
    group_advantages,
    loss_config,
    policy_datum,
    sampler_kl,
    scales,
    shaped,
    token_advantages,
)
from .core.rollout import Policy, Trajectory
from .core.run import Run, opened, seed_of


@dataclass(frozen=True)
class Config(Playing):
    """Settings of reinforcement learning."""

    groups: int = opt(8, "tasks of a step")
    group_size: int = opt(8, "episodes of each task")
    algorithm: Algorithm = opt("grpo", "what loss, clips, aggregation and the like are where they are none")
    loss: LossName | None = opt(None, "loss of the policy")
    clip_low: float | None = opt(None, "the smallest ratio is 1 - clip_low")
    clip_high: float | None = opt(None, "the largest ratio is 1 + clip_high")
    aggregation: Aggregation | None = opt(None, "mean over tokens, over sequences, or a constant divisor")
    normalize: bool | None = opt(None, "divide advantages by the standard deviation of the group's rewards")
    dynamic_sampling: bool | None = opt(None, "replace groups whose rewards are all equal")
    sampling_rounds: int = opt(4, "times that such groups are replaced in a step")
    overlong_buffer: int | None = opt(None, "tokens before the limit in which answers are punished; 0 for none")
    overlong_penalty: float = opt(1.0, "the largest punishment")
    mask_truncated: bool = opt(False, "learn nothing from answers that were cut off")
    kl: float = opt(0.0, "weight of the distance (KL) to the reference, which is taken from the advantages")
    reference: str = opt("", "tinker:// path of the reference's sampler weights; the base model when absent")
    minibatches: int = opt(1, "optimizer updates with the samples of a step")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.groups > 0, "groups", "at least 1 is needed")
        check(self.group_size > 1, "group_size", "at least 2 are needed: the others of a group are the baseline")
        check(self.kl >= 0, "kl", "at least 0 is needed")
        check(0 < self.minibatches <= self.groups, "minibatches", "from 1 to groups")

    @property
    def objective(self) -> Objective:
        """The algorithm with the settings that replace its own."""
        names = ("loss", "clip_low", "clip_high", "aggregation", "normalize", "dynamic_sampling", "overlong_buffer")
        own = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(ALGORITHMS[self.algorithm], **own)


class Learner:
    """Turns groups of episodes into updates."""

    def __init__(self, run: Run, config: Config) -> None:
        self.run, self.config, self.objective = run, config, config.objective
        self.reference: tinker.SamplingClient | None = None
        if config.kl:
            self.reference = sampler(run, config.reference)

    def rewards(self, group: Group) -> list[float]:
        """Rewards after the punishment of overlong answers."""
        config, objective = self.config, self.objective
        limit, buffer = config.limits.max_tokens, objective.overlong_buffer
        return [shaped(one, limit, buffer, config.overlong_penalty) for one in group]

    def informative(self, group: Group) -> bool:
        """Whether a group's rewards differ, so that it has a gradient."""
        return len(set(self.rewards(group))) > 1

    def advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        """For each trajectory of all groups the advantage of each token, before the division by a mean's count."""
        found = []
        for group in groups:
            values = group_advantages(self.rewards(group), self.objective.normalize)
            for one, advantage in zip(group, values, strict=True):
                dropped = self.config.mask_truncated and one.truncated
                found.append(token_advantages(one, 0.0 if dropped else advantage))
        return found

    def penalized(self, trajectories: Sequence[Trajectory], advantages: list[list[float]]) -> float:
        """Takes the distance to the reference from the advantages; returns its mean over tokens."""
        if self.reference is None:
            return 0.0
        distances = log_ratios(self.reference, trajectories)
        for values, own in zip(advantages, distances, strict=True):
            for at, distance in own.items():
                values[at] -= self.config.kl * distance
        return mean_of(distances)

    def corrected(self, trajectories: list[Trajectory], advantages: list[list[float]]) -> dict[str, float]:
        """For recipes whose samples are older than the weights: may change log-probabilities and advantages."""
        return {}

    def update(self, step: int, groups: Sequence[Group]) -> dict[str, float]:
        """One optimizer step, or several on parts of the groups."""
        trajectories = [one for group in groups for one in group]
        advantages = self.advantages(groups)
        metrics = {"kl": self.penalized(trajectories, advantages)} if self.reference else {}
        metrics |= self.corrected(trajectories, advantages)
        order = list(range(len(trajectories)))
        random.Random(seed_of(self.config.seed, step, "minibatches")).shuffle(order)
        size = -(-len(order) // self.config.minibatches)
        for first in range(0, len(order), size):
            part = sorted(order[first : first + size])
            metrics |= self.apply(step, [trajectories[at] for at in part], [advantages[at] for at in part])
        return metrics

    def apply(self, step: int, batch: Sequence[Trajectory], advantages: Sequence[Sequence[float]]) -> dict[str, float]:
        """One gradient and one optimizer step."""
        factors = scales(batch, self.objective.aggregation, self.config.limits.max_tokens)
        examples = [
            policy_datum(one, [factor * value for value in values], self.objective)
            for one, values, factor in zip(batch, advantages, factors, strict=True)
        ]
        pending = self.run.training.forward_backward(examples, self.objective.loss, loss_config(self.objective))
        stepped = self.run.optimize(step)
        output = pending.result()
        metrics = {"loss": output.metrics["loss:sum"], "sampler_kl": sampler_kl(batch, output)}
        return metrics | (stepped.result().metrics or {})


def collect(
    player: Player, learner: Learner, policy: Policy, config: Config, tasks: data.Tasks, step: int
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
        if len(used) == config.groups:
            break
    return used, sampled


def train(config: Config, recipe: str) -> None:
    """The loop of `grpo` and `agent_env`: sample, score, update."""
    suites = load_suites(config)
    with opened(recipe, config) as run:
        player, learner = Player(run, config, suites), Learner(run, config)
        tasks = data.Tasks(len(player.suite), config.seed, int(run.state.get("tasks", 0)))
        for step in run.steps():
            policy = snapshot(run, step)
            metrics: dict[str, float] = {}
            if step == 0 and config.eval_tasks:
                metrics |= {f"{key}_before": value for key, value in player.held_out(policy).items()}
            used, sampled = collect(player, learner, policy, config, tasks, step)
            metrics |= summary(sampled) | {"informative": mean(learner.informative(group) for group in sampled)}
            metrics |= player.tally.metrics("env")
            if used:
                metrics |= learner.update(step, used)
            if config.eval_tasks and run.evaluates(step):
                metrics |= player.held_out(snapshot(run, step + 1))
            run.record(step, metrics, ("reward", "held_out/reward", "answer_tokens"))
            run.after(step, {"tasks": tasks.taken})


def main(config: Config) -> None:
    train(config, "grpo")


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.grpo")


if __name__ == "__main__":
    raise SystemExit(cli())
