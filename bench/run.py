#!/usr/bin/env python3
"""Measure Trainyard, and PyTorch with PEFT for comparison in the same run.

  python3 bench/run.py [--workloads w1,w4,w5] [--reps 5] [--no-baseline] [--output results.json]

`make bench` downloads the test model, builds the release binary and calls this with ARGS. One process per workload and
side. With `--device cuda` both sides compute on the GPU, on a model of Qwen3-8B's shape with random weights. The baseline's
packages are installed into .cache/bench-venv when they are missing (several GB).
"""

import argparse
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
VENV = CACHE / "bench-venv"
PYTHON = VENV / "bin" / "python"
SDK_PYTHON = CACHE / "venv" / "bin" / "python"
BASELINE_LOG = CACHE / "bench-baseline.log"
RANDOM_FOLDER = CACHE / "bench-random"
BENCH = "trainyard-bench"
PACKAGES = ["torch==2.11.0", "transformers==5.17.0", "peft==0.21.2", "gguf"]
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct=.cache/SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass
class Workload:
    """A workload of `trainyard-bench` and of `peft_baseline.py`, which accept the same flags."""

    name: str
    kind: str
    flags: tuple[str, ...] = ()
    # Whether the baseline is also measured with torch.compile.
    compiled: bool = False


WORKLOADS = [
    Workload("w1", "w1", compiled=True),
    Workload("w1-32x64", "w1", ("--batch", "32", "--seq", "64")),
    Workload("w1-2x1024", "w1", ("--batch", "2", "--seq", "1024")),
    Workload("w1-unembed", "w1", ("--train-unembed",)),
    Workload("w1f", "w1f"),
    Workload("w2", "w2"),
    Workload("w3", "w3"),
    Workload("w3b1", "w3b1"),
    Workload("w4", "w4"),
]
NAMES = [workload.name for workload in WORKLOADS] + ["w5"]

GPU_WORKLOADS = [
    Workload("w1-8x2048", "w1", ("--batch", "8", "--seq", "2048")),
    Workload("w3b1", "w3b1"),
    Workload("w3", "w3"),
    Workload("w3b128", "w3b128"),
]
SHAPES = {"qwen3-8b": "random-qwen3-8b", "tiny": "random-tiny", "hybrid-135m": "random-hybrid-135m"}
"""Models with random weights, and the folders into which `trainyard-bench` writes them."""
SHAPE_ON_GPU = "qwen3-8b"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=MODEL, metavar="NAME=PATH", help="Hugging Face folder or GGUF file")
    parser.add_argument("--device", default="cpu", help="device of both sides: cpu, cuda or cuda:N")
    parser.add_argument(
        "--shape", choices=SHAPES, help=f"a model of this shape with random weights instead; {SHAPE_ON_GPU} on a GPU"
    )
    parser.add_argument("--workloads", help="separated by commas; all when absent")
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--no-baseline", action="store_true", help="Trainyard only")
    parser.add_argument("--baseline-dtype", choices=["bf16", "f32"], help="default: bf16 if the processor multiplies it")
    parser.add_argument("--baseline-reps", type=int, help="the same as --reps by default")
    parser.add_argument("--baseline-timeout", type=float, default=300, metavar="SECONDS", help="for each workload")
    parser.add_argument("--no-compile", action="store_true", help="skip torch.compile, which takes minutes")
    parser.add_argument("--compile-timeout", type=float, default=900, metavar="SECONDS", help="for torch.compile")
    parser.add_argument("--no-build", action="store_true", help="use the release binaries as they are")
    parser.add_argument("--store", action="store_true", help="only the scheduler's store, as requests are retained")
    parser.add_argument("--database-url", metavar="URL", help="an empty PostgreSQL database for --store, beside SQLite")
    parser.add_argument("--output", type=Path, help="write all results to this file as JSON")
    options = parser.parse_args()
    options.on_gpu = options.device != "cpu"
    if options.on_gpu and not options.shape:
        options.shape = SHAPE_ON_GPU
    known = [workload.name for workload in GPU_WORKLOADS] if options.on_gpu else NAMES
    options.workloads = options.workloads.split(",") if options.workloads else known
    unknown = set(options.workloads) - set(known)
    if unknown:
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    return options


def model_flags(options: argparse.Namespace) -> list:
    """Returns the flags of `trainyard-bench` that choose the model."""
    if not options.shape:
        return ["--model", options.model]
    return ["--device", options.device, "--shape", options.shape, "--data-dir", RANDOM_FOLDER]


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def release_binaries(build: bool) -> Path:
    """Returns the folder of `trainyard` and `trainyard-bench`."""
    if build:
        cargo = ["cargo", "build", "--release", "--locked", "--bin", "trainyard", "--bin", "trainyard-bench"]
        subprocess.run(cargo, cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


def imports(python: Path, modules: str) -> bool:
    return python.exists() and subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode == 0


def baseline_ready() -> bool:
    """Installs the baseline's packages if they are missing."""
    if imports(PYTHON, "torch, transformers, peft"):
        return True
    note(f"installing {' '.join(PACKAGES)} into {VENV}: this takes a while")
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    done = subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-compile", *PACKAGES]).returncode == 0
    return done and imports(PYTHON, "torch, transformers, peft")


def baseline_dtype(asked: str | None) -> str:
    """Returns bf16 if the processor multiplies it; PyTorch's emulation is a hundred times slower than f32."""
    if asked:
        return asked
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.exists() else ""
    if "avx512_bf16" in flags or "amx_bf16" in flags:
        return "bf16"
    note("this processor does not multiply bf16: the baseline computes in f32")
    return "f32"


def baseline_folder(path: Path) -> Path:
    """Returns a Hugging Face folder with the model's weights."""
    if path.is_dir():
        return path
    folder = CACHE / "bench-model" / path.stem
    if not folder.exists():
        note(f"writing {folder}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([PYTHON, ROOT / "bench" / "extract_hf.py", path, folder], check=True)
    return folder


def output_of(command: list, timeout: float | None = None, log: Path | None = None, environment: dict | None = None) -> dict:
    command = [str(part) for part in command]
    errors = log.open("ab") if log else None
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=errors, check=True, cwd=ROOT, timeout=timeout, env=environment
        )
    finally:
        if errors:
            errors.close()
    return json.loads(done.stdout.splitlines()[-1])


class Baseline:
    """Measures PyTorch with PEFT."""

    def __init__(self, options: argparse.Namespace, model: Path) -> None:
        # The first workload writes the folder of random weights.
        self.folder = model if options.shape else baseline_folder(model)
        self.dtype = (options.baseline_dtype or "bf16") if options.on_gpu else baseline_dtype(options.baseline_dtype)
        self.device, _, number = options.device.partition(":")
        self.environment = os.environ | ({"CUDA_VISIBLE_DEVICES": number} if number else {})
        self.reps = options.baseline_reps or options.reps
        self.timeout = options.baseline_timeout
        self.compile_timeout = None if options.no_compile else options.compile_timeout

    def measure(self, workload: Workload, threads: int, compiled: bool = False) -> dict:
        script = [PYTHON, ROOT / "bench" / "peft_baseline.py", "--model", self.folder, "--workload", workload.kind]
        flags = [*workload.flags, "--dtype", self.dtype, "--reps", self.reps, "--device", self.device]
        flags += [] if self.device == "cuda" else ["--threads", threads]
        timeout = self.compile_timeout if compiled else self.timeout
        try:
            return output_of(script + flags + ["--compile"] * compiled, timeout, BASELINE_LOG, self.environment)
        except subprocess.TimeoutExpired:
            return {"failed": f"no result within {timeout:.0f} s"}
        except subprocess.CalledProcessError as error:
            return {"failed": f"the baseline ended with {error.returncode}; see {BASELINE_LOG}"}


def rate(result: dict) -> str:
    speed = result["tokens_per_second"]
    spread = f"[{speed['min']:.1f} - {speed['max']:.1f}]"
    return f"{speed['median']:>9.1f} {spread:>19} {result['peak_memory_mib'] or 0:>6.0f} MiB"


def row(entry: dict) -> str:
    """Returns a line of the table, and one more for the compiled baseline."""
    lines = [f"{entry['workload']:<11}{rate(entry['trainyard']['workloads'][0])}"]
    for side, name in [("peft", ""), ("peft_compiled", "compiled")]:
        theirs = entry.get(side)
        if theirs is None:
            continue
        if name:
            lines.append(f"{name:>51}")
        lines[-1] += f"   {theirs['failed']}" if "failed" in theirs else f"   {rate(theirs)}   {entry[side + '_ratio']:>5.2f}"
    return "\n".join(lines)


def compare(options: argparse.Namespace, binaries: Path, baseline: Baseline | None) -> list[dict]:
    results = []
    for workload in GPU_WORKLOADS if options.on_gpu else WORKLOADS:
        if workload.name not in options.workloads:
            continue
        command = [binaries / BENCH, "--json", *model_flags(options), "--workload", workload.kind, *workload.flags]
        ours = output_of([*command, "--dtype", options.dtype, "--reps", options.reps])
        entry = {"workload": workload.name, "trainyard": ours}
        sides = {}
        if baseline:
            sides["peft"] = baseline.measure(workload, ours["threads"])
            if workload.compiled and baseline.compile_timeout is not None:
                sides["peft_compiled"] = baseline.measure(workload, ours["threads"], compiled=True)
        for side, theirs in sides.items():
            entry[side] = theirs
            if "failed" not in theirs:
                speed = theirs["tokens_per_second"]["median"]
                entry[f"{side}_ratio"] = ours["workloads"][0]["tokens_per_second"]["median"] / speed
        note(row(entry))
        results.append(entry)
    return results


def api(options: argparse.Namespace, binaries: Path) -> dict:
    """Measures W5: through HTTP with a native client, and with the SDK if it is installed."""
    folder = CACHE / "bench-http"
    native = [binaries / BENCH, "--http", "--json", "--reps", options.reps, "--data-dir", folder]
    result = {"native": output_of(native)}
    if imports(SDK_PYTHON, "tinker"):
        script = [SDK_PYTHON, ROOT / "bench" / "w5_sdk.py", "--binary", binaries / "trainyard", "--model", folder / "tiny"]
        result["sdk"] = output_of([*script, "--reps", options.reps])
    else:
        note("W5 without the SDK: .cache/venv lacks it; `make test-sdk` installs it")
    return result


def store(options: argparse.Namespace, binaries: Path) -> dict:
    """Measures claim rounds, submissions and sweeps as requests are retained, on SQLite and, if given, PostgreSQL."""
    command = [binaries / BENCH, "--store", "--json", "--reps", options.reps, "--data-dir", CACHE / "bench-store"]
    return output_of(command + (["--database-url", options.database_url] if options.database_url else []))


def print_store(result: dict) -> None:
    print("\nStore, median ms by retained requests; wanted: growth of at most 1.5")
    for measured in result["stores"]:
        sizes = "".join(f"{size:>10}" for size in result["retained"])
        print(f"{measured['name']:<22}{sizes}{'growth':>10}")
        for operation in measured["operations"]:
            medians = [ms["median"] for ms in operation["ms"]]
            columns = "".join(f"{median:>10.2f}" for median in medians)
            print(f"{operation['name']:<22}{columns}{medians[-1] / medians[0]:>9.2f}x")


def print_rates(options: argparse.Namespace, results: list[dict], baseline: Baseline | None) -> None:
    first = results[0]["trainyard"]
    gflops = f"{first['gemm_gflops']:.0f} GFLOP/s"
    device = first["blocking"] if options.on_gpu else f"{first['threads']} threads"
    print(f"\n{first['model']}: {first['isa']}, {device}, GEMM {gflops}; tokens/s")
    header = f"{'':<11}{'Trainyard ' + options.dtype:>40}"
    print(header + (f"   {'PEFT ' + baseline.dtype:>40}   ratio" if baseline else ""))
    for entry in results:
        print(row(entry))
    if options.on_gpu:
        print(f"memory copied on the GPU: {first['read_gb_per_second']:.1f} GB/s")
        return
    print("\nFraction of all threads' time in GEMM, its throughput, and the bandwidth of weights in decoding")
    print(f"{'':<11}{'GEMM':>9}{'GFLOP/s':>9}{'of peak':>9}{'weights GB/s':>14}{'of bound':>9}")
    for entry in results:
        ours = entry["trainyard"]
        work = ours["workloads"][0]
        gemm, read = work["gemm"], work.get("read")
        line = f"{entry['workload']:<11}{gemm['fraction']:>9.0%}{gemm['gflops']:>9.0f}{gemm['of_peak']:>9.0%}"
        print(line + (f"{read['gb_per_second']:>14.1f}{read['of_bandwidth']:>9.0%}" if read else ""))
    print(f"memory bandwidth: {first['read_gb_per_second']:.1f} GB/s")


def print_api(result: dict) -> None:
    native, sdk = result["native"], result.get("sdk")
    print(f"\nW5, tiny model, ms from submit to result (a durable write takes {native['sync_ms']:.2f} ms)")
    print(f"{'':<24}{'engine':>8}{'native':>8}{'[min - max]':>19}{'SDK':>9}{'[min - max]':>19}")
    seen = {latency["name"]: latency["ms"] for latency in sdk["latencies"]} if sdk else {}
    for latency in native["latencies"]:
        columns = [latency["ms"], *([seen[latency["name"]]] if sdk else [])]
        spreads = "".join(f"{ms['median']:>8.2f}{'[%.2f - %.2f]' % (ms['min'], ms['max']):>19} " for ms in columns)
        print(f"{latency['name']:<24}{latency['engine_ms']:>8.2f}{spreads}")
    for measured in native["rates"]:
        speed, ms = measured["per_second"]["median"], measured["ms"]
        print(f"{measured['name']:<24}{speed:>8.0f}/s, median {ms['median']:.1f} ms, {measured['errors']} errors")
    if sdk:
        speed = sdk["samples_per_second"]["median"]
        print(f"{'samples, SDK':<24}{speed:>8.0f}/s by {sdk['clients']} concurrent callers")
    before, after = native["server_mib"] or (0, 0)
    print(f"server memory {before:.0f} -> {after:.0f} MiB")


def main() -> None:
    options = parse()
    binaries = release_binaries(not options.no_build)
    if options.store:
        measured = store(options, binaries)
        print_store(measured)
        if options.output:
            options.output.write_text(json.dumps({"store": measured}, indent=1) + "\n")
        return
    rates = [name for name in options.workloads if name != "w5"]
    model = RANDOM_FOLDER / SHAPES[options.shape] if options.shape else ROOT / options.model.partition("=")[2]
    baseline = None
    if rates and not options.shape and not model.exists():
        sys.exit(f"{model} does not exist; `make model` fetches the test model")
    if rates and not options.no_baseline:
        if baseline_ready():
            baseline = Baseline(options, model)
        else:
            note("no baseline: torch, transformers and peft could not be installed")
    results = compare(options, binaries, baseline)
    through_api = api(options, binaries) if "w5" in options.workloads else None
    if results:
        print_rates(options, results, baseline)
    if through_api:
        print_api(through_api)
    if options.output:
        everything = {"workloads": results, "w5": through_api}
        options.output.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
