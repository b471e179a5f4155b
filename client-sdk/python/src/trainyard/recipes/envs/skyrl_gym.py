"""Environments of the package `skyrl-gym`, when it is installed, on records as SkyRL reads them."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import typing
from typing import Any

from ..core import data
from ..core.chat import Message, as_messages
from ..core.config import ConfigError, missing
from .base import Environment, Outcome

CLASS = "env_class"
"""Key of a record with the name of its environment."""
DATA = "environment.options.data"


class SkyRLGym:
    """A record has `prompt`, the name of its environment in `env_class` unless `env` names one for all, and what the
    environment reads.

    `module` is imported first, so that it can register environments. `settings` are those that SkyRL has under the
    environment's name; `max_turns` goes to the environment.
    """

    def __init__(
        self, data: str, held_out: bool = False, held_out_data: str = "", env: str = "", module: str = "",
        settings: dict[str, Any] | None = None, max_turns: int | None = None,
    ) -> None:  # fmt: skip
        self.gym = _package(module)
        self.settings, self.max_turns = settings or {}, max_turns
        self.source = (held_out_data or data) if held_out else data
        self.records = _read(self.source, env)
        self.configs = {name: self._config(name) for name in sorted({record[CLASS] for record in self.records})}

    def __len__(self) -> int:
        return len(self.records)

    def make(self, index: int) -> Environment:
        record = copy.deepcopy(self.records[index])
        name, prompt = record.pop(CLASS), as_messages(record.pop("prompt"))
        if self.max_turns is not None:
            record["max_turns"] = self.max_turns
        try:
            made = self.gym.make(name, env_config=self.configs[name], extras=record)
        except (AssertionError, KeyError) as error:
            raise ConfigError(f"{DATA}: record {index + 1} of {self.source} does not suit {name}: {error}") from error
        return Episode(made, prompt)

    def _config(self, name: str) -> Any:
        """The settings in the form that an environment expects: the dataclass of its constructor, or a `DictConfig`."""
        if name not in self.gym.registry:
            known = ", ".join(sorted(self.gym.registry))
            raise ConfigError(f"environment.options.env: skyrl_gym has no {name!r}; registered are {known}")
        entry = self.gym.registry[name].entry_point
        registration: Any = importlib.import_module("skyrl_gym.envs.registration")
        creator = entry if callable(entry) else registration.load_env_creator(entry)
        hint = typing.get_type_hints(creator.__init__).get("env_config")
        classes = (kind for kind in (hint, *typing.get_args(hint)) if isinstance(kind, type))
        kinds = [kind for kind in classes if dataclasses.is_dataclass(kind)]
        if not kinds:
            return importlib.import_module("omegaconf").OmegaConf.create(self.settings)
        fields = {field.name for field in dataclasses.fields(kinds[0])}
        if unknown := sorted(self.settings.keys() - fields):
            known = ", ".join(sorted(fields))
            raise ConfigError(f"environment.options.settings: {name} has no {unknown[0]!r}; it has {known}")
        return kinds[0](**self.settings)


def _package(module: str) -> Any:
    try:
        package: Any = importlib.import_module("skyrl_gym")
    except ImportError as error:
        raise missing("environment.name", "skyrl_gym", "skyrl-gym") from error
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ConfigError(f"environment.options.module: {error}") from error
    return package


def _read(source: str, env: str) -> list[data.Record]:
    """The records, each with the name of its environment."""
    records = []
    for number, record in enumerate(data.read(source, DATA), 1):
        if "prompt" not in record:
            raise ConfigError(f"{DATA}: record {number} of {source} has no 'prompt'")
        name = env or record.get(CLASS)
        if not name:
            raise ConfigError(f"environment.options.env: missing, and record {number} of {source} has no {CLASS!r}")
        records.append({**record, CLASS: str(name)})
    return records


class Episode(Environment):
    """An episode of a text environment: every answer is a step."""

    def __init__(self, environment: Any, prompt: list[Message]) -> None:
        self.environment, self.prompt = environment, prompt

    def reset(self) -> list[Message]:
        messages, _ = self.environment.init(self.prompt)
        return [dict(message) for message in messages]

    def step(self, reply: str) -> Outcome:
        """Returns the reward of a turn, and after the last one the numbers among the environment's metrics.

        An environment that replaces the answer is refused: what was sampled is what is learned.
        """
        found = self.environment.step(reply)
        if found.get("postprocessed_action") not in (None, reply):
            raise ConfigError(
                "environment.options.env: the environment replaces answers (postprocessed_action), which is not "
                "supported: the model learns from the tokens that it sampled"
            )
        done = bool(found["done"])
        metrics = self.environment.get_metrics() if done else {}
        numbers = {key: float(value) for key, value in metrics.items() if isinstance(value, (bool, int, float))}
        messages = [] if done else [dict(message) for message in found["observations"]]
        return Outcome(float(found["reward"]), done, messages, numbers)

    def close(self) -> None:
        self.environment.close()
