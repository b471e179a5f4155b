"""Conditions that must hold after a soak, and the figures for the documentation."""

import statistics
from collections import Counter

MEMORY = 0.10
"""Allowed growth, between the second and the last fifth, of the memory that a process holds and does not count in its plan."""

ROWS = 1.25
"""Allowed growth of a table between the same fifths, beyond that of the work that clients did in them."""

LASTING = {"audit_log", "stored_checkpoints", "usage", "usage_by_hour", "usage_rows"}
"""Tables that are kept for weeks, or until an operator prunes them: `scheduler/src/tests/plans/growth.rs` bounds a year of them."""

STEADY_MINUTES = 15
"""Length of a soak from which growth is judged: in a shorter one, caches fill longer and no retention ends."""

SECOND, LAST = (0.2, 0.4), (0.8, 1.0)

GRACE = 60.0
"""Seconds after a full disk during which a save may still report it."""

DOCUMENTED = [
    # Text of the error, the disturbance that explains it, and where the documentation names it.
    ("storage", "full disk", "docs/operators/storage.md"),
    ("disk", "full disk", "docs/operators/storage.md"),
    ("space", "full disk", "docs/operators/storage.md"),
]

ABANDONED = {200, 408, 429, 503}
"""Statuses for a client without retries; its connection may also be lost with the server."""


class Report:
    def __init__(self, arguments, lines, watch, disturbances, vandal, unfinished, code, panics):
        self.arguments, self.watch, self.disturbances, self.vandal = arguments, watch, disturbances, vandal
        self.executions = [line for line in lines if line["kind"] == "execution"]
        self.abandoned = [line for line in lines if line["kind"] == "abandoned"]
        self.failures: list[str] = []
        self.named: Counter = Counter()
        self._check(unfinished, code, panics)

    def _check(self, unfinished, code, panics):
        fail = self.failures.append
        for line in self.executions:
            if not line["same"]:
                fail(f"{line['key']} got another answer than on an undisturbed server: {line['wrong']}")
            if line["error"] and not self._is_documented(line):
                fail(f"{line['key']} got an error that the documentation does not name: {line['error']}")
        tenants = {line["key"] for line in self.executions}
        idle = tenants - {line["key"] for line in self.executions if line["complete"]}
        if idle or not self.executions:
            fail(f"tenants without a complete execution: {sorted(idle)}")
        for line in self.abandoned:
            strange = [s for s in line["statuses"] if isinstance(s, int) and s not in ABANDONED]
            if strange:
                fail(f"{line['key']} got {strange}")
        self.failures += [f"bad body: {text}" for text in self.vandal.unexpected]
        if unfinished:
            fail(f"requests that never end: {unfinished}")
        if code != 0:
            fail(f"ended with exit code {code}")
        self.failures += [f"{name} panicked" for name in panics]
        if self.arguments.minutes < STEADY_MINUTES:
            return
        for name, before, after in self.memory():
            if after / before - 1 > MEMORY:
                fail(f"memory of {name}: {before / 2**20:.0f} MiB, then {after / 2**20:.0f}")
        early, late = self.work(*SECOND), self.work(*LAST)
        allowed = ROWS * max(1.0, late / max(1, early))
        for table, before, after in self.rows():
            if table not in LASTING and after > allowed * before + 20:
                fail(f"table {table} grows: {before} rows, then {after}; {early} executions, then {late}")

    def work(self, start: float, end: float) -> int:
        """Returns the number of executions that ended in a part of the time."""
        share = lambda line: (line["ended"] - self.watch.began) / self.watch.seconds  # noqa: E731
        return sum(start <= share(line) <= end for line in self.executions)

    def _is_documented(self, line) -> bool:
        text = f"{line['error']['text']}".lower()
        for part, disturbance, page in DOCUMENTED:
            if part in text and self.disturbances.during(disturbance, line["began"], line["ended"], GRACE):
                self.named[f"{disturbance} ({page})"] += 1
                return True
        return False

    def memory(self):
        """Returns the processes that were never killed: name, bytes held early and late beyond what they count."""
        cluster = self.watch.cluster
        for process in (cluster.apis[0], cluster.workers[0]):
            yield process.name, self.watch.memory(process.name, *SECOND), self.watch.memory(process.name, *LAST)

    def rows(self):
        for table in self.watch.tables():
            yield table, self.watch.rows(table, *SECOND), self.watch.rows(table, *LAST)

    def text(self) -> str:
        a = self.arguments
        complete = [line for line in self.executions if line["complete"]]
        times = sorted(line["ended"] - line["began"] for line in complete)
        answers = sum(line["answers"] for line in self.executions)
        done = ", ".join(f"{count} × {name}" for name, count in sorted(self.disturbances.counts.items()))
        bodies = ", ".join(f"{status}: {count}" for status, count in sorted(self.vandal.answers.items()))
        rows = ", ".join(f"{table} {before} → {after}" for table, before, after in self.rows() if before or after)
        held = ", ".join(f"{n} {b / 2**20:.0f} → {t / 2**20:.0f} MiB" for n, b, t in self.memory())
        storage = [max((p.storage for p in self.watch.window(*w)), default=0) / 2**20 for w in (SECOND, LAST)]
        lines = [
            f"| {a.tenants} tenants, {a.minutes:g} minutes, seed {a.seed} | |",
            "|---|---|",
            f"| done to the service | {done} |",
            f"| executions of programs | {len(complete)} complete, {len(self.executions) - len(complete)} with an error; "
            f"{answers} answers compared with those of an undisturbed server |",
            f"| answers that differ | {sum(not line['same'] for line in self.executions)} |",
            f"| seconds of an execution | median {statistics.median(times):.1f}, longest {times[-1]:.1f} |"
            if times else "| seconds of an execution | – |",
            f"| errors that the documentation names | {dict(self.named) or 'none'} |",
            f"| abandoned sessions | {len(self.abandoned)}, with {sum(x['accepted'] for x in self.abandoned)} requests |",
            f"| bad bodies, by answer | {bodies} |",
            f"| memory held beyond what workers count, second and last fifth | {held} |",
            f"| most rows, second and last fifth | {rows} |",
            f"| most in the storage, second and last fifth | {storage[0]:.1f} → {storage[1]:.1f} MiB |",
            f"| result | {'passed' if not self.failures else 'FAILED'} |",
        ]  # fmt: skip
        shown = [f"- {failure}" for failure in self.failures[:40]]
        if len(self.failures) > len(shown):
            shown.append(f"- and {len(self.failures) - len(shown)} more")
        return "\n".join(lines + [""] * bool(shown) + shown)
