"""Disturbances of the service during the soak, at times that a seed determines."""

import contextlib
import os
import pathlib
import random
import time
from collections import Counter

from background import Background

PAUSE = (3.0, 9.0)
LASTS = (0.5, 9.0)
"""Seconds of a pause and of a disturbance; leases last five."""


class Disturbances(Background):
    """Disturbs the service repeatedly, on its own thread.

    One process of each role is never killed, so that its memory can be tracked; it gets all other disturbances.
    """

    def __init__(self, cluster, database, disk: pathlib.Path | None, seed: int):
        self.cluster, self.database, self.disk = cluster, database, disk
        self.chance = random.Random(seed)
        self.counts: Counter = Counter()
        self.log: list[tuple[float, float, str]] = []
        super().__init__("disturbances")

    def during(self, kind: str, began: float, ended: float, grace: float) -> bool:
        """Whether one of this kind overlaps a time, or ended less than `grace` seconds before it."""
        return any(name.startswith(kind) and a <= ended and began <= b + grace for a, b, name in self.log)

    def _work(self):
        kinds = [self._kill, self._kill_database, self._freeze, self._freeze_database, self._cut, self._lose]
        weights = [6, 1, 4, 1, 3, 3]
        if self.disk:
            kinds.append(self._fill)
            weights.append(2)
        while not self._ended.wait(self.chance.uniform(*PAUSE)):
            (kind,) = self.chance.choices(kinds, weights)
            began = time.time()
            name = kind()
            self.counts[name.partition(" ")[0]] += 1
            self.log.append((began, time.time(), name))

    def _last(self) -> float:
        return self.chance.uniform(*LASTS)

    def _kill(self) -> str:
        victim = self.chance.choice([*self.cluster.apis[1:], *self.cluster.workers[1:]])
        victim.kill()
        time.sleep(self.chance.uniform(0, 2))
        victim.start()
        return f"SIGKILL {victim.name}"

    def _kill_database(self) -> str:
        self.database.kill()
        time.sleep(self.chance.uniform(0, 2))
        self.database.start()
        return "SIGKILL postgres"

    def _freeze(self) -> str:
        victim = self.chance.choice(self.cluster.processes)
        with contextlib.suppress(ProcessLookupError):
            victim.freeze()
        time.sleep(self._last())
        with contextlib.suppress(ProcessLookupError):
            victim.thaw()
        return f"SIGSTOP {victim.name}"

    def _freeze_database(self) -> str:
        self.database.freeze()
        time.sleep(self._last())
        self.database.thaw()
        return "SIGSTOP postgres"

    def _cut(self) -> str:
        number = self.chance.randrange(len(self.cluster.networks))
        self.cluster.networks[number].cut()
        time.sleep(self._last())
        self.cluster.networks[number].heal()
        return f"cut worker-{number} from postgres"

    def _lose(self) -> str:
        """Breaks all present connections: they never pass anything again."""
        named = {f"worker-{i} to postgres": network for i, network in enumerate(self.cluster.networks)}
        name = self.chance.choice(sorted(named))
        named[name].lose()
        return f"lost connections of {name}"

    def _fill(self) -> str:
        """Fills the storage's disk to the last byte."""
        ballast = self.disk / "ballast"
        with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while os.write(file.fileno(), bytes(size)):
                        pass
        time.sleep(self._last())
        ballast.unlink()
        return "full disk"
