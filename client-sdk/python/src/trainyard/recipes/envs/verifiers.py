"""Environments of the package `verifiers` (0.1, `verifiers.load_environment`), when it is installed.

They drive themselves: an episode is a rollout of theirs against an OpenAI base URL, behind which the answers are
recorded. So any of them works: single turn, tools, sandboxes.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import uuid
from typing import Any

from ..core.config import ConfigError, missing
from .base import BlackBox, Outcome


class Verifiers:
    """`id` names an installed environment; `arguments` go to its `load_environment`."""

    def __init__(self, id: str, held_out: bool = False, arguments: dict[str, Any] | None = None) -> None:
        try:
            self.module: Any = importlib.import_module("verifiers")
        except ImportError as error:
            raise missing("environment.name", "verifiers", "verifiers") from error
        if not hasattr(self.module, "load_environment"):
            found = getattr(self.module, "__version__", "?")
            raise ConfigError(f"environment.name: verifiers 0.1 is needed, not {found}: it has no load_environment")
        self.environment: Any = self.module.load_environment(id, **(arguments or {}))
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
        # The package reads keys from variables alone.
        variable = f"RECIPE_KEY_{uuid.uuid4().hex}"
        os.environ[variable] = api_key
        try:
            client = self.module.ClientConfig(api_base_url=base_url, api_key_var=variable)
            output = asyncio.run(self.environment.run_rollout(self.row, client, model, {}))
        finally:
            del os.environ[variable]
        metrics = {key: float(value) for key, value in (output.get("metrics") or {}).items()}
        return Outcome(float(output.get("reward") or 0.0), metrics=metrics)
