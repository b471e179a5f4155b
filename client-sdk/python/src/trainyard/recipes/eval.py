"""pass@k on an environment or a data set, of base models and checkpoints, through the OpenAI API of the server.

python -m trainyard.recipes.eval --model tinker://RUN/sampler_weights/final --environment.name arithmetic --k 1,4
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import httpx

from .core.attempts import described
from .core.chat import Message
from .core.config import ConfigError, RecipeError, check, opt, run_main
from .core.progress import Progress
from .core.run import seed_of
from .core.server import wait_for
from .core.threads import Threads
from .envs import BlackBox, EnvironmentConfig, Suite, load_suite

OF_THE_REQUEST = (400, 413, 422)
"""Statuses that refuse a request for what it contains, such as a conversation beyond the model's context."""


class RefusedError(Exception):
    """The API refused the request of one attempt."""


@dataclass(frozen=True)
class Config:
    """Settings of an evaluation."""

    model: str = opt("", "base model, or tinker:// path of a sampler checkpoint")
    api: str = opt("", "base URL of the OpenAI API; <TINKER_BASE_URL>/oai/api/v1 when absent")
    environment: EnvironmentConfig = opt(EnvironmentConfig(), "")
    tasks: int = opt(64, "tasks, from the first; 0 takes all")
    samples: int = opt(4, "independent attempts at each task")
    k: list[int] = opt([1], "values of k, at most samples")
    success: float = opt(1.0, "reward from which an attempt counts as passed")
    temperature: float = opt(1.0, "temperature")
    top_p: float = opt(1.0, "nucleus")
    max_tokens: int = opt(256, "tokens of an answer")
    max_turns: int = opt(8, "answers of an attempt")
    seconds: float = opt(3600.0, "seconds of an attempt, after which it has failed; 0 sets no limit")
    failures: float = opt(
        0.1, "share of the attempts that may fail, which count as not passed; more end the evaluation"
    )
    concurrency: int = opt(16, "attempts at the same time")
    seed: int = opt(0, "seed of tasks and samples")
    output: str = opt("", "JSONL file of all attempts; the summary is printed")

    def __post_init__(self) -> None:
        check(self.model != "", "model", "a model or checkpoint is needed")
        check(self.samples > 0, "samples", "at least 1 is needed")
        check(self.seconds >= 0, "seconds", "at least 0 is needed")
        check(0 <= self.failures < 1, "failures", "a share from 0 to below 1 is needed")
        check(all(0 < k <= self.samples for k in self.k), "k", f"values from 1 to samples ({self.samples}) are needed")


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The probability that one of k attempts passes, unbiased, from `correct` of n (Chen et al. 2021)."""
    return 1.0 if n - correct < k else 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def api_url(named: str) -> str:
    """The OpenAI API of the server that the environment names."""
    base = os.environ.get("TINKER_BASE_URL", "")
    if not named and not base:
        raise ConfigError("api: name the API, or set TINKER_BASE_URL")
    return (named or f"{base.rstrip('/')}/oai/api/v1").rstrip("/")


def answer(http: httpx.Client, config: Config, messages: list[Message], tools: list[Any] | None, seed: int) -> Message:
    body: dict[str, Any] = {"model": config.model, "messages": messages, "max_tokens": config.max_tokens, "seed": seed}
    body |= {"temperature": config.temperature, "top_p": config.top_p}
    if tools:
        body["tools"] = tools
    response = http.post("chat/completions", json=body)
    if response.status_code in OF_THE_REQUEST:
        raise RefusedError(f"{response.status_code}: {response.text[:500]}")
    if response.is_error:
        raise ConfigError(f"api: {response.status_code}: {response.text[:500]}")
    message: Message = response.json()["choices"][0]["message"]
    return message


def text_of(message: Message) -> str:
    """An answer as the model wrote it: calls of tools are put back into their text form."""
    calls = [
        {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"] or "{}")}
        for call in message.get("tool_calls") or []
    ]
    written = [f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls]
    return "\n".join([part for part in [message.get("content")] if part] + written)


def attempt(http: httpx.Client, config: Config, suite: Suite, task: int, seed: int) -> dict[str, Any]:
    """Plays one episode; its reward is the sum over its turns."""
    environment = suite.make(task)
    try:
        if isinstance(environment, BlackBox):
            outcome = environment.run(api_url(config.api), os.environ.get("TINKER_API_KEY", ""), config.model)
            return {"reward": outcome.reward, "metrics": outcome.metrics}
        messages = environment.reset()
        reward, turns = 0.0, 0
        while turns < config.max_turns:
            reply = text_of(answer(http, config, messages, environment.tools, seed_of(seed, turns)))
            turns += 1
            outcome = environment.step(reply)
            reward += outcome.reward
            messages = [*messages, {"role": "assistant", "content": reply}, *outcome.messages]
            if outcome.done:
                break
        return {"reward": reward, "turns": turns, "messages": messages}
    finally:
        environment.close()


class Attempts:
    """Makes attempts within the limit of time. A failed attempt does not pass."""

    def __init__(self, http: httpx.Client, config: Config, suite: Suite, threads: Threads, total: int) -> None:
        self.http, self.config, self.suite, self.threads, self.total = http, config, suite, threads, total
        self.failed = 0

    def make(self, task: int, seed: int) -> dict[str, Any]:
        work = functools.partial(attempt, self.http, self.config, self.suite, task, seed)
        try:
            return self.threads.within(self.config.seconds, work, lambda: f"no end after {self.config.seconds:g} s")
        except (ConfigError, CancelledError):
            raise
        except (Exception, SystemExit) as error:
            return {"reward": 0.0, "error": described(error)}

    def counted(self, attempts: Sequence[dict[str, Any]]) -> None:
        """Ends the evaluation if too many attempts failed."""
        errors = [one["error"] for one in attempts if "error" in one]
        self.failed += len(errors)
        if self.failed > self.config.failures * self.total:
            allowed = (
                f"failures = {self.config.failures:g} allows {self.config.failures * self.total:g} of {self.total}"
            )
            raise RecipeError(f"{self.failed} attempts failed, {allowed}; the last error: {errors[-1]}")


def main(config: Config) -> dict[str, float]:
    suite = load_suite(config.environment, held_out=True)
    wait_for(api_url(config.api), "api" if config.api else "TINKER_BASE_URL")
    count = min(len(suite), config.tasks or len(suite))
    key = os.environ.get("TINKER_API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    progress = Progress("eval", count)
    passed: list[int] = []
    rewards: list[float] = []
    records = []
    with (
        httpx.Client(base_url=api_url(config.api), headers=headers, timeout=600) as http,
        ThreadPoolExecutor(config.concurrency) as pool,
        Threads() as threads,
    ):
        making = Attempts(http, config, suite, threads, count * config.samples)
        futures = [
            [pool.submit(making.make, task, seed_of(config.seed, task, sample)) for sample in range(config.samples)]
            for task in range(count)
        ]
        for task, group in enumerate(futures):
            attempts = [future.result() for future in group]
            making.counted(attempts)
            passed.append(sum("error" not in one and one["reward"] >= config.success for one in attempts))
            rewards += [one["reward"] for one in attempts]
            records += [{"task": task, **one} for one in attempts]
            progress.show(task + 1, {"reward": mean(rewards)})
    progress.close()
    if config.output:
        Path(config.output).write_text("".join(json.dumps(record) + "\n" for record in records))
    summary = {f"pass@{k}": mean(pass_at_k(config.samples, c, k) for c in passed) for k in config.k}
    summary |= {"reward": mean(rewards), "tasks": float(count), "failed": float(making.failed)}
    print(json.dumps({"model": config.model, **summary}))
    return summary


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.eval")


if __name__ == "__main__":
    raise SystemExit(cli())
