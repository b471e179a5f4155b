#!/usr/bin/env python3
"""Runs the programs of `tinker-cookbook`, unpatched, against servers on this machine.

  run.py --model FILE --runs FOLDER [--sources FOLDER] [--only sl_loop,dpo] [--tiny]

One server serves the test model, another one tiny random models of the families that programs name. Starts those of
TRAINYARD_BIN that are needed, and a hub with data sets that it makes. With the sources of the cookbook, runs those of
its own tests too that need only a server. Prints a table, and ends with 1 if a program failed or its metrics are wrong,
if one that can not run did not end with the error that is written down, or if the installed package has other modules
than `modules.txt`. `make cookbook` runs it.
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
IMPORTABLE = HERE / "importable"
sys.path[:0] = [str(HERE.parent / "sdk"), str(IMPORTABLE)]

import inventory
import library_sets
import page
import stand_ins
import tiny_models
from data_hub import hub
from programs import BASE, PROGRAMS, TESTS, THINKING, Program, Unmet
from reasons import REASONS
from sandboxes import fusion
from script_programs import SCRIPT_PROGRAMS
from server import Server
from tiny_programs import TINY_PROGRAMS

LIMIT_SECONDS = 1800
"""Seconds for one program."""
START_SECONDS = 300
"""Seconds for the server to start: it loads two models on a machine that may be busy."""
ALL = PROGRAMS + TINY_PROGRAMS + SCRIPT_PROGRAMS + REASONS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="the test model")
    parser.add_argument(
        "--runs", type=pathlib.Path, required=True, help="folder for runs; runs of the same names are replaced"
    )
    parser.add_argument("--sources", type=pathlib.Path, help="the cookbook's sources")
    parser.add_argument("--only", help="some of " + ", ".join(one.name for one in ALL + TESTS))
    parser.add_argument("--tiny", action="store_true", help="only programs on tiny models")
    options = parser.parse_args()
    if changed := inventory.differences(inventory.inventory(inventory.installed()), inventory.listed()):
        print("\n".join(["the cookbook has changed; see tests/cookbook/inventory.py:", *changed]))
        return 1
    if missing := page.uncovered(inventory.listed()):
        print("\n".join(["not run, and without a reason:", *missing]))
        return 1
    known = ALL + TESTS if options.sources else ALL
    chosen = choose(options.only, tuple(one for one in known if one.tiny) if options.tiny else known)
    with contextlib.ExitStack() as stack:
        places = {tiny: stack.enter_context(place_at(options, tiny)) for tiny in {one.tiny for one in chosen}}
        rows = [run(program, places[program.tiny]) for program in chosen]
    print("\n| program | result | seconds | seen |\n|---|---|---|---|")
    for program, (held, seconds, seen) in zip(chosen, rows, strict=True):
        print(f"| `{program.name}` | {'ok' if held else '**failed**'} | {seconds:.0f} | {seen} |")
    return 0 if all(held for held, *_ in rows) else 1


def choose(names: str | None, programs: tuple[Program, ...]) -> list[Program]:
    known = {one.name: one for one in programs}
    wanted = names.split(",") if names else list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"no program {', '.join(unknown)}; there are {', '.join(known)}")
    before = [known[name].after for name in wanted if known[name].after]
    return [known[name] for name in dict.fromkeys([*before, *wanted] if names else wanted)]


@dataclass(frozen=True)
class Place:
    """Folders and addresses with which programs run."""

    runs: pathlib.Path
    sources: pathlib.Path | None
    files: dict[str, pathlib.Path]
    variables: dict[str, str]

    def names(self, program: Program) -> dict[str, object]:
        """Returns what stands for the names in a program's arguments."""
        names: dict[str, object] = {
            "here": HERE, "folder": self.runs / program.name, "runs": self.runs, **self.files,
        }  # fmt: skip
        if program.after:
            before = self.runs / program.after
            names |= {"before": before, "sampler": last(before, "sampler_path"), "state": last(before, "state_path")}
        return names


def last(folder: pathlib.Path, kind: str) -> str:
    """Returns the path of what a program saved last, in its folder or one below it."""
    saved = [
        found[kind]
        for file in sorted(folder.rglob("checkpoints.jsonl"))
        for found in map(json.loads, file.read_text().splitlines())
        if found.get(kind)
    ]
    return saved[-1] if saved else "none"


@contextlib.contextmanager
def place_at(options: argparse.Namespace, tiny: bool) -> Iterator[Place]:
    """Yields a server and a hub that run until the end of the block, and files that programs read."""
    runs = options.runs.resolve() / ("tiny" if tiny else "")
    runs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(runs / "data", ignore_errors=True)
    if tiny:
        models, dtype = tiny_models.made(runs / "models"), "f32"
    else:
        # Two files make two copies in memory, whatever number of names they have.
        thinking = stand_ins.thinking_model(options.model, runs / "thinking.gguf")
        models, dtype = {BASE: options.model.resolve()} | dict.fromkeys(THINKING, thinking), "bf16"
    server = Server(runs, models, dtype=dtype, flags=["--hf-upstream", "none"])
    with contextlib.ExitStack() as stack:
        stack.callback(server.close)
        server.start(START_SECONDS)
        stack.callback(server.stop)
        repositories = stand_ins.repositories() | (library_sets.repositories() if tiny else {})
        datasets = stack.enter_context(hub(repositories, server.url))
        variables = environment(server.url, datasets.url, runs)
        variables["SANDBOX_URL"] = stack.enter_context(fusion())
        sources = options.sources.resolve() if options.sources else None
        made = stand_ins.files(runs) | (library_sets.files(runs) if tiny else {})
        yield Place(runs, sources, made, variables)


def environment(server: str, datasets: str, runs: pathlib.Path) -> dict[str, str]:
    """Returns the settings of a user of the cookbook, with a private cache."""
    return os.environ | {
        "TINKER_BASE_URL": server,
        "TINKER_API_KEY": "tml-local-cookbook",
        "TINKER_TELEMETRY": "0",
        "HF_ENDPOINT": datasets,
        "HF_HOME": str(runs / "hf"),
        # Tasks of Harbor are below it.
        "HOME": str(runs),
        "PYTHONPATH": str(IMPORTABLE),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TINKER_COOKBOOK_RUNS_DIR": str(runs / "default"),
        "PATH": f"{tools(runs)}:{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
    }


def tools(runs: pathlib.Path) -> pathlib.Path:
    """Returns a folder with stand-ins of tools.

    `uv` starts programs of the cookbook's tests in the present environment. `tmux` does nothing, where programs would
    leave windows behind.
    """
    folder = runs / "bin"
    folder.mkdir(exist_ok=True)
    scripts = {"uv": f'# uv run python ...\nshift 2\nexec {sys.executable} "$@"', "tmux": "exit 0"}
    for name, commands in scripts.items():
        script = folder / name
        script.write_text(f"#!/bin/sh\n{commands}\n")
        script.chmod(0o755)
    return folder


def run(program: Program, place: Place) -> tuple[bool, float, str]:
    """Returns whether the program passed, its seconds, and its metrics."""
    folder, log = place.runs / program.name, place.runs / f"{program.name}.log"
    shutil.rmtree(folder, ignore_errors=True)
    variables = place.variables
    if program.name == "test_download":
        variables = variables | {"TINKER_TEST_CHECKPOINT_PATH": checkpoint(variables)}
    arguments = [one.format_map(place.names(program)) for one in program.arguments]
    began = time.monotonic()
    with log.open("w") as output:
        child = subprocess.Popen(
            [sys.executable, *arguments], cwd=place.sources if program.in_sources else place.runs,
            env=variables, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True,
        )  # fmt: skip
        try:
            child.communicate(program.typed, LIMIT_SECONDS)
            code = child.returncode
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
    if code is None:
        raise Unmet("took too long")
    if program.refused:
        text = log.read_text()
        if code == 0 or program.refused not in text:
            raise Unmet(f"ended with {code}, without {program.refused!r}: the reason why it can not run has changed")
        return f"as expected: {program.refused}"
    if code != 0:
        raise Unmet(f"ended with {code}")
    if missing := [name for name in program.files if not (folder / name).exists()]:
        raise Unmet(f"did not write {', '.join(missing)}")
    if program.check:
        (metrics,) = sorted(folder.rglob("metrics.jsonl"))[:1] or [folder / "metrics.jsonl"]
        return program.check([json.loads(line) for line in metrics.read_text().splitlines()])
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
