"""Asynchronous reinforcement learning: rollouts continue while training steps run.

    python -m trainyard.recipes.async_grpo --folder runs/async --environment.name arithmetic --staleness 2

Episodes are sampled continuously by an in-flight sampler, whose weights change in the middle of an answer when a step
is done. Each token has the version of the newest weights at the time of its request; it may come from newer ones. A
step does not train on tokens whose version is more than `staleness` steps old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import tinker

from . import grpo
from .core.algorithms import LOSS_SETTINGS, Objective
from .core.attempts import Group
from .core.config import check, opt, run_main
from .core.episodes import Player, load_suites
from .core.in_flight import Flying, proximal, train
from .core.run import opened
from .core.updates import Batch


@dataclass(frozen=True)
class Config(grpo.Config, Flying):
    """Settings of `grpo`, and the allowed staleness of rollouts."""

    correction: Literal["decoupled", "loglinear", "aipo", "none"] = opt(
        "decoupled",
        "weighting of stale samples: decoupled PPO, the same with an interpolated proximal policy (AReaL), AIPO "
        "(LlamaRL), or the unchanged objective",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_flight()
        check(
            self.curriculum.rest == 0,
            "curriculum.rest",
            "async_grpo starts tasks before the results of earlier ones are known; use grpo or agent_env",
        )
        check(
            self.replace_from == 0,
            "replace_from",
            "async_grpo takes groups as they are finished, so others take the place of those; use grpo or agent_env",
        )
        check(
            self.chosen.advantage != "remax",
            "advantage",
            "remax needs a greedy episode of each task, which async_grpo does not sample; use grpo or agent_env",
        )
        if self.correction == "aipo":
            self._check_aipo()

    def _check_aipo(self) -> None:
        """AIPO is a loss of its own, so that of the settings has no place."""
        names = {"loss", *(name for known in LOSS_SETTINGS.values() for name in known)}
        for name in sorted(names & self.given.keys()):
            check(False, name, "correction = aipo has its own loss and clipping; choose decoupled or none")
        has = self.chosen
        check(has.of_server, "algorithm", f"the loss {has.loss} and correction = aipo are mutually exclusive")

    @property
    def objective(self) -> Objective:
        """Returns the objective. AIPO is REINFORCE with weights truncated at the cap: the loss `cispo` without a lower
        bound."""
        if self.correction == "aipo":
            return replace(self.chosen, loss="cispo", clip_low=1.0, clip_high=self.weight_cap - 1)
        return self.chosen


class Learner(grpo.Learner):
    """Corrects for samples of older weights."""

    config: Config

    def useful(self, group: Group) -> bool:
        return not self.objective.dynamic_sampling or self.informative(group)

    def learn(self, step: int, groups: list[Group], policy: tinker.SamplingClient) -> dict[str, float]:
        self.prepare(groups, policy)
        self.version = step
        return self.update(step, groups)

    def corrected(self, batch: Batch) -> dict[str, float]:
        config = self.config
        if config.correction == "loglinear":
            batch.weight_cap = config.weight_cap
            batch.shares = [[between(version, self.version) for version in one.versions] for one in batch.trajectories]
        if config.correction != "decoupled":
            return {}
        batch.trajectories, factors, batch.now, metrics = proximal(
            self.run.training, batch.trajectories, config.weight_cap
        )
        batch.advantages = [
            [value * factor for value, factor in zip(own, weights, strict=True)]
            for own, weights in zip(batch.advantages, factors, strict=True)
        ]
        return metrics


def between(version: int, current: int) -> float:
    """Where the weights of one step earlier are on the way from those of a version to the current ones, from 0 to 1;
    as if each step had changed log-probabilities alike."""
    age = current - version
    return (age - 1) / age if age > 0 else 0.0


def main(config: Config) -> None:
    suites, agent = load_suites(config), config.load_agent()
    with opened("async_grpo", config) as run:
        player, learner = Player(run, config, suites), Learner(run, config)
        train(run, player, config, config.groups, config.group_size, learner, agent)


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.async_grpo")


if __name__ == "__main__":
    raise SystemExit(cli())
