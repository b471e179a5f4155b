#!/usr/bin/env python3
"""Measure Trainyard, and PyTorch with PEFT beside it where that is installed.

  python3 bench/run.py --model NAME=PATH [--install] [--workloads w1,w4] [--reps 5] [--dtype bf16]

Builds the release binary, then runs one process per workload and side. The baseline needs torch, transformers
and peft in .cache/bench-venv; --install puts them there (several GB). It takes a Hugging Face folder as PATH;
from a GGUF file it writes one to .cache/bench-model first.
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
VENV = CACHE / "bench-venv"
PYTHON = VENV / "bin" / "python"
PACKAGES = ["torch==2.11.0", "transformers==5.17.0", "peft==0.21.2", "gguf"]
WORKLOADS = ["w1", "w1f", "w2", "w3", "w3b1", "w4"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, metavar="NAME=PATH")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    parser.add_argument("--baseline-dtype", choices=["bf16", "f32"], help="the same as --dtype by default")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--baseline-reps", type=int, help="the same as --reps by default")
    parser.add_argument("--install", action="store_true", help="install the baseline's packages")
    parser.add_argument("--no-build", action="store_true", help="use the release binary as it is")
    parser.add_argument("--output", type=Path, help="write all results to this file as JSON")
    return parser.parse_args()


def install() -> None:
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "--no-compile", *PACKAGES], check=True)


def baseline_ready() -> bool:
    if not PYTHON.exists():
        return False
    probe = [PYTHON, "-c", "import torch, transformers, peft"]
    return subprocess.run(probe, capture_output=True).returncode == 0


def release_binary(build: bool) -> Path:
    if build:
        cargo = ["cargo", "build", "--release", "--locked", "--bin", "trainyard"]
        subprocess.run(cargo, cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "trainyard"


def baseline_folder(path: Path) -> Path:
    """A Hugging Face folder with the model's weights."""
    if path.is_dir():
        return path
    folder = CACHE / "bench-model" / path.stem
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([PYTHON, ROOT / "bench" / "extract_hf.py", path, folder], check=True)
    return folder


def output_of(command: list) -> dict:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def rate(result: dict) -> str:
    speed = result["tokens_per_second"]
    spread = f"[{speed['min']:.1f} - {speed['max']:.1f}]"
    return f"{speed['median']:>9.1f} {spread:>19} {result['peak_memory_mib'] or 0:>6.0f} MiB"


def main() -> None:
    options = parse()
    if options.install:
        install()
    binary = release_binary(not options.no_build)
    name, _, path = options.model.partition("=")
    compare = baseline_ready()
    folder = baseline_folder(Path(path)) if compare else None
    if not compare:
        print("no baseline: torch, transformers and peft are not in .cache/bench-venv; see --install", file=sys.stderr)
    baseline_dtype = options.baseline_dtype or options.dtype
    baseline_reps = options.baseline_reps or options.reps
    results = []
    for workload in options.workloads.split(","):
        ours = output_of(
            [binary, "bench", "--json", "--model", options.model, "--workload", workload]
            + ["--dtype", options.dtype, "--reps", options.reps]
        )
        measured = ours["workloads"][0]
        if not results:
            print(
                f"{name}: {ours['isa']}, {ours['threads']} threads, packed product {ours['gemm_gflops']:.0f} GFLOP/s; tokens/s"
            )
        print(f"{workload:<5} trainyard {options.dtype:<5}{rate(measured)}", flush=True)
        entry = {"workload": workload, "trainyard": ours}
        if folder:
            theirs = output_of(
                [PYTHON, ROOT / "bench" / "peft_baseline.py", "--model", folder, "--workload", workload]
                + ["--dtype", baseline_dtype, "--reps", baseline_reps, "--threads", ours["threads"]]
            )
            entry["peft"] = theirs
            entry["ratio"] = measured["tokens_per_second"]["median"] / theirs["tokens_per_second"]["median"]
            print(f"{'':<5} PEFT      {baseline_dtype:<5}{rate(theirs)}   ratio {entry['ratio']:.2f}", flush=True)
        results.append(entry)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
