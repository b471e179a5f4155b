"""The checkpoints of a run: the last ones, from which it is resumed, and the one with the best value of a metric."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .sinks import lines

Direction = Literal["max", "min"]
Line = dict[str, Any]
"""A checkpoint: `step`, `path`, `state`, for further models `beside`, and for the best one `best`."""


@dataclass(frozen=True)
class Wanted:
    """The metric whose best checkpoint is kept, if any."""

    metric: str
    direction: Direction

    def is_of(self, line: Line) -> bool:
        """Returns whether a checkpoint was saved as the best by this metric."""
        best = line.get("best", {})
        return bool(self.metric) and (best.get("metric"), best.get("is")) == (self.metric, self.direction)

    def improves(self, value: float | None, on: Line | None) -> bool:
        """Returns whether a value is better than that of a checkpoint. Among equal values, the first is the best."""
        if value is None or not math.isfinite(value):
            return False
        if on is None:
            return True
        before = float(on["best"]["value"])
        return value > before if self.direction == "max" else value < before


class Checkpoints:
    """The list in `checkpoints.jsonl`. `delete` deletes the checkpoint with a path from the server."""

    def __init__(self, path: Path, keep: int, wanted: Wanted, delete: Callable[[str], None]) -> None:
        self.path, self.keep, self.wanted, self.delete = path, keep, wanted, delete

    @property
    def saved(self) -> list[Line]:
        """All checkpoints, in the order of their steps."""
        return lines(self.path)

    @property
    def best(self) -> Line | None:
        """The checkpoint with the best value so far."""
        found = [line for line in self.saved if self.wanted.is_of(line)]
        return found[-1] if found else None

    def add(self, line: Line) -> None:
        """Adds a checkpoint, and deletes those that are neither among the last ones nor the best."""
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._delete_others()

    def _delete_others(self) -> None:
        saved, best = self.saved, self.best
        kept = []
        for at, line in enumerate(saved):
            is_best = best is not None and line["path"] == best["path"]
            if not is_best and "best" in line:
                # Only the best has weights for sampling.
                sampler = line.pop("best").get("sampler")
                if sampler:
                    self.delete(sampler)
            if is_best or at >= len(saved) - self.keep:
                kept.append(line)
                continue
            for path in (line["path"], *line.get("beside", {}).values()):
                self.delete(path)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("".join(json.dumps(line) + "\n" for line in kept))
        temporary.replace(self.path)
