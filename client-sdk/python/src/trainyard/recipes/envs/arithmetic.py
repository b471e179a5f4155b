"""Sums and differences as chat messages; the last number of the answer counts."""

from __future__ import annotations

import random
import re
import time

from ..core.chat import Message
from ..core.config import check
from .base import Environment, Outcome

NUMBER = re.compile(r"-?\d+")
HELD_OUT = 0x5EED


class Arithmetic:
    """`largest` bounds the terms; `partial` is the largest reward of a wrong number, depending on its distance.

    `delay` adds seconds to each step, to simulate an environment that calls something slow.
    """

    def __init__(
        self, held_out: bool = False, tasks: int = 512, largest: int = 20, partial: float = 0.0, delay: float = 0.0
    ) -> None:
        check(largest > 0, "environment.options.largest", "must be at least 1")
        self.held_out, self.tasks, self.largest, self.partial, self.delay = held_out, tasks, largest, partial, delay

    def __len__(self) -> int:
        return self.tasks

    def make(self, index: int) -> Environment:
        random_ = random.Random(f"{HELD_OUT if self.held_out else 0}/{index}")
        left, right = random_.randint(0, self.largest), random_.randint(0, self.largest)
        return Episode(left, right, self.partial, self.delay)


class Episode(Environment):
    def __init__(self, left: int, right: int, partial: float, delay: float) -> None:
        self.left, self.right, self.partial, self.delay = left, right, partial, delay

    def reset(self) -> list[Message]:
        return [
            {"role": "system", "content": "Answer with a number alone."},
            {"role": "user", "content": f"What is {self.left} + {self.right}?"},
        ]

    def step(self, reply: str) -> Outcome:
        time.sleep(self.delay)
        numbers = NUMBER.findall(reply)
        if not numbers:
            return Outcome(0.0, metrics={"correct": 0.0})
        # Numbers with many digits are no near misses.
        found = int(numbers[-1][:12])
        wanted = self.left + self.right
        correct = found == wanted
        near = self.partial / (1 + abs(found - wanted))
        return Outcome(1.0 if correct else near, metrics={"correct": float(correct)})
