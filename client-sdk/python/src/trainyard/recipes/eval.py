"""pass@k on an environment or a data set, of base models and checkpoints, through the OpenAI API of the server.

    python -m trainyard.recipes.eval --model tinker://RUN/sampler_weights/final --environment.name arithmetic --k 1,4

The ends of 95 % intervals have the suffixes `_low` and `_high`; `core.intervals` says how they are found.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .core.config import ConfigError, check, opt, run_main
from .core.evaluation import Settings, Target, prepared
from .core.progress import Progress
from .core.server import wait_for


@dataclass(frozen=True)
class Config(Settings):
    """Settings of an evaluation."""

    model: str = opt("", "base model, or tinker:// path of a sampler checkpoint")
    api: str = opt("", "base URL of the OpenAI API [default: <TINKER_BASE_URL>/oai/api/v1]")
    output: str = opt("", "JSONL file of all attempts; the summary is printed")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.model != "", "model", "a model or checkpoint is required")
        suite = self.suite.program != "none"
        check(
            not (self.output and suite),
            "output",
            "can't be combined with suite: the attempts of a program are not recorded",
        )


def api_url(named: str) -> str:
    """The OpenAI API of the server that the environment names."""
    base = os.environ.get("TINKER_BASE_URL", "")
    if not named and not base:
        raise ConfigError("api: set the API's URL, or TINKER_BASE_URL")
    return (named or f"{base.rstrip('/')}/oai/api/v1").rstrip("/")


def main(config: Config) -> dict[str, float]:
    evaluation = prepared(config)
    target = Target(config.model, api_url(config.api), os.environ.get("TINKER_API_KEY", ""))
    wait_for(target.api, "api" if config.api else "TINKER_BASE_URL")
    progress = Progress("eval", evaluation.count)
    report = evaluation.of(target, progress.show)
    progress.close()
    if config.output:
        report.write(Path(config.output))
    print(json.dumps({"model": config.model, **report.summary}))
    return report.summary


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.eval")


if __name__ == "__main__":
    raise SystemExit(cli())
