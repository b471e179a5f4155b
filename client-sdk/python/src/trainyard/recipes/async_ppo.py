"""PPO with a critic, and rollouts that continue while training steps run.

    python -m trainyard.recipes.async_ppo --folder runs/async-ppo --environment.name arithmetic --staleness 2

The rollouts are those of `async_grpo`, the updates those of `ppo`. The critic values an episode when it is learned, so
its values are those of the newest critic, however old the tokens are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tinker

from . import ppo
from .core.attempts import Group
from .core.config import opt, run_main
from .core.episodes import Player, load_suites
from .core.in_flight import Flying, proximal, train
from .core.run import opened


@dataclass(frozen=True)
class Config(ppo.Config, Flying):
    """Settings of `ppo`, and the allowed staleness of rollouts."""

    correction: Literal["decoupled", "none"] = opt(
        "decoupled", "weighting of stale samples: decoupled PPO (AReaL), or the unchanged objective"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_flight()


class Learner(ppo.Learner):
    """Corrects for samples of older weights."""

    config: Config

    @property
    def state(self) -> dict[str, Any]:
        return {}

    def useful(self, group: Group) -> bool:
        return True

    def learn(self, step: int, groups: list[Group], policy: tinker.SamplingClient) -> dict[str, float]:
        return self.update(step, [one for group in groups for one in group])

    def corrected(self, batch: Sequence[ppo.Scored]) -> dict[str, float]:
        if self.config.correction != "decoupled":
            return {}
        trajectories = [one.trajectory for one in batch]
        moved, factors, _, metrics = proximal(self.run.training, trajectories, self.config.weight_cap)
        for one, trajectory, own in zip(batch, moved, factors, strict=True):
            one.trajectory = trajectory
            one.advantages = [value * factor for value, factor in zip(one.advantages, own, strict=True)]
        return metrics


def main(config: Config) -> None:
    suites, agent = load_suites(config), config.load_agent()
    with opened("async_ppo", config) as run:
        player, learner = Player(run, config, suites), Learner(run, config)
        train(run, player, config, config.tasks, config.episodes, learner, agent)


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.async_ppo")


if __name__ == "__main__":
    raise SystemExit(cli())
