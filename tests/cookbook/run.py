#!/usr/bin/env python3
"""Runs programs of `tinker-cookbook`, unpatched, against a server on this machine that serves the test model.

  run.py --model FILE --runs FOLDER [--sources FOLDER] [--only sl_loop,dpo]

Starts the server of TRAINYARD_BIN and a hub with data sets that it makes. With the sources of the cookbook, runs
those of its own tests too that need only a server. Prints a table, and ends with 1 if a program failed or its metrics are
wrong. `make cookbook` runs it.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sdk"))

import stand_ins
from data_hub import hub
from programs import BASE, PROGRAMS, TESTS, THINKING, Program, Unmet
from server import Server

LIMIT_SECONDS = 1800
"""Seconds for one program."""
START_SECONDS = 300
"""Seconds for the server to start: it loads two models on a machine that may be busy."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="the test model")
    parser.add_argument(
        "--runs", type=pathlib.Path, required=True, help="folder for runs; runs of the same names are replaced"
    )
    parser.add_argument("--sources", type=pathlib.Path, help="the cookbook's sources")
    parser.add_argument("--only", help="some of " + ", ".join(one.name for one in PROGRAMS + TESTS))
    options = parser.parse_args()
    chosen = choose(options.only, PROGRAMS + TESTS if options.sources else PROGRAMS)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(place_at(options))
        rows = [run(program, place) for program in chosen]
    print("\n| program | result | seconds | seen |\n|---|---|---|---|")
    for program, (held, seconds, seen) in zip(chosen, rows, strict=True):
        print(f"| `{program.name}` | {'ok' if held else '**failed**'} | {seconds:.0f} | {seen} |")
    return 0 if all(held for held, *_ in rows) else 1


def choose(names: str | None, programs: tuple[Program, ...]) -> list[Program]:
    known = {one.name: one for one in programs}
    wanted = names.split(",") if names else list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"no program {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in wanted]


@dataclass(frozen=True)
class Place:
    """Folders and addresses with which programs run."""

    runs: pathlib.Path
    sources: pathlib.Path | None
    labelled: pathlib.Path
    variables: dict[str, str]


@contextlib.contextmanager
def place_at(options: argparse.Namespace) -> Iterator[Place]:
    """Yields a server and a hub that run until the end of the block, and files that programs read."""
    runs = options.runs.resolve()
    runs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(runs / "data", ignore_errors=True)
    # Two files make two copies in memory, whatever number of names they have.
    thinking = stand_ins.thinking_model(options.model, runs / "thinking.gguf")
    models = {BASE: options.model.resolve()} | dict.fromkeys(THINKING, thinking)
    server = Server(runs, models, dtype="bf16", flags=["--hf-upstream", "none"])
    with contextlib.ExitStack() as stack:
        stack.callback(server.close)
        server.start(START_SECONDS)
        stack.callback(server.stop)
        datasets = stack.enter_context(hub(stand_ins.repositories(), server.url))
        variables = environment(server.url, datasets.url, runs)
        sources = options.sources.resolve() if options.sources else None
        yield Place(runs, sources, stand_ins.prompt_distillation(runs), variables)


def environment(server: str, datasets: str, runs: pathlib.Path) -> dict[str, str]:
    """Returns the settings of a user of the cookbook, with a private cache."""
    return os.environ | {
        "TINKER_BASE_URL": server,
        "TINKER_API_KEY": "tml-local-cookbook",
        "TINKER_TELEMETRY": "0",
        "HF_ENDPOINT": datasets,
        "HF_HOME": str(runs / "hf"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TINKER_COOKBOOK_RUNS_DIR": str(runs / "default"),
        "PATH": f"{tools(runs)}:{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
    }


def tools(runs: pathlib.Path) -> pathlib.Path:
    """Returns a folder with a `uv` that starts programs of the cookbook's tests in the present environment."""
    folder = runs / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / "uv"
    script.write_text(f'#!/bin/sh\n# uv run python ...\nshift 2\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return folder


def run(program: Program, place: Place) -> tuple[bool, float, str]:
    """Returns whether the program passed, its seconds, and its metrics."""
    folder, log = place.runs / program.name, place.runs / f"{program.name}.log"
    shutil.rmtree(folder, ignore_errors=True)
    variables = place.variables
    if program.name == "test_download":
        variables = variables | {"TINKER_TEST_CHECKPOINT_PATH": checkpoint(variables)}
    arguments = [one.format(folder=folder, labelled=place.labelled) for one in program.arguments]
    began = time.monotonic()
    with log.open("w") as output:
        child = subprocess.Popen(
            [sys.executable, *arguments], cwd=place.sources if program.in_sources else place.runs,
            env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            code = child.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            code = None
    seconds = time.monotonic() - began
    try:
        held, seen = True, judge(program, folder, log, code)
    except Unmet as error:
        held, seen = False, f"{error}; the log is {log}"
    print(f"{'PASS' if held else 'FAIL'}  {program.name}: {seconds:.0f} s, {seen}", flush=True)
    return held, seconds, seen


def judge(program: Program, folder: pathlib.Path, log: pathlib.Path, code: int | None) -> str:
    if code != 0:
        raise Unmet("took too long" if code is None else f"ended with {code}")
    if missing := [name for name in program.files if not (folder / name).exists()]:
        raise Unmet(f"did not write {', '.join(missing)}")
    if program.check:
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        return program.check([json.loads(line) for line in lines])
    return program.printed(log.read_text()) if program.printed else "ended without an error"


def checkpoint(variables: dict[str, str]) -> str:
    """Saves a training checkpoint of a fresh run: the cookbook downloads it encrypted for itself."""
    code = (
        "import tinker\n"
        f"run = tinker.ServiceClient().create_lora_training_client(base_model={BASE!r}, rank=4).result()\n"
        "print(run.save_state('download').result().path)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    return made.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
