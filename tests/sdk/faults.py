"""Faults at random moments that a seed decides."""

import dataclasses
import queue
import random
import threading
import time
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Victim:
    name: str
    kill: Callable[[], object]
    start: Callable[[], object]


class Killer:
    """Kills and restarts processes on its own thread. Every process is killed in turn; order and moments are random."""

    def __init__(self, victims: list[Victim], seed: int):
        self.victims = victims
        self.random = random.Random(seed)
        self.killed: list[str] = []
        self._turns: list[Victim] = []
        self._orders: queue.Queue = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="killer")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._orders.put(None)
        self._thread.join()

    def strike(self, within: float):
        """Schedules one kill within so many seconds, and returns at once. Kills happen one after the other."""
        self._orders.join()
        self._orders.put(within)

    def _work(self):
        while (within := self._orders.get()) is not None:
            try:
                self._kill(self.random.uniform(0, within))
                # Recovery is disturbed as well.
                if self.random.random() < 0.25:
                    self._kill(self.random.uniform(0, 0.5))
            finally:
                self._orders.task_done()

    def _kill(self, after: float):
        if not self._turns:
            self._turns = self.random.sample(self.victims, len(self.victims))
        victim = self._turns.pop()
        time.sleep(after)
        victim.kill()
        self.killed.append(victim.name)
        time.sleep(self.random.uniform(0, 0.2))
        victim.start()
