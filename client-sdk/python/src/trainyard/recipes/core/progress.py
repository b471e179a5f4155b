"""A progress bar on a terminal, and lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

WIDTH = 24


class Progress:
    """Shows the step, the speed and a few metrics on standard error."""

    def __init__(self, title: str, total: int, start: int = 0) -> None:
        self.title, self.total, self.first = title, total, start
        self.began = time.monotonic()
        self.live = sys.stderr.isatty()

    def show(self, done: int, metrics: Mapping[str, float]) -> None:
        """Shows the progress after `done` steps."""
        seconds = (time.monotonic() - self.began) / max(done - self.first, 1)
        filled = WIDTH * done // max(self.total, 1)
        bar = "#" * filled + "." * (WIDTH - filled)
        values = "  ".join(f"{key} {value:.4g}" for key, value in metrics.items())
        text = f"{self.title} [{bar}] {done}/{self.total}  {seconds:.2f} s/step  {values}"
        print(f"\r\x1b[K{text}" if self.live else text, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.live:
            print(file=sys.stderr)
