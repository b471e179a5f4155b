"""A curriculum by success: tasks that taught nothing rest for some epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from .attempts import Group
from .config import check, opt
from .data import Tasks
from .rollout import last_of_episodes


@dataclass(frozen=True)
class CurriculumConfig:
    """Which tasks rest, and for how long."""

    rest: int = opt(0, "epochs for which a task is left out after a step in which it was easy or hard; 0 plays all")
    easy: float = opt(1.0, "mean reward of a group from which its task is easy")
    hard: float = opt(0.0, "mean reward of a group up to which its task is hard")

    def __post_init__(self) -> None:
        check(self.rest >= 0, "curriculum.rest", "must be at least 0")
        check(self.hard < self.easy, "curriculum.hard", "must be less than curriculum.easy")


class Curriculum(Tasks):
    """Numbers of tasks in the order of the data, without those that rest."""

    def __init__(self, count: int, seed: int, config: CurriculumConfig, state: Mapping[str, Any]) -> None:
        super().__init__(count, seed, int(state.get("tasks", 0)))
        self.count, self.config = count, config
        self.due: dict[int, int] = {int(task): epoch for task, epoch in state.get("resting", {}).items()}
        """The epoch from which a resting task is played again."""
        self.drawn: dict[int, int] = {}
        """The epoch of a task whose group is not observed yet."""

    def __next__(self) -> int:
        while True:
            # If all tasks rest, epochs pass without one until some are due.
            epoch = self.taken // self.count
            task = super().__next__()
            if self.due.get(task, 0) <= epoch:
                self.due.pop(task, None)
                self.drawn[task] = epoch
                return task

    def observe(self, groups: Iterable[Group]) -> dict[str, float]:
        """Lets the tasks of easy and of hard groups rest; returns the share of all tasks that rest."""
        if self.config.rest == 0:
            return {}
        for group in groups:
            task, reward = group[0].task, fmean(one.reward for one in last_of_episodes(group))
            if not self.config.hard < reward < self.config.easy:
                self.due[task] = self.drawn[task] + 1 + self.config.rest
        self.drawn.clear()
        return {"resting": len(self.due) / self.count}

    @property
    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        resting = {"resting": {str(task): epoch for task, epoch in sorted(self.due.items())}} if self.due else {}
        return {"tasks": self.taken} | resting
