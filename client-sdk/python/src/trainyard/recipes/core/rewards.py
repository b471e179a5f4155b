"""Rewards: a function of the answer and the record of its task."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from .config import ConfigError, missing
from .sandbox import Sandbox

Reward = Callable[[str, Mapping[str, Any]], float]
BLOCK = re.compile(r"```(?:python|py|sql)?\s*\n(.*?)```", re.DOTALL)


def load_reward(name: str) -> Reward:
    """`math`, `code`, `none` (a reward model judges), or a Python function `MODULE:FUNCTION` of (answer, record)."""
    if name == "math":
        return math_reward()
    if name == "code":
        return CodeReward()
    if name == "none":
        return lambda answer, record: 0.0
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ConfigError(f"reward: {name!r} is unknown: expected math, code, none or MODULE:FUNCTION")
    try:
        return cast(Reward, getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"reward: {error}") from error


def math_reward() -> Reward:
    """1 if `math-verify` finds the answer equal to the record's `answer`, else 0."""
    try:
        verifier: Any = importlib.import_module("math_verify")
    except ImportError as error:
        raise missing("reward", "math-verify", "math-verify") from error

    def reward(answer: str, record: Mapping[str, Any]) -> float:
        if "answer" not in record:
            raise ConfigError(f"reward: math needs 'answer' in a record; it has {', '.join(record)}")
        # Rewards are computed in threads, where the package's own timeout by signals can't be used.
        quiet = {"parsing_timeout": None}
        wanted = verifier.parse(f"${record['answer']}$", **quiet)
        found = verifier.parse(answer, **quiet)
        return float(bool(found) and bool(verifier.verify(wanted, found, timeout_seconds=None)))

    return reward


class CodeReward:
    """The fraction of the record's `tests` that pass: Python statements that raise when the code is wrong."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.sandbox = sandbox or Sandbox()

    def __call__(self, answer: str, record: Mapping[str, Any]) -> float:
        tests = record.get("tests")
        if not isinstance(tests, list) or not tests:
            raise ConfigError("reward: code needs 'tests', a list of Python statements, in a record")
        code = code_of(answer)
        return sum(self.sandbox.run(f"{code}\n{test}\n").ok for test in tests) / len(tests)


def code_of(answer: str) -> str:
    """The last fenced block of an answer, or all of it."""
    blocks = BLOCK.findall(answer)
    return str(blocks[-1]) if blocks else answer
