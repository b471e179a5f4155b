"""Tracks the service's resources over time: memory of its processes, rows of its tables, bytes of its storage."""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import time

import postgres as pg
from background import Background

PERIOD = 10.0

TABLES = """SELECT table_name, (xpath('/row/c/text()', query_to_xml(
    format('SELECT count(*) AS c FROM %I.%I', table_schema, table_name), false, true, '')))[1]::text
  FROM information_schema.tables
  WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> '_sqlx_migrations'"""


@dataclasses.dataclass
class Point:
    at: float
    """Fraction of the soak that has passed, from 0 to 1."""
    memory: dict[str, int]
    """Resident bytes by process."""
    counted: dict[str, int] | None
    """Bytes of them that a worker counts in its plan, by process: weights, runs, snapshots, caches. Unknown while the
    database is down."""
    tables: dict[str, int] | None
    """Numbers of rows by table; unknown while the database is down."""
    storage: int


class Watch(Background):
    """Measures a cluster every ten seconds, and writes the points to a file as well."""

    def __init__(self, cluster, database_url: str, seconds: float, file: pathlib.Path):
        self.cluster, self.database_url, self.seconds, self.file = cluster, database_url, seconds, file
        self.points: list[Point] = []
        self.began = time.time()
        super().__init__("watch")

    def _work(self):
        began = time.monotonic()
        while not self._ended.wait(PERIOD):
            at = (time.monotonic() - began) / self.seconds
            resources = self._memory(), self._counted(), self._tables(), stored_bytes(self.cluster.storage)
            self.points.append(Point(at, *resources))
            with open(self.file, "a") as points:
                points.write(json.dumps(dataclasses.asdict(self.points[-1])) + "\n")

    def _memory(self) -> dict[str, int]:
        found = {}
        for process in self.cluster.processes:
            try:
                found[process.name] = process.resident_bytes()
            except (OSError, ValueError):
                pass  # Between a kill and the next start.
        return found

    def _counted(self) -> dict[str, int] | None:
        folders = {process.name: self.cluster.folder / process.name / "worker-id" for process in self.cluster.workers}
        try:
            engines = dict(pg.query(self.database_url, "SELECT id, engine FROM workers", limit=20))
        except (RuntimeError, subprocess.TimeoutExpired):
            return None
        engine = {name: engines.get(file.read_text().strip()) for name, file in folders.items() if file.exists()}
        return {name: sum(dict(json.loads(text)["memory"]).values()) for name, text in engine.items() if text}

    def _tables(self) -> dict[str, int] | None:
        try:
            return {name: int(count) for name, count in pg.query(self.database_url, TABLES, limit=20)}
        except (RuntimeError, subprocess.TimeoutExpired):
            return None

    def window(self, start: float, end: float) -> list[Point]:
        return [point for point in self.points if start <= point.at <= end]

    def memory(self, process: str, start: float, end: float) -> float:
        """Returns the bytes that a process holds beyond those that it counts: these have a bound of their own, and follow
        the number of runs. 0 if there was no measurement in that time.

        The lower quartile, because half of the time is within a pass, a load or a save, whose working memory follows the
        work that the other processes' deaths leave to this one. What leaks is there at all times.
        """
        points = [point for point in self.window(start, end) if process in point.memory and point.counted is not None]
        beyond = [point.memory[process] - point.counted.get(process, 0) for point in points]
        return statistics.quantiles(beyond, n=4)[0] if len(beyond) > 1 else 0.0

    def rows(self, table: str, start: float, end: float) -> int:
        """Returns the largest number of rows."""
        return max((p.tables[table] for p in self.window(start, end) if p.tables), default=0)

    def tables(self) -> list[str]:
        return sorted({table for point in self.points for table in point.tables or {}})


def stored_bytes(folder: pathlib.Path) -> int:
    """Returns the bytes of a folder. Files and folders deleted in the meantime do not count: `os.walk` skips them."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                pass
    return total
