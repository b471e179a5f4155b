"""The part of the soak in which nothing fails, and one tenant attacks another.

The neighbour works alone and beside each attack in turn, so that changes of the machine's speed meet both. Its answers
must be those of an undisturbed server, its latencies must stay within a factor, each act of the attacks must have one of its
statuses, and the server must stay within its memory plan.
"""

import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict

import httpx

import vision_model
from attacks import HOSTILE, NAMES, READER
from neighbour import KINDS, TURNS, Neighbour
from server import SMOL, Server, smol_path

HERE = pathlib.Path(__file__).resolve().parent
NEIGHBOUR = "tml-neighbour-0123456789-0123456789"
CONFIG = f"""
[[tenants]]
name = "hostile"
keys = [{{ key = "{HOSTILE}" }}, {{ key = "{READER}", role = "read-only" }}]

[[tenants]]
name = "neighbour"
keys = [{{ key = "{NEIGHBOUR}" }}]
"""

LIMIT = 4.0
"""How many times longer than alone the neighbour's work may take beside an attack, as medians."""

TOGETHER = "all at once"

LIMITS = {
    # The clients of all attacks take the processor as well. The answers, statuses and memory are judged.
    (TOGETHER, "sample"): None,
    (TOGETHER, "optim_step"): None,
    # The step comes while the engine computes a pass of the attack, and waits for its end, as it does beside any tenant that
    # trains. A pass of a few rows takes up to six times as long as the step on processors with AVX2 alone.
    ("custom_losses", "optim_step"): 8.0,
}
"""Other limits, by attack and kind; those that are `None` are only reported."""

ALONE = 1 / 3
"""Share of the time in which the neighbour is alone."""

LEAST = 8
"""Turns of the neighbour in each stretch at least, however long they take."""

READY_SECONDS = 60
"""Time until an attack by itself is under way. What the neighbour does meanwhile does not count."""

END_SECONDS = 60
"""Time in which the work of an attack that has ended must be gone."""

MIB = 1 << 20
ENGINE, BODIES, IMAGES, ANSWERS = 2048, 128, 128, 512
"""MiB of the server's budgets: the engine's memory, bodies, images being decoded (and as much for decoded ones), and
answers, whose budget is fixed."""

REST = 384
"""MiB for what no budget counts: code, threads, connections, caches, and what allocators keep."""

PLAN = ENGINE + BODIES + 2 * IMAGES + ANSWERS + REST


class Attacked:
    """Measures and their judgement."""

    def __init__(self, seconds: float, names=NAMES):
        self.seconds, self.names = seconds, names
        self.alone: list[dict[str, list[float]]] = []
        """Seconds of each stretch alone; there is one before each attack, and one after the last."""
        self.beside: dict[str, dict[str, list[float]]] = {}
        self.statuses: dict[str, Counter] = defaultdict(Counter)
        self.turns = self.different = 0
        self.peak = 0
        self.failures: list[str] = []

    def run(self, folder: pathlib.Path, database: str):
        models = {SMOL: smol_path(), vision_model.NAME: vision_model.write(folder / "vision")}
        self.reference = undisturbed(folder, models)
        flags = ["--memory-mib", ENGINE, "--body-memory-mib", BODIES, "--image-memory-mib", IMAGES]
        attacked = folder / "attacked"
        attacked.mkdir()
        server = Server(attacked, models, "bf16", config=CONFIG, database=database, flags=flags)
        with contextlib.closing(server):
            server.start()
            self._stretches(server)
            self.peak = peak_bytes(server.server)
            self._judge(server)

    def _stretches(self, server):
        mine = Neighbour(server, NEIGHBOUR)
        stretches = [(name,) for name in self.names]
        if len(self.names) > 1:
            stretches.append(self.names)
        length = self.seconds / len(stretches)
        self._work(mine, 0, defaultdict(list), TURNS)
        for names in stretches:
            title = names[0] if len(names) == 1 else TOGETHER
            self._alone(mine, length)
            seconds = self.beside[title] = defaultdict(list)
            with attacks(server, names, self._told(title)) as ready:
                deadline = time.monotonic() + READY_SECONDS
                while not ready():
                    if time.monotonic() > deadline:
                        if title != TOGETHER:
                            self.failures.append(f"{title}: not under way after {READY_SECONDS} s")
                        break
                    self._work(mine, 0, defaultdict(list), 1)
                self._work(mine, length * (1 - ALONE), seconds)
            self._wait_for_the_end(server, title)
            print(f"{title}: {self._line(title)}", file=sys.stderr)
        self._alone(mine, length)
        mine.finish()

    def _alone(self, mine: Neighbour, length: float):
        self.alone.append(defaultdict(list))
        self._work(mine, length * ALONE, self.alone[-1])

    def _work(self, mine: Neighbour, seconds: float, into: dict[str, list[float]], least=LEAST):
        ends, turns = time.monotonic() + seconds, 0
        while turns < least or time.monotonic() < ends:
            took, answers = mine.take_turn()
            for kind in KINDS:
                into[kind].append(took[kind])
            turns += 1
            self.turns += 1
            if answers != self.reference[answers[0]]:
                self.different += 1
                self.failures.append(f"the neighbour got {answers}, and {self.reference[answers[0]]} when undisturbed")

    def _told(self, title: str):
        def told(line: dict):
            self.statuses[title][str(line["status"])[:3]] += 1
            if not line["right"]:
                self.failures.append(f"{title}: {line['act']}: {line.get('error') or line['status']}")

        return told

    def _wait_for_the_end(self, server, title: str):
        deadline = time.monotonic() + END_SECONDS
        while busy := unfinished(server):
            if time.monotonic() > deadline:
                self.failures.append(f"{title}: {busy} requests {END_SECONDS} s after their session has ended")
                return
            time.sleep(0.2)

    def _judge(self, server):
        for title in self.beside:
            for kind in KINDS:
                limit = LIMITS.get((title, kind), LIMIT)
                if limit is not None and (ratio := self._ratio(title, kind)) > limit:
                    self.failures.append(f"{title}: a neighbour's {kind} takes {ratio:.1f} times as long as alone")
            if not self.statuses[title]:
                self.failures.append(f"{title}: nothing was done")
        if self.peak > PLAN * MIB:
            self.failures.append(f"the server took {self.peak // MIB} MiB, and its plan is {PLAN}")
        held, budget = engine_bytes(server)
        if held > budget:
            self.failures.append(f"the engine holds {held // MIB} MiB, and its budget is {budget // MIB}")
        if (code := server.stop()) != 0:
            self.failures.append(f"the server ended with exit code {code}")
        if "panicked at" in server.text():
            self.failures.append("the server panicked")

    def _ratio(self, title: str, kind: str) -> float:
        """Beside an attack, compared with the stretches alone before and after it: the machine has other work, too."""
        at = list(self.beside).index(title)
        alone = [seconds for stretch in self.alone[at : at + 2] for seconds in stretch[kind]]
        return statistics.median(self.beside[title][kind]) / statistics.median(alone)

    def _line(self, title: str) -> str:
        parts = []
        for kind in KINDS:
            milliseconds = statistics.median(self.beside[title][kind]) * 1000
            parts.append(f"{kind} {milliseconds:.0f} ms ({self._ratio(title, kind):.1f} times)")
        counts = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses[title].items()))
        return f"{', '.join(parts)}; {counts}"

    def text(self) -> str:
        medians = {kind: [1000 * statistics.median(stretch[kind]) for stretch in self.alone] for kind in KINDS}
        alone = ", ".join(f"{kind} {min(each):.0f} to {max(each):.0f} ms" for kind, each in medians.items())
        lines = [
            f"| attacks, {self.seconds / 60:g} minutes | neighbour's medians; statuses of the attack |",
            "|---|---|",
            f"| alone | {alone} |",
            *(f"| {title.replace('_', ' ')} | {self._line(title)} |" for title in self.beside),
            f"| neighbour's answers | {self.turns} turns, {self.different} different from an undisturbed server's |",
            f"| most memory | {self.peak // MIB} MiB; the plan is {PLAN} |",
            f"| result | {'passed' if not self.failures else 'FAILED'} |",
        ]
        counted = Counter(self.failures)
        shown = [f"- {failure}" + (f" ({count} times)" if count > 1 else "") for failure, count in counted.items()]
        return "\n".join(lines + [""] * bool(shown) + shown[:40])


def undisturbed(folder: pathlib.Path, models: dict) -> list[tuple]:
    """The neighbour's answers in the turns of a session, on a server of its own."""
    calm = folder / "calm-neighbour"
    calm.mkdir()
    server = Server(calm, models, "bf16", config=CONFIG)
    with contextlib.closing(server):
        mine = Neighbour(server.start(), NEIGHBOUR)
        answers = [mine.take_turn()[1] for _ in range(TURNS)]
        mine.finish()
        if server.stop() != 0:
            raise RuntimeError(server.tail())
    return answers


@contextlib.contextmanager
def attacks(server, names: tuple[str, ...], told):
    """Attacks from a process of its own, so that its work does not delay the neighbour's client."""
    log = server.folder / "attacks.log"
    with open(log, "ab") as errors:
        command = [sys.executable, HERE / "attacks.py", server.url, *names]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    lines: list[dict] = []
    reader = threading.Thread(target=lambda: lines.extend(map(json.loads, child.stdout)))
    reader.start()
    try:
        yield lambda: child.poll() is not None or {line["ready"] for line in list(lines) if "ready" in line} >= {*names}
    finally:
        child.stdin.close()
        try:
            code = child.wait(120)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        reader.join()
    for line in lines:
        if "ready" not in line:
            told(line)
    if code != 0:
        raise RuntimeError(f"the attacks ended with {code}: {log.read_text()[-2000:]}")


def unfinished(server) -> int:
    """Requests of any kind that are queued or running."""
    text = httpx.get(f"{server.url}/metrics", timeout=30).text
    return sum(int(count) for count in re.findall(r"^trainyard_(?:queued|running)_requests\{[^}]*\} (\d+)$", text, re.M))


def engine_bytes(server) -> tuple[int, int]:
    """What the engine holds, and its budget."""
    text = httpx.get(f"{server.url}/metrics", timeout=30).text
    held = re.findall(r"^trainyard_memory_bytes\{[^}]*\} (\d+)$", text, re.M)
    (budget,) = re.findall(r"^trainyard_memory_budget_bytes (\d+)$", text, re.M)
    return sum(map(int, held)), int(budget)


def peak_bytes(process) -> int:
    """The most memory that a process has had."""
    status = pathlib.Path(f"/proc/{process.child.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
