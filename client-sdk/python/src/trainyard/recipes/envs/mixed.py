"""Tasks of several environments in one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.chat import Message
from ..core.config import ConfigError, check, check_keys
from . import EnvironmentConfig, load_suite
from .base import AnyEpisode, BlackBox, Environment, Game, Outcome, Suite, Turn

SOURCES = "environment.options.sources"
KEYS = {"name", "options", "weight", "label"}


@dataclass(frozen=True)
class Source:
    """An environment, its part of the tasks, and its name in metrics."""

    label: str
    weight: float
    suite: Suite


class Mixed:
    """Of an epoch's tasks, each source has a part in proportion to its `weight`, 1 by default; every task of every
    source is among them, and those of small sources several times. Held-out tasks are those of all sources, once.

    The metric `env/reward/LABEL` is the mean reward of a source, whose `label` is its name by default.
    """

    def __init__(self, sources: Sequence[dict[str, Any]], held_out: bool = False) -> None:
        check(len(sources) > 0, SOURCES, "at least one is required")
        self.sources = [_source(number, given, held_out) for number, given in enumerate(sources)]
        labels = [source.label for source in self.sources]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ConfigError(f"{SOURCES}: two have the label {twice[0]!r}; set `label` of one")
        sizes = [len(source.suite) for source in self.sources]
        if not held_out:
            # The source with the most tasks for its weight has each of them once.
            of_unit = max(size / source.weight for size, source in zip(sizes, self.sources, strict=True))
            sizes = [round(of_unit * source.weight) for source in self.sources]
        self.tasks = [(at, index) for at, size in enumerate(sizes) for index in range(size)]

    def __len__(self) -> int:
        return len(self.tasks)

    def make(self, index: int) -> AnyEpisode:
        at, number = self.tasks[index]
        source = self.sources[at]
        made = source.suite.make(number % len(source.suite))
        if isinstance(made, Game):
            return LabelledGame(source.label, made)
        return Labelled(source.label, made) if isinstance(made, Environment) else LabelledBox(source.label, made)


def _source(number: int, given: dict[str, Any], held_out: bool) -> Source:
    key = f"{SOURCES}[{number}]"
    check(isinstance(given, dict) and "name" in given, key, "a table with the name of an environment is required")
    check_keys(given, KEYS, key)
    weight = given.get("weight", 1.0)
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    check(is_number and math.isfinite(weight) and weight > 0, f"{key}.weight", "must be a positive number")
    try:
        suite = load_suite(EnvironmentConfig(str(given["name"]), given.get("options", {})), held_out)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from error
    return Source(str(given.get("label", given["name"])), float(weight), suite)


class Labelled(Environment):
    """An episode of a source."""

    def __init__(self, label: str, environment: Environment) -> None:
        self.label, self.environment, self.reward = label, environment, 0.0

    def reset(self) -> list[Message]:
        messages = self.environment.reset()
        self.tools = self.environment.tools
        return messages

    def step(self, reply: str) -> Outcome:
        outcome = self.environment.step(reply)
        self.reward += outcome.reward
        # After every answer: the limit of turns may end the episode.
        return _with_reward(outcome, self.label, self.reward)

    def close(self) -> None:
        self.environment.close()


class LabelledBox(BlackBox):
    """An episode of a source that runs by itself."""

    def __init__(self, label: str, box: BlackBox) -> None:
        self.label, self.box = label, box

    def run(self, base_url: str, api_key: str, model: str) -> Outcome:
        outcome = self.box.run(base_url, api_key, model)
        return _with_reward(outcome, self.label, outcome.reward)

    def close(self) -> None:
        self.box.close()


class LabelledGame(Game):
    """A game of a source. Its agents have the label in their names, and `env/reward/LABEL` is the mean over them."""

    def __init__(self, label: str, game: Game) -> None:
        self.label, self.game = label, game
        self.rewards = dict[str, float]()

    def reset(self) -> Turn:
        return self._labelled(self.game.reset())

    def step(self, reply: str) -> Turn:
        return self._labelled(self.game.step(reply))

    def _labelled(self, turn: Turn) -> Turn:
        agent = f"{self.label}/{turn.agent}"
        rewards = {f"{self.label}/{name}": reward for name, reward in turn.rewards.items()}
        for name in (*rewards, *([] if turn.done else [agent])):
            self.rewards[name] = self.rewards.get(name, 0.0) + rewards.get(name, 0.0)
        mean = {f"reward/{self.label}": sum(self.rewards.values()) / len(self.rewards)} if self.rewards else {}
        return replace(turn, agent=agent, rewards=rewards, metrics=turn.metrics | mean)

    def close(self) -> None:
        self.game.close()


def _with_reward(outcome: Outcome, label: str, reward: float) -> Outcome:
    return Outcome(outcome.reward, outcome.done, outcome.messages, outcome.metrics | {f"reward/{label}": reward})
