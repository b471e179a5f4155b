"""Small Python functions to write; tests run in the sandbox, and their failures go back to the model."""

from __future__ import annotations

import random

from ..core.chat import Message
from ..core.rewards import CodeReward, code_of
from ..core.sandbox import Sandbox
from .base import Environment, Outcome

HELD_OUT = 0x5EED
# What a function computes, in words and in Python; {a} and {b} are numbers.
KINDS = [
    ("the sum of x and {a}", "x + {a}"),
    ("x times {a}", "x * {a}"),
    ("x times {a}, minus {b}", "x * {a} - {b}"),
    ("the remainder of x divided by {a}", "x % {a}"),
    ("the larger of x and {a}", "max(x, {a})"),
    ("the square of x, plus {a}", "x * x + {a}"),
    ("the text x repeated {a} times", "x * {a}"),
    ("the list x without its first {a} elements", "x[{a}:]"),
]
TEXTS, LISTS = ["", "ab", "xyz"], [[], [1, 2, 3], list(range(12))]


class Code:
    """Allows `turns` answers for a task: after each but the last, the model sees what failed."""

    def __init__(
        self, held_out: bool = False, tasks: int = 256, turns: int = 2, seconds: float = 5.0, memory_mib: int = 512,
        require_no_network: bool = False,
    ) -> None:  # fmt: skip
        self.held_out, self.tasks, self.turns = held_out, tasks, turns
        self.sandbox = Sandbox(seconds, memory_mib, require_no_network=require_no_network)

    def __len__(self) -> int:
        return self.tasks

    def make(self, index: int) -> Environment:
        random_ = random.Random(f"{HELD_OUT if self.held_out else 0}/{index}")
        words, expression = random_.choice(KINDS)
        numbers = {"a": random_.randint(2, 9), "b": random_.randint(1, 9)}
        words, expression = words.format(**numbers), expression.format(**numbers)
        inputs: list[object] = [random_.randint(-20, 20) for _ in range(3)]
        if "text" in words:
            inputs = list(TEXTS)
        elif "list" in words:
            inputs = list(LISTS)
        tests = [f"assert f({x!r}) == {eval(expression, {'x': x, 'max': max})!r}, 'f({x!r})'" for x in inputs]
        return Episode(words, tests, self.turns, self.sandbox)


class Episode(Environment):
    def __init__(self, words: str, tests: list[str], turns: int, sandbox: Sandbox) -> None:
        self.words, self.tests, self.left, self.sandbox = words, tests, turns, sandbox
        self.reward = CodeReward(sandbox)

    def reset(self) -> list[Message]:
        system = "You write Python. Answer with one block of code, between ```python and ```."
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": f"Write a function f(x) that returns {self.words}."},
        ]

    def step(self, reply: str) -> Outcome:
        self.left -= 1
        passed = self.reward(reply, {"tests": self.tests})
        if passed == 1.0 or self.left == 0:
            return Outcome(passed, metrics={"correct": float(passed == 1.0)})
        failed = self.sandbox.run("\n".join([code_of(reply), *self.tests]))
        text = f"That is not right:\n{failed.output[-400:]}\nWrite it again."
        return Outcome(0.0, done=False, messages=[{"role": "user", "content": text}])
