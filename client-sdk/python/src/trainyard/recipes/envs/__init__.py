"""Environments: tasks in which a model answers, uses tools, and earns rewards."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from ..core.config import ConfigError, opt
from .base import AnyEpisode, BlackBox, Environment, Game, Outcome, Suite, Turn, tool

__all__ = [
    "AnyEpisode", "BlackBox", "Environment", "EnvironmentConfig", "Game", "Outcome", "Suite", "Turn", "load_suite",
    "tool",
]  # fmt: skip

BUILT_IN = {
    "arithmetic": "arithmetic:Arithmetic",
    "counting": "counting:Counting",
    "code": "code:Code",
    "sql": "sql:Sql",
    "search": "search:Search",
    "kuhn_poker": "kuhn_poker:KuhnPoker",
    "prompts": "prompts:Prompts",
    "verifiers": "verifiers:Verifiers",
    "skyrl_gym": "skyrl_gym:SkyRLGym",
    "harbor": "harbor:Harbor",
    "nemo_gym": "nemo_gym:NemoGym",
    "openenv": "openenv:OpenEnv",
    "mcp": "mcp:Mcp",
    "external": "external:External",
    "mixed": "mixed:Mixed",
}


@dataclass(frozen=True)
class EnvironmentConfig:
    """Name of the environment, and its options."""

    name: str = opt("arithmetic", f"one of {', '.join(BUILT_IN)}, or MODULE:FACTORY of your own")
    options: dict[str, Any] = opt({}, "options of the environment, as a TOML table")


def load_suite(config: EnvironmentConfig, held_out: bool = False) -> Suite:
    """Returns the tasks for training, or the held-out ones: `FACTORY(held_out=…, **options)`."""
    name = BUILT_IN.get(config.name)
    path = f"{__name__}.{name}" if name else config.name
    module, colon, attribute = path.partition(":")
    if not colon:
        raise ConfigError(
            f"environment.name: {config.name!r} is unknown: expected one of {', '.join(BUILT_IN)}, or MODULE:FACTORY"
        )
    factory = imported(module, attribute, "environment.name")
    try:
        suite = cast(Suite, factory(held_out=held_out, **config.options))
    except TypeError as error:
        raise ConfigError(f"environment.options: {error}") from error
    if len(suite) == 0:
        raise ConfigError(f"environment: {config.name} has no tasks" + (" that are held out" if held_out else ""))
    return suite


def imported(module: str, attribute: str, key: str) -> Callable[..., Any]:
    """Imports a function by the name of its module and its own; `key` is the setting, for errors."""
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}: {error}") from error
    return cast(Callable[..., Any], found)
