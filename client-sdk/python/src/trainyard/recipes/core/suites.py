"""Suites of lm-eval and inspect, whose command-line programs evaluate a model through an OpenAI API."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

from .config import ConfigError, RecipeError, check, missing, opt
from .intervals import CONFIDENCE

Program = Literal["none", "lm_eval", "inspect_ai"]
SHOWN = 2_000
"""Maximum characters of a program's output that its error contains."""
PROVIDER = "trainyard"
"""Prefix of the environment variables in which inspect finds the API's key and address."""


@dataclass(frozen=True)
class SuiteConfig:
    """Tasks of an external program."""

    program: Program = opt("none", "program that evaluates in place of an environment: lm_eval or inspect_ai")
    tasks: list[str] = opt(
        [], "tasks: files (.yaml for lm_eval, .py for inspect_ai), or names of the program's own tasks"
    )
    chat: bool = opt(True, "whether lm_eval uses chat completions instead of text completions")
    options: dict[str, Any] = opt({}, "further options of the model: model_args of lm_eval, -M of inspect_ai")
    arguments: list[str] = opt([], "further arguments of the program")

    def __post_init__(self) -> None:
        named = self.program != "none"
        check(bool(self.tasks) == named, "suite.tasks", "a program and its tasks are required")
        check(named or not (self.options or self.arguments), "suite", "no program is set")


@dataclass(frozen=True)
class Asked:
    """The model to evaluate, and the bounds of the evaluation. `tasks` limits the tasks of each; 0 takes all."""

    model: str
    api: str
    key: str
    tasks: int
    seconds: float
    failures: float
    concurrency: int
    seed: int


class Suite:
    """A suite whose program is installed."""

    def __init__(self, config: SuiteConfig) -> None:
        self.config = config
        name, package = ("lm_eval", "lm-eval[api]") if config.program == "lm_eval" else ("inspect", "inspect-ai openai")
        beside = Path(sys.executable).parent
        program = shutil.which(name, path=str(beside)) or shutil.which(name)
        if program is None:
            raise missing("suite.program", config.program, f"'{package}'" if "[" in package else package)
        self.program = program

    def evaluated(self, asked: Asked) -> dict[str, float]:
        """Returns the metrics of the program, with the ends of 95 % intervals if it reports standard errors; `tasks`,
        the number of samples; and `failed`, the number of those with an error."""
        lm_eval = self.config.program == "lm_eval"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = self._lm_eval(asked, folder) if lm_eval else self._inspect(asked, folder)
            environment = os.environ | {
                "OPENAI_API_KEY": asked.key or "none",
                f"{PROVIDER.upper()}_API_KEY": asked.key or "none",
                f"{PROVIDER.upper()}_BASE_URL": asked.api,
            }
            finished(command, environment, folder / "output.txt", asked.seconds)
            try:
                return found_by_lm_eval(folder) if lm_eval else found_by_inspect(folder)
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                text = f"{type(error).__name__}: {error}"
                raise RecipeError(f"suite: the results of {self.config.program} can't be read: {text}") from error

    def _lm_eval(self, asked: Asked, folder: Path) -> list[str]:
        chat = self.config.chat
        options = {
            "model": asked.model,
            "base_url": f"{asked.api}/{'chat/completions' if chat else 'completions'}",
            "num_concurrent": asked.concurrency,
            "seed": asked.seed,
            # Without a tokenizer texts are sent as texts.
            "tokenizer_backend": None,
            "tokenized_requests": False,
            **self.config.options,
        }
        command = [self.program, "--model", "local-chat-completions" if chat else "local-completions"]
        command += ["--model_args", ",".join(f"{key}={value}" for key, value in options.items())]
        command += ["--tasks", ",".join(self.config.tasks), "--output_path", str(folder), "--seed", str(asked.seed)]
        command += ["--apply_chat_template"] if chat else []
        return command + limited(asked) + self.config.arguments

    def _inspect(self, asked: Asked, folder: Path) -> list[str]:
        # Without a task after @, inspect takes paths as patterns, which must be relative.
        tasks = [
            os.path.relpath(one) if Path(one).is_absolute() and Path(one).exists() else one for one in self.config.tasks
        ]
        command = [self.program, "eval", *tasks, "--model", f"openai-api/{PROVIDER}/{asked.model}"]
        command += [word for key, value in self.config.options.items() for word in ("-M", f"{key}={value}")]
        command += ["--log-dir", str(folder), "--log-format", "json", "--display", "plain", "--seed", str(asked.seed)]
        command += ["--max-connections", str(asked.concurrency)]
        # A share of samples; without a number any error ends the evaluation.
        command += ["--fail-on-error", f"{asked.failures:g}"] if asked.failures else ["--fail-on-error"]
        return command + limited(asked) + self.config.arguments


def limited(asked: Asked) -> list[str]:
    return ["--limit", str(asked.tasks)] if asked.tasks else []


def finished(command: Sequence[str], environment: Mapping[str, str], output: Path, seconds: float) -> None:
    """Runs a program to its end, for at most `seconds`; 0 sets no limit."""
    name = Path(command[0]).name
    with output.open("wb") as file:
        try:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        except OSError as error:
            raise ConfigError(f"suite.program: {command[0]}: {error.strerror}") from error
        try:
            code = process.wait(seconds or None)
        except subprocess.TimeoutExpired as error:
            raise RecipeError(f"suite: {name}: no end after {seconds:g} s{told(output)}") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code:
        raise RecipeError(f"suite: {name} ended with status {code}{told(output)}")


def told(output: Path) -> str:
    """Returns the end of a program's output."""
    text = output.read_text(errors="replace").strip()
    return f": {text[-SHOWN:]}" if text else ""


def found_by_lm_eval(folder: Path) -> dict[str, float]:
    """Reads `results_*.json`: `METRIC,FILTER` and `METRIC_stderr,FILTER` for each task."""
    results = _read(next(iter(sorted(folder.rglob("results_*.json"))), folder / "results.json"))
    found: dict[str, float] = {}
    for task, metrics in sorted(results["results"].items()):
        for key, value in metrics.items():
            metric, _, kept = key.partition(",")
            if _is_number(value) and not metric.endswith("_stderr") and metric not in ("sample_len", "sample_count"):
                name = f"{task}/{metric}" if kept in ("", "none") else f"{task}/{metric}/{kept}"
                found |= with_interval(name, float(value), metrics.get(f"{metric}_stderr,{kept}"))
    samples = sum(float(one["effective"]) for one in results["n-samples"].values())
    return found | {"tasks": samples, "failed": 0.0}


def found_by_inspect(folder: Path) -> dict[str, float]:
    """Reads the logs, one for each task: scores, each with metrics, of which `stderr` is that of the mean."""
    logs = [_read(path) for path in sorted(folder.glob("*.json"))]
    if not logs:
        raise ValueError("there is no log")
    found: dict[str, float] = {}
    total, completed = 0.0, 0.0
    for log in logs:
        if log["status"] != "success":
            error = (log.get("error") or {}).get("message", "no error was reported")
            raise RecipeError(f"suite: the task {log['eval']['task']} ended with {log['status']}: {error}")
        found |= dict(_scores(log["eval"]["task"], log["results"]["scores"]))
        total += float(log["results"]["total_samples"])
        completed += float(log["results"]["completed_samples"])
    return found | {"tasks": total, "failed": total - completed}


def _scores(task: str, scores: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    for score in scores:
        prefix = task if len(scores) == 1 else f"{task}/{score['name']}"
        values = {key: metric["value"] for key, metric in score["metrics"].items() if _is_number(metric["value"])}
        for key, value in values.items():
            if key == "stderr":
                continue
            error = values.get("stderr") if key in ("accuracy", "mean") else None
            yield from with_interval(f"{prefix}/{key}", float(value), error).items()


def with_interval(name: str, value: float, error: object) -> dict[str, float]:
    """A metric and, from its standard error, the ends of its interval by the normal distribution."""
    if not _is_number(error):
        return {name: value}
    assert isinstance(error, int | float)
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * error
    return {name: value, f"{name}_low": value - reach, f"{name}_high": value + reach}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found
