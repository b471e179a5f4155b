"""Measures the console's pages on a store with many runs during training, and the cost of open pages to training.

    TRAINYARD_BIN=target/release/trainyard python bench/console.py [--runs 1000] [--steps 10000] [--store FOLDER] [--write FILE]

Needs the packages of the browser tests of tests/sdk and Chromium. Nothing is asserted; the last lines print what was
found, and the goals. A page counts as painted when it shows its data, not only its frame: from the start of the
navigation, scripts included, to the first frame with the list of runs, or with the curves. The browser has no cache. Rounds of
training without and with three open pages take turns. Filling the store takes some minutes: `--store` keeps it for the next
time.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "sdk"))

import httpx  # noqa: E402
from tinker import types  # noqa: E402

from browser import chromium  # noqa: E402
from helpers import WAIT, client, datum, lora  # noqa: E402
from server import SMOL, Server, smol_path  # noqa: E402

ADAM = types.AdamParams(learning_rate=1e-4)
HOUR = 3_600_000


def fill(database: pathlib.Path, like: str, runs: int, steps: int) -> list[str]:
    """Copies a trained run with `steps` steps: its rows in the store, with other numbers in its metrics."""
    store = sqlite3.connect(database)
    store.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000; PRAGMA foreign_keys = OFF")
    store.row_factory = sqlite3.Row
    (template,) = store.execute("SELECT * FROM runs WHERE id = ?", [like]).fetchall()
    rows = store.execute(
        "SELECT kind, metrics, tenant FROM run_metrics WHERE run_id = ? ORDER BY step DESC, seq_id DESC LIMIT 2", [like]
    ).fetchall()
    texts = {row["kind"]: varied(row["metrics"]) for row in rows}
    now, ids = int(time.time() * 1000), []
    columns = ", ".join(template.keys())
    places = ", ".join("?" for _ in template.keys())
    for number in range(1, runs + 1):
        run = dict(template)
        run["id"] = f"{run['session_id']}:train:{number}"
        run["model_seq_id"] = number
        run["created_at"] = run["last_request_at"] = now - HOUR - number
        run["user_metadata"] = json.dumps({"sweep": f"s{number % 7}", "seed": str(number)})
        ids.append(run["id"])
        with store:
            store.execute(f"INSERT INTO runs ({columns}) VALUES ({places})", list(run.values()))
            for offset, kind in enumerate(("forward_backward", "optim_step")):
                store.execute(
                    """WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :steps)
                    INSERT INTO run_metrics (run_id, step, seq_id, tenant, kind, at, metrics)
                    SELECT :run, i, 2 * i + 1 + :offset, :tenant, :kind, :at + 400 * i + 200 * :offset,
                        replace(:text, '"@"', printf('%.7f', 200.0 / (1 + i / 300.0) + abs(random() % 100000) / 1e4))
                    FROM n""",
                    {"steps": steps, "run": run["id"], "offset": offset, "tenant": template["tenant"], "kind": kind,
                     "at": now - 24 * HOUR, "text": texts[kind]},
                )  # fmt: skip
        if number % 100 == 0:
            print(f"  {number} runs", flush=True)
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return ids


def varied(metrics: str) -> str:
    """Returns the metrics of a request with a mark in place of each number."""
    return json.dumps({name: "@" for name in json.loads(metrics)})


class Training(threading.Thread):
    """Repeats W1 of `trainyard-bench` through the API: a LoRA step of rank 32 on 8 sequences of 256 tokens."""

    def __init__(self, server, shape):
        super().__init__(daemon=True)
        self.server, self.shape, self.ends, self.stopped = server, shape, [], threading.Event()
        self.run_id, self.ready = None, threading.Event()

    def run(self):
        rng, (batch, length) = random.Random(1), self.shape
        with client(self.server) as service:
            run = lora(service, SMOL, rank=32)
            self.run_id = run.model_id
            data = [datum([rng.randrange(1000, 40000) for _ in range(length + 1)]) for _ in range(batch)]
            while not self.stopped.is_set():
                run.forward_backward(data, "cross_entropy")
                run.optim_step(ADAM).result(600)
                self.ends.append(time.monotonic())
                self.ready.set()

    def seconds(self, count: int) -> list[float]:
        """Times the next steps; the one that runs now is left out."""
        first = len(self.ends)
        while len(self.ends) < first + count + 1:
            time.sleep(0.02)
        return [b - a for a, b in zip(self.ends[first:], self.ends[first + 1 : first + count + 1])]


def paint(browser, url, where, name) -> tuple[float, float]:
    """Returns the milliseconds to the first paint, and to the page's data, in a browser without a cache."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(f"{url}/{where}")
    page.wait_for_function(
        "name => performance.getEntriesByName(`painted:${name}`).length > 0", arg=name, timeout=60_000
    )
    found = page.evaluate(
        """name => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
            performance.getEntriesByName(`painted:${name}`)[0].startTime]""",
        name,
    )
    context.close()
    return tuple(found)


def summary(values) -> dict:
    values = sorted(values)
    return {"median": round(statistics.median(values), 3), "least": round(values[0], 3), "most": round(values[-1], 3)}


def filled(server, folder, runs, steps) -> list[str]:
    """Returns the ids of the runs of a store, which is filled first unless it was before."""
    listed = folder / f"runs-{runs}-{steps}.json"
    if not listed.exists():
        server.start()
        with client(server) as service:
            run = lora(service, SMOL, rank=32)
            run.forward_backward([datum([5, 17, 250, 3, 44])], "cross_entropy")
            run.optim_step(ADAM).result(WAIT)
            like = run.model_id
        server.stop()
        print("filling the store", flush=True)
        listed.write_text(json.dumps(fill(folder / "data" / "trainyard.db", like, runs, steps)))
    return json.loads(listed.read_text())


def endpoint(server, path) -> float:
    """Returns the milliseconds of a request without a browser."""
    start = time.monotonic()
    httpx.get(f"{server.url}/{path}", timeout=60, headers={"x-api-key": "tml-local"}).raise_for_status()
    return 1000 * (time.monotonic() - start)


@contextlib.contextmanager
def three_pages(browser, server, run):
    """Returns the pages that change most: the overview, the runs, and the run that trains."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    pages = [context.new_page() for _ in range(3)]
    for page, where in zip(pages, ("#/overview", "#/runs", f"#/run/{run}"), strict=True):
        page.goto(f"{server.url}/{where}")
    # A hidden page would not follow changes.
    assert [page.evaluate("document.hidden") for page in pages] == [False] * 3
    yield
    context.close()


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--runs", type=int, default=1000)
    flags.add_argument("--steps", type=int, default=10_000)
    flags.add_argument("--store", type=pathlib.Path, help="a folder for the filled store; a temporary one when absent")
    flags.add_argument("--loads", type=int, default=9, help="how often each page is loaded")
    flags.add_argument("--rounds", type=int, default=4, help="rounds without and with open pages; 0 for none")
    flags.add_argument("--training-steps", type=int, default=3, help="steps per round")
    flags.add_argument("--batch", type=int, default=8)
    flags.add_argument("--length", type=int, default=256)
    flags.add_argument("--write", type=pathlib.Path, help="file for the results, as JSON")
    asked = flags.parse_args()
    results = {"runs": asked.runs, "steps": asked.steps, "load_before": os.getloadavg()}
    with contextlib.ExitStack() as stack:
        folder = asked.store or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainyard-console-")))
        folder.mkdir(parents=True, exist_ok=True)
        server = Server(folder, models={SMOL: smol_path()})
        stack.callback(server.close)
        ids = filled(server, folder, asked.runs, asked.steps)
        results["store_mib"] = (folder / "data" / "trainyard.db").stat().st_size >> 20
        server.start()
        training = Training(server, (asked.batch, asked.length))
        training.start()
        training.ready.wait()
        browser = stack.enter_context(chromium())
        for name, where in {"runs": lambda: "#/runs", "run": lambda: f"#/run/{random.choice(ids)}"}.items():
            found = [paint(browser, server.url, where(), name) for _ in range(asked.loads + 1)][1:]
            results[name] = {"frame_ms": summary([first for first, _ in found if first]),
                             "data_ms": summary([shown for _, shown in found])}  # fmt: skip
            print(name, results[name], flush=True)
        results["runs_endpoint_ms"] = summary([endpoint(server, "console/data/runs") for _ in range(10)])
        curves = [f"api/v1/training_runs/{run}/metrics?points=900" for run in random.sample(ids, min(10, len(ids)))]
        results["metrics_endpoint_ms"] = summary([endpoint(server, path) for path in curves])
        without, with_pages = [], []
        for number in range(asked.rounds):
            # The order alternates, so that a machine that slows down favours neither side.
            for is_open in (False, True) if number % 2 == 0 else (True, False):
                with three_pages(browser, server, training.run_id) if is_open else contextlib.nullcontext():
                    (with_pages if is_open else without).extend(training.seconds(asked.training_steps))
            print(f"round {number + 1} of {asked.rounds}", flush=True)
        if without:
            results["step_s"] = {"without": summary(without), "with_three_pages": summary(with_pages)}
            results["slowed_by"] = round(statistics.median(with_pages) / statistics.median(without), 4)
        training.stopped.set()
    results["load_after"] = os.getloadavg()
    print(json.dumps(results, indent=1))
    if asked.write:
        asked.write.write_text(json.dumps(results, indent=1) + "\n")
    for name, goal in (("runs", 300), ("run", 500)):
        data, frame = results[name]["data_ms"], results[name]["frame_ms"]["median"]
        print(f"{name}: data after {data['median']:.0f} ms [{data['least']:.0f}-{data['most']:.0f}], median of {asked.loads}; "
              f"first frame after {frame:.0f} ms; goal {goal} ms")  # fmt: skip
    if without:
        step = results["step_s"]
        print(f"w1: a step takes {step['without']['median']} s without pages, {step['with_three_pages']['median']} s with "
              f"three, medians of {len(without)} and {len(with_pages)}: ratio {results['slowed_by']}; goal 1.02")  # fmt: skip


if __name__ == "__main__":
    main()
