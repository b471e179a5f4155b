"""Evaluations of a run's weights at intervals: the tables `[[evals]]`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tinker

from ..envs import EnvironmentConfig
from .config import ConfigError, RecipeError, check, opt
from .evaluation import Evaluation, Settings, Target, prepared

NAME = re.compile(r"[\w.-]+")
TTL_SECONDS = 7 * 24 * 3600
"""Seconds that the weights of an evaluation are stored if the run is killed before it deletes them."""


@dataclass(frozen=True)
class EvalConfig(Settings):
    """An evaluation of a run, with the settings of `eval`."""

    name: str = opt("", "name of the evaluation: its metrics are eval/NAME/pass@1 and so on")
    every: int = opt(20, "steps between two evaluations; the last step always evaluates, and 0 evaluates only there")
    before: bool = opt(True, "whether to evaluate before the first step too")
    environment: EnvironmentConfig = opt(EnvironmentConfig(name=""), "")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_name = NAME.fullmatch(self.name) is not None
        check(is_name, "name", f"expected letters, digits, _, . and -, found {self.name!r}")
        check(self.every >= 0, "every", "must be at least 0")

    def resolved(self, own: EnvironmentConfig | None) -> EvalConfig:
        """Returns the settings with an environment: by default that of the run, with the options given here."""
        named = self.environment
        if self.data or named.name or self.is_suite:
            return self
        if own is None:
            raise ConfigError(f"evals.{self.name}: the recipe has no environment: set environment, data or suite")
        return replace(self, environment=EnvironmentConfig(own.name, own.options | named.options))

    def is_due(self, done: int, steps: int) -> bool:
        """Returns whether the weights are evaluated after `done` of `steps` steps."""
        return done == steps or (self.every > 0 and done % self.every == 0)

    @property
    def is_suite(self) -> bool:
        """Returns whether an external program evaluates, which has metrics of its own."""
        return self.suite.program != "none"

    @property
    def metrics(self) -> list[str]:
        """Returns the names of the reported metrics, as far as they are known."""
        if self.is_suite:
            return []
        names = [*(f"pass@{k}" for k in self.k), "reward"]
        every = [name + end for name in names for end in ("", "_low", "_high")]
        return [f"eval/{self.name}/{name}" for name in (*every, "tasks", "failed")]


def check_evals(evals: Sequence[EvalConfig], own: EnvironmentConfig | None, best: str) -> None:
    """Refuses evaluations that can't be distinguished or have no tasks, and a `best` that none of them reports."""
    names = [one.name for one in evals]
    check(len(set(names)) == len(names), "evals", f"names must differ, found {', '.join(names)}")
    for one in evals:
        one.resolved(own)
    if best.startswith("eval/"):
        known = [metric for one in evals for metric in one.metrics]
        of_suite = any(one.is_suite and best.startswith(f"eval/{one.name}/") for one in evals)
        check(
            of_suite or best in known, "best", f"no evaluation reports {best}; available: {', '.join(known) or 'none'}"
        )


@dataclass(frozen=True)
class Planned:
    """An evaluation of a run, with its tasks."""

    config: EvalConfig
    evaluation: Evaluation


def planned(evals: Sequence[EvalConfig], own: EnvironmentConfig | None) -> list[Planned]:
    """Returns the evaluations with their tasks, so that errors in them are found before the run begins."""
    found = []
    for one in evals:
        with named(one.name):
            found.append(Planned(one, prepared(one.resolved(own))))
    return found


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Prefixes errors with the name of the evaluation."""
    try:
        yield
    except (ConfigError, RecipeError) as error:
        raise type(error)(f"evals.{name}: {error}") from error


@dataclass(frozen=True)
class Server:
    """The server of a run: its OpenAI API, the key, and a function that deletes a checkpoint by its path."""

    api: str
    key: str
    delete: Callable[[str], None]


class Evals:
    """Evaluates the weights of a run. The same weights always have the same results: seeds don't depend on the step."""

    def __init__(
        self, plans: Sequence[Planned], training: tinker.TrainingClient, server: Server, folder: Path, steps: int
    ) -> None:
        self.plans, self.training, self.server = plans, training, server
        self.folder, self.steps = folder, steps

    @property
    def shown(self) -> tuple[str, ...]:
        """Returns the metrics that are shown in the progress bar."""
        return tuple(metric for one in self.plans for metric in one.config.metrics[:1])

    def before(self) -> dict[str, float]:
        """Evaluates the weights before the first step, if configured."""
        found = self._measured(0, [one for one in self.plans if one.config.before])
        return {f"{key}_before": value for key, value in found.items()}

    def after(self, step: int) -> dict[str, float]:
        """Runs the evaluations that are due after step number `step`, counted from 0."""
        done = step + 1
        return self._measured(done, [one for one in self.plans if one.config.is_due(done, self.steps)])

    def _measured(self, done: int, due: Sequence[Planned]) -> dict[str, float]:
        found: dict[str, float] = {}
        if not due:
            return found
        with self._stored(f"eval-{done:06d}") as path:
            for one in due:
                with named(one.config.name):
                    report = one.evaluation.of(Target(path, self.server.api, self.server.key))
                if report.records:
                    report.write(self.folder / "evals" / one.config.name / f"{done:06d}.jsonl")
                found |= {f"eval/{one.config.name}/{key}": value for key, value in report.summary.items()}
        return found

    @contextlib.contextmanager
    def _stored(self, name: str) -> Iterator[str]:
        """The path of the weights as they are, which are deleted afterwards."""
        path = str(self.training.save_weights_for_sampler(name, ttl_seconds=TTL_SECONDS).result().path)
        try:
            yield path
        finally:
            # What can't be deleted expires.
            with contextlib.suppress(tinker.TinkerError):
                self.server.delete(path)
