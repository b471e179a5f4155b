"""Evaluations of a model through an OpenAI API: attempts at the tasks of an environment, pass@k and mean reward.

The recipe `eval` and the `[[evals]]` of training runs share this code.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from statistics import mean
from typing import Any, Protocol

import httpx

from ..envs import BlackBox, EnvironmentConfig, Game, Suite, load_suite
from .chat import Message
from .config import ConfigError, RecipeError, check, described, opt
from .intervals import means, pass_at_k
from .seeds import seed_of
from .suites import Asked, SuiteConfig
from .suites import Suite as Programs
from .threads import Threads

OF_THE_REQUEST = (400, 413, 422)
"""Statuses of requests that are refused because of their content, such as a conversation beyond the context length."""

BUSY = (429, 500, 502, 503, 504)
"""Statuses after which a request is retried."""
REPEATS, FIRST_DELAY = 5, 1.0
"""Number of retries of a request, and the seconds before the first one, doubled each time."""

Shown = Callable[[int, Mapping[str, float]], None]
"""Called with the number of finished tasks and the results so far."""


class RefusedError(Exception):
    """The API refused the request of an attempt."""


@dataclass(frozen=True)
class Settings:
    """Settings of an evaluation."""

    environment: EnvironmentConfig = opt(EnvironmentConfig(), "")
    data: str = opt("", "data set of prompts, in the format of the environment prompts, in place of an environment")
    reward: str = opt("math", "reward of the answers to data: math, code or MODULE:FUNCTION")
    suite: SuiteConfig = opt(SuiteConfig(), "")
    tasks: int = opt(64, "tasks, from the first; 0 takes all")
    samples: int = opt(4, "independent attempts at each task")
    k: list[int] = opt([1], "values of k, at most samples")
    success: float = opt(1.0, "reward from which an attempt counts as passed")
    temperature: float = opt(1.0, "temperature")
    top_p: float = opt(1.0, "nucleus")
    max_tokens: int = opt(256, "maximum tokens of an answer")
    max_turns: int = opt(8, "maximum answers of an attempt")
    seconds: float = opt(3600.0, "time limit of an attempt, or of a suite, in seconds; 0 sets no limit")
    failures: float = opt(
        0.1, "fraction of attempts that may fail; failed ones count as not passed, and more end the evaluation"
    )
    concurrency: int = opt(16, "concurrent attempts")
    seed: int = opt(0, "seed of samples and of the intervals")

    def __post_init__(self) -> None:
        check(self.tasks >= 0, "tasks", "must be at least 0")
        check(self.samples > 0, "samples", "must be at least 1")
        check(self.max_tokens > 0, "max_tokens", "must be at least 1")
        check(self.max_turns > 0, "max_turns", "must be at least 1")
        check(self.concurrency > 0, "concurrency", "must be at least 1")
        check(self.seconds >= 0, "seconds", "must be at least 0")
        check(0 <= self.failures < 1, "failures", "must be a fraction from 0 to below 1")
        check(
            all(0 < k <= self.samples for k in self.k), "k", f"values from 1 to samples ({self.samples}) are required"
        )
        other = self.environment != _default(self, "environment")
        check(not (self.data and other), "data", "can't be combined with environment")
        unread = not self.data and self.reward != Settings.reward
        check(not unread, "reward", "requires data")
        suite = self.suite.program != "none"
        check(
            not (suite and (self.data or other)),
            "suite",
            "can't be combined with environment or data: a suite has its own tasks",
        )

    @property
    def played(self) -> EnvironmentConfig:
        """Returns the environment that is played."""
        options = {"data": self.data, "reward": self.reward}
        return EnvironmentConfig("prompts", options) if self.data else self.environment


def _default(settings: Settings, name: str) -> object:
    (factory,) = (field.default_factory for field in fields(settings) if field.name == name)
    assert factory is not MISSING, "tables are made anew for each configuration"
    return factory()


@dataclass(frozen=True)
class Target:
    """The model that is evaluated, and the API that serves it."""

    model: str
    api: str
    key: str


@dataclass(frozen=True)
class Report:
    """The summary of an evaluation, and a record of each attempt."""

    summary: dict[str, float]
    records: list[dict[str, Any]]

    def write(self, path: Path) -> None:
        """Writes the attempts, one line each."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records))


class Attempts:
    """Makes attempts within the limit of time. A failed attempt does not pass."""

    def __init__(self, settings: Settings, target: Target, suite: Suite, http: httpx.Client, threads: Threads) -> None:
        self.settings, self.target, self.suite = settings, target, suite
        self.http, self.threads = http, threads
        self.failed = 0

    def make(self, task: int, seed: int) -> dict[str, Any]:
        """Makes an attempt, and returns its record."""
        seconds = self.settings.seconds
        work = functools.partial(self._played, task, seed)
        try:
            return self.threads.within(seconds, work, lambda: f"no end after {seconds:g} s")
        except (ConfigError, RecipeError, CancelledError):
            raise
        except (Exception, SystemExit) as error:
            return {"reward": 0.0, "error": described(error)}

    def counted(self, attempts: Sequence[dict[str, Any]], total: int) -> None:
        """Ends the evaluation if too many of `total` attempts failed."""
        errors = [one["error"] for one in attempts if "error" in one]
        self.failed += len(errors)
        share = self.settings.failures
        if self.failed > share * total:
            allowed = f"failures = {share:g} allows {share * total:g} of {total}"
            raise RecipeError(f"{self.failed} attempts failed, {allowed}; the last error: {errors[-1]}")

    def _played(self, task: int, seed: int) -> dict[str, Any]:
        """Plays one episode; its reward is the sum over its turns."""
        environment = self.suite.make(task)
        try:
            if isinstance(environment, Game):
                raise ConfigError("environment: a game can't be evaluated, because the model would play against itself")
            if isinstance(environment, BlackBox):
                outcome = environment.run(self.target.api, self.target.key, self.target.model)
                return {"reward": outcome.reward, "metrics": outcome.metrics}
            messages = environment.reset()
            reward, turns = 0.0, 0
            while turns < self.settings.max_turns:
                reply = text_of(self._answer(messages, environment.tools, seed_of(seed, turns)))
                turns += 1
                outcome = environment.step(reply)
                reward += outcome.reward
                messages = [*messages, {"role": "assistant", "content": reply}, *outcome.messages]
                if outcome.done:
                    break
            return {"reward": reward, "turns": turns, "messages": messages}
        finally:
            environment.close()

    def _answer(self, messages: list[Message], tools: list[Any] | None, seed: int) -> Message:
        settings = self.settings
        body: dict[str, Any] = {"model": self.target.model, "messages": messages, "seed": seed}
        body |= {"max_tokens": settings.max_tokens, "temperature": settings.temperature, "top_p": settings.top_p}
        if tools:
            body["tools"] = tools
        response = self._sent(body)
        if response.status_code in OF_THE_REQUEST:
            raise RefusedError(f"{response.status_code}: {response.text[:500]}")
        if response.is_error:
            kind = RecipeError if response.status_code in BUSY else ConfigError
            raise kind(f"api: {response.status_code}: {response.text[:500]}")
        message: Message = response.json()["choices"][0]["message"]
        return message

    def _sent(self, body: Mapping[str, Any]) -> httpx.Response:
        """The answer to a request, which is sent again while the server is busy or restarts."""
        for repeat in itertools.count():
            try:
                response = self.http.post("chat/completions", json=body)
                if response.status_code not in BUSY or repeat == REPEATS:
                    return response
            except httpx.TimeoutException:
                raise
            except httpx.TransportError:
                if repeat == REPEATS:
                    raise
            self.threads.pause(FIRST_DELAY * 2.0**repeat)
        raise AssertionError("unreachable: retries are counted without a limit")


def text_of(message: Message) -> str:
    """Returns an answer as the model wrote it: tool calls are put back into their text form."""
    calls = [
        {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"] or "{}")}
        for call in message.get("tool_calls") or []
    ]
    written = [f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls]
    return "\n".join([part for part in [message.get("content")] if part] + written)


class Evaluation(Protocol):
    """An evaluation whose tasks are loaded. It can be repeated with other models on the same tasks and seeds."""

    count: int
    """Tasks of which `shown` is told."""

    def of(self, target: Target, shown: Shown | None = None) -> Report:
        """Evaluates a model. Failed attempts count in `failed`; more than `failures` are a `RecipeError`."""
        ...


def prepared(settings: Settings) -> Evaluation:
    """The evaluation by an environment or by a program."""
    return OfPrograms(settings) if settings.suite.program != "none" else OfEnvironment(settings)


class OfPrograms:
    """An evaluation by the suite of an external program. Its attempts are not recorded."""

    count = 1

    def __init__(self, settings: Settings) -> None:
        self.settings, self.programs = settings, Programs(settings.suite)

    def of(self, target: Target, shown: Shown | None = None) -> Report:
        settings = self.settings
        asked = Asked(
            model=target.model,
            api=target.api,
            key=target.key,
            tasks=settings.tasks,
            seconds=settings.seconds,
            failures=settings.failures,
            concurrency=settings.concurrency,
            seed=settings.seed,
        )
        summary = self.programs.evaluated(asked)
        if shown:
            shown(1, {})
        return Report(summary, [])


class OfEnvironment:
    """Attempts at the held-out tasks of an environment."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.suite = load_suite(settings.played, held_out=True)
        self.count = min(len(self.suite), settings.tasks or len(self.suite))

    def of(self, target: Target, shown: Shown | None = None) -> Report:
        settings = self.settings
        headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
        passed: list[int] = []
        rewards: list[float] = []
        records: list[dict[str, Any]] = []
        # Threads are closed first, so that no thread of the pool waits for an attempt when an error ends it.
        with (
            httpx.Client(base_url=target.api, headers=headers, timeout=600) as http,
            ThreadPoolExecutor(settings.concurrency) as pool,
            Threads() as threads,
        ):
            making = Attempts(settings, target, self.suite, http, threads)
            futures = [
                [
                    pool.submit(making.make, task, seed_of(settings.seed, task, sample))
                    for sample in range(settings.samples)
                ]
                for task in range(self.count)
            ]
            for task, group in enumerate(futures):
                attempts = [future.result() for future in group]
                making.counted(attempts, self.count * settings.samples)
                passed.append(sum("error" not in one and one["reward"] >= settings.success for one in attempts))
                rewards.append(mean(one["reward"] for one in attempts))
                records += [{"task": task, **one} for one in attempts]
                if shown:
                    shown(task + 1, {"reward": mean(rewards)})
        return Report(self._summary(passed, rewards) | {"failed": float(making.failed)}, records)

    def _summary(self, passed: Sequence[int], rewards: Sequence[float]) -> dict[str, float]:
        """The numbers from, for each task, how many attempts passed and the mean reward."""
        settings = self.settings
        values = {f"pass@{k}": [pass_at_k(settings.samples, c, k) for c in passed] for k in settings.k}
        found = means(values | {"reward": rewards}, list(values), seed_of(settings.seed, "intervals"))
        return found | {"tasks": float(self.count)}
