"""An environment of several turns for the check of `agent_env`, as `--environment.name=guess:Guess`.

A number is hidden among nine; each wrong guess is answered with the direction of the hidden one.
"""

import random
import re

from trainyard.recipes.envs import Environment, Outcome

NUMBER = re.compile(r"\d+")
SPAN = 9
NEAR = 0.3


class Guess:
    """Tasks differ in the range and in the number; the ranges of held-out tasks are others."""

    def __init__(self, held_out: bool = False, tasks: int = 512, turns: int = 3) -> None:
        self.held_out, self.tasks, self.turns = held_out, tasks, turns

    def __len__(self) -> int:
        return self.tasks

    def make(self, index: int) -> Environment:
        random_ = random.Random(f"{self.held_out}/{index}")
        low = random_.choice([low for low in range(1, 80) if (low % 5 == 0) == self.held_out])
        return Episode(low, random_.randint(low, low + SPAN - 1), self.turns)


class Episode(Environment):
    """The reward is 1 for the number, else up to `NEAR` by the distance of the last guess."""

    def __init__(self, low: int, number: int, turns: int) -> None:
        self.low, self.number, self.left = low, number, turns

    def reset(self) -> list[dict]:
        return [
            {"role": "system", "content": "Guess the number. Answer with a number alone."},
            {"role": "user", "content": f"It is from {self.low} to {self.low + SPAN - 1}."},
        ]

    def step(self, reply: str) -> Outcome:
        self.left -= 1
        found = NUMBER.findall(reply)
        guess = int(found[0][:6]) if found else None
        if guess == self.number:
            return Outcome(1.0, metrics={"found": 1.0})
        if self.left == 0:
            near = NEAR / (1 + abs(guess - self.number)) if guess is not None else 0.0
            return Outcome(near, metrics={"found": 0.0})
        if guess is None:
            return self._again("A number alone.")
        return self._again(f"It is {'more' if guess < self.number else 'less'} than {guess}.")

    def _again(self, text: str) -> Outcome:
        return Outcome(done=False, messages=[{"role": "user", "content": text}])
