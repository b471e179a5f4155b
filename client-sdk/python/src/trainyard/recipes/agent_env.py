"""Reinforcement learning of agents: several turns with tools in an environment.

    python -m trainyard.recipes.agent_env --folder runs/agent --environment.name sql --limits.max_turns 4

The loop is that of `grpo`; an episode is one sequence, in which only the model's own tokens are learned. Environments
are `arithmetic`, `counting`, `code`, `sql`, `search`, `prompts`, `verifiers`, or a `MODULE:FACTORY` of yours
(`trainyard.recipes.envs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import grpo
from .core.algorithms import Algorithm
from .core.config import opt, run_main
from .core.rollout import Limits
from .envs import EnvironmentConfig


@dataclass(frozen=True)
class Config(grpo.Config):
    """Settings of `grpo`, with defaults for agents."""

    environment: EnvironmentConfig = opt(EnvironmentConfig(name="search"), "")
    limits: Limits = opt(Limits(max_turns=4), "")
    algorithm: Algorithm = opt("dapo", "preset for the objective's settings that are not set")
    mask_truncated: bool = opt(True, "exclude truncated episodes from the loss")


def main(config: Config) -> None:
    grpo.train(config, "agent_env")


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.agent_env")


if __name__ == "__main__":
    raise SystemExit(cli())
