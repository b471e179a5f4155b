"""Environments of the package `verifiers`, when it is installed: those of 0.1, and the tasksets of 0.3.

They run their own rollouts: an episode is one rollout against an OpenAI base URL, behind which the answers are
recorded. So all kinds work: single turn, tools, sandboxes.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.config import ConfigError, missing
from .base import BlackBox, Outcome, Suite

LAZY_TASKS = 1000
"""Number of tasks taken from a taskset of unlimited length."""


def Verifiers(
    id: str, held_out: bool = False, arguments: dict[str, Any] | None = None, held_out_tasks: int = 16
) -> Suite:
    """`id` names an installed environment or taskset. `arguments` go to `load_environment`, or are the settings of the
    environment of a taskset (what `verifiers` reads from `[env]`), whose first `held_out_tasks` tasks are held out."""
    try:
        module: Any = importlib.import_module("verifiers")
    except ImportError as error:
        raise missing("environment.name", "verifiers", "verifiers") from error
    if taskset := _taskset_module(id):
        return Tasksets(taskset, id, held_out, arguments or {}, held_out_tasks)
    if not hasattr(module, "load_environment"):
        found = getattr(module, "__version__", "?")
        raise ConfigError(f"environment.options.id: verifiers {found} finds no taskset {id!r}")
    return Environments(module, id, held_out, arguments or {})


def _taskset_module(id: str) -> Any:
    """The loaders of verifiers 0.3 if they know a taskset of this name."""
    try:
        loaders: Any = importlib.import_module("verifiers.v1.utils.loaders")
    except ImportError:
        return None
    try:
        loaders.taskset_class(id)
    except (ModuleNotFoundError, AttributeError, TypeError):
        return None
    return loaders


@contextmanager
def key_in_variable(api_key: str) -> Iterator[str]:
    """Returns the name of an environment variable with a key: the package reads keys only from variables."""
    variable = f"RECIPE_KEY_{uuid.uuid4().hex}"
    os.environ[variable] = api_key
    try:
        yield variable
    finally:
        del os.environ[variable]


class Environments:
    """The data set of an environment of verifiers 0.1."""

    def __init__(self, module: Any, id: str, held_out: bool, arguments: dict[str, Any]) -> None:
        self.module = module
        self.environment: Any = module.load_environment(id, **arguments)
        chosen = self.environment.get_eval_dataset() if held_out else self.environment.get_dataset()
        self.inputs: list[dict[str, Any]] = [dict(row) for row in chosen]

    def __len__(self) -> int:
        return len(self.inputs)

    def make(self, index: int) -> BlackBox:
        return Rollout(self.module, self.environment, self.inputs[index])


class Rollout(BlackBox):
    """One rollout, scored by the environment's rubric."""

    def __init__(self, module: Any, environment: Any, row: dict[str, Any]) -> None:
        self.module, self.environment, self.row = module, environment, row

    def run(self, base_url: str, api_key: str, model: str) -> Outcome:
        with key_in_variable(api_key) as variable:
            client = self.module.ClientConfig(api_base_url=base_url, api_key_var=variable)
            output = asyncio.run(self.environment.run_rollout(self.row, client, model, {}))
        metrics = {key: float(value) for key, value in (output.get("metrics") or {}).items()}
        return Outcome(float(output.get("reward") or 0.0), metrics=metrics)


class Tasksets:
    """The tasks of a taskset of verifiers 0.3."""

    def __init__(self, loaders: Any, id: str, held_out: bool, arguments: dict[str, Any], held_out_tasks: int) -> None:
        self.loaders = loaders
        settings = {**arguments, "taskset": {**arguments.get("taskset", {}), "id": id}}
        try:
            self.config: Any = loaders.resolve_env_config(settings)
            taskset = loaders.load_taskset(self.config.taskset)
        except ValueError as error:
            raise ConfigError(f"environment.options.arguments: {' '.join(str(error).split())}") from error
        limit = LAZY_TASKS if taskset.INFINITE else None
        tasks: list[Any] = list(itertools.islice(taskset, limit))
        self.tasks = tasks[:held_out_tasks] if held_out else tasks[held_out_tasks:]

    def __len__(self) -> int:
        return len(self.tasks)

    def make(self, index: int) -> BlackBox:
        return TasksetEpisode(self.loaders, self.config, self.tasks[index])


class EpisodeError(Exception):
    """An episode of a taskset that failed; the text is the error that the package kept."""


class TasksetEpisode(BlackBox):
    """One episode; its reward is the mean over the traces of its agents."""

    def __init__(self, loaders: Any, config: Any, task: Any) -> None:
        self.loaders, self.config, self.task = loaders, config, task

    def run(self, base_url: str, api_key: str, model: str) -> Outcome:
        with key_in_variable(api_key) as variable:
            episode = asyncio.run(self._played(base_url, variable, model))
        traces = list(episode.traces)
        errors = [*episode.errors, *(error for trace in traces for error in trace.errors)]
        if errors or not traces:
            last = f"{errors[-1].type}: {errors[-1].message}" if errors else "no agent played"
            raise EpisodeError(last)
        found = {key: value for trace in traces for key, value in trace.metrics.items() if value is not None}
        return Outcome(sum(float(trace.reward) for trace in traces) / len(traces), metrics=found)

    async def _played(self, base_url: str, variable: str, model: str) -> Any:
        package: Any = importlib.import_module("verifiers.v1")
        client = package.EvalClientConfig(base_url=base_url, api_key_var=variable)
        # An environment holds servers of its own, so each episode has one, in its own event loop.
        environment = self.loaders.load_environment(self.config)
        async with environment.serving():
            return await environment.run_episode(self.task, package.ModelContext(model=model, client=client))
