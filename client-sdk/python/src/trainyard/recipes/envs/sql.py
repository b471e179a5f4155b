"""Questions about a table that a SQL query answers; the model may try queries before its answer."""

from __future__ import annotations

import random
import sqlite3
import time
from typing import Any

from ..core.chat import Message, tool_calls
from ..core.rewards import code_of
from .base import Environment, Outcome, tool

HELD_OUT = 0x5EED
NAMES = ["Ada", "Ben", "Cleo", "Dov", "Eva", "Finn", "Gita", "Hugo", "Ines", "Jon", "Kira", "Lev"]
TEAMS = ["sales", "research", "support"]
SCHEMA = "CREATE TABLE staff (name TEXT, team TEXT, salary INTEGER, hired INTEGER)"
# A question, and a query that answers it.
KINDS = [
    ("How many people are in {team}?", "SELECT COUNT(*) FROM staff WHERE team = '{team}'"),
    ("What is the highest salary in {team}?", "SELECT MAX(salary) FROM staff WHERE team = '{team}'"),
    ("Who was hired after {year}? List the names.", "SELECT name FROM staff WHERE hired > {year}"),
    ("What is the sum of all salaries?", "SELECT SUM(salary) FROM staff"),
    ("Which teams have more than {count} people?", "SELECT team FROM staff GROUP BY team HAVING COUNT(*) > {count}"),
    ("Who earns less than {salary}? List the names.", "SELECT name FROM staff WHERE salary < {salary}"),
]
RUN = tool("run_sql", "Runs a query and shows its rows.", query="a SELECT statement of SQLite")
MOST_ROWS, SECONDS = 100, 2.0


class Sql:
    """Allows `turns` answers for a task; an answer without a tool call is the final one."""

    def __init__(self, held_out: bool = False, tasks: int = 256, turns: int = 4) -> None:
        self.held_out, self.tasks, self.turns = held_out, tasks, turns

    def __len__(self) -> int:
        return self.tasks

    def make(self, index: int) -> Environment:
        random_ = random.Random(f"{HELD_OUT if self.held_out else 0}/{index}")
        rows = [
            (name, random_.choice(TEAMS), random_.randint(20, 90) * 100, random_.randint(2005, 2024))
            for name in random_.sample(NAMES, random_.randint(5, len(NAMES)))
        ]
        question, query = random_.choice(KINDS)
        values = {
            "team": random_.choice(TEAMS), "year": random_.randint(2008, 2020), "count": random_.randint(1, 3),
            "salary": random_.randint(30, 80) * 100,
        }  # fmt: skip
        return Episode(rows, question.format(**values), query.format(**values), self.turns)


class Episode(Environment):
    tools = [RUN]

    def __init__(self, rows: list[tuple[str, str, int, int]], question: str, query: str, turns: int) -> None:
        self.question, self.left = question, turns
        # Episodes move between threads, one at a time.
        self.database = sqlite3.connect(":memory:", check_same_thread=False)
        self.database.execute(SCHEMA)
        self.database.executemany("INSERT INTO staff VALUES (?, ?, ?, ?)", rows)
        self.database.commit()
        self.database.set_authorizer(_reads_alone)
        self.wanted = sorted(map(repr, self.query(query)))

    def reset(self) -> list[Message]:
        system = (
            f"You answer questions about a SQLite database with the schema\n{SCHEMA}\n"
            "You may try queries with the tool run_sql. Answer with one query, between ```sql and ```."
        )
        return [{"role": "system", "content": system}, {"role": "user", "content": self.question}]

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """Returns the rows of a read-only query that ends in time."""
        deadline = time.monotonic() + SECONDS
        self.database.set_progress_handler(lambda: int(time.monotonic() > deadline), 1000)
        return self.database.execute(text).fetchmany(MOST_ROWS)

    def step(self, reply: str) -> Outcome:
        self.left -= 1
        calls = [call for call in tool_calls(reply) if call["name"] == "run_sql"]
        if calls and self.left > 0:
            return Outcome(done=False, messages=[{"role": "tool", "content": self._shown(call)} for call in calls])
        try:
            rows = self.query(code_of(reply).strip())
        except (sqlite3.Error, sqlite3.Warning):
            return Outcome(0.0, metrics={"correct": 0.0, "runs": 0.0})
        correct = sorted(map(repr, rows)) == self.wanted
        # A query that runs is nearer than one that does not.
        return Outcome(1.0 if correct else 0.1, metrics={"correct": float(correct), "runs": 1.0})

    def _shown(self, call: dict[str, Any]) -> str:
        try:
            return "\n".join(map(str, self.query(str(call["arguments"].get("query", ""))))) or "no rows"
        except (sqlite3.Error, sqlite3.Warning) as error:
            return f"error: {error}"

    def close(self) -> None:
        self.database.close()


def _reads_alone(action: int, *_: object) -> int:
    """Queries may select and call functions; they may not write, attach files or change settings."""
    allowed = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY
