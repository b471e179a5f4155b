"""Predicts times of the CUDA backend from counts of the simulator: a LoRA step and decoding of Qwen3-8B's shape.

`python3 bench/gpu_roofline.py` prints the tables of docs/design/gpu.md, which states the assumptions; with `--all` the counts of every
kernel. Nothing here was measured on a GPU.
"""

from __future__ import annotations

import sys

from gpu_kernels import (
    COUNTED,
    GOAL_BYTES,
    GOAL_FLOPS,
    HBM,
    HOST_COPY,
    HOST_LAUNCH,
    SHAPE_OF,
    Work,
)
from gpu_passes import (
    LENGTH,
    SEQUENCES,
    WEIGHTS,
    Design,
    decode,
    lora_step,
    model_flop,
    pass_of,
    sequences_of_pass,
    update,
)


def host_seconds(works: list[Work]) -> float:
    return sum(work.launches * HOST_LAUNCH + work.uploads * HOST_COPY for work in works)


def table(head: list[str], lines: list[list[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def short(value: float) -> str:
    if value == 0:
        return "0"
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= limit:
            return f"{value / (1e3 if suffix == 'k' else limit):.3g} {suffix}"
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def print_counts(every: bool) -> None:
    """Prints all kernels, or those that a LoRA step and decoding launch."""
    works = lora_step("H100", Design()) + decode(1, adapters=True)
    used = {(work.name, work.shape or SHAPE_OF.get(work.name)) for work in works}
    lines = []
    for (kernel, shape), c in COUNTED.items():
        if not every and not used & {(kernel, shape), (kernel, None)}:
            continue
        requests, shared, sectors = c["global_requests"], c["shared_requests"], c["global_sectors"]
        lines.append([
            f"`{kernel}`", shape, str(c["unit"]), short(c["global_load_bytes"]), short(c["global_store_bytes"]),
            short(sectors * 32), f"{sectors / requests:.1f}", f"{c['bank_conflicts'] / shared:.2f}" if shared else "",
            short(c["tensor_flop"]) if c["tensor_flop"] else "", short(c["instructions"]),
        ])
    print("### What kernels move, per unit\n")
    head = ["kernel", "shape", "unit", "bytes loaded", "stored", "in sectors", "sectors per request"]
    table([*head, "conflicts per shared request", "tensor-core FLOP", "warp instructions"], lines)


def merged(works: list[Work]) -> dict[str, list[Work]]:
    found: dict[str, list[Work]] = {}
    for work in works:
        found.setdefault(work.name, []).append(work)
    return found


def print_step(works: dict[str, list[Work]], tokens: int) -> None:
    lines = []
    order = sorted(works, key=lambda name: -sum(work.seconds("H100") for work in works[name]))
    for name in order:
        of = works[name]
        sectors = sum(w.counts().get("global_sectors", 0) * 32 * w.units for w in of)
        times = [f"{1e3 * sum(w.seconds(device) for w in of):.1f}" for device in HBM]
        longest = max(of, key=lambda w: w.seconds("H200"))
        least, flop = sum(w.least for w in of), sum(w.flop for w in of)
        moved = short(sectors / tokens) if sectors else ""
        name = name if " " in name or name == "memset" else f"`{name}`"
        lines.append([name, short(least / tokens), short(flop / tokens), moved, *times, longest.bound("H200")])
    table(["kernel", "least bytes per token", "FLOP per token", "counted bytes per token", "H100 ms", "H200 ms", "bound"], lines)


def print_lora() -> None:
    tokens = SEQUENCES * LENGTH
    print("### A LoRA step, kernel by kernel\n")
    print("Passes of 8,192 rows.\n")
    print_step(merged(pass_of(Design(), 4) * (SEQUENCES // 4) + update()), tokens)
    designs = {
        "as it is": Design(),
        "saved activations in bf16": Design(narrow=True),
        "and attention at 250 and 180 TFLOP/s": Design(narrow=True, attention=True),
    }
    print("### Sums\n")
    lines = []
    for label, design in designs.items():
        line = [label]
        for device in HBM:
            seconds = sum(work.seconds(device) for work in lora_step(device, design))
            passes = SEQUENCES // sequences_of_pass(device, design)
            line += [str(passes), f"{seconds:.2f} s", f"{100 * model_flop() / seconds / GOAL_FLOPS:.0f} %"]
        lines.append(line)
    print(f"{model_flop():.3g} FLOP.\n")
    head = [name for device in HBM for name in (f"{device} passes", "time", "of 790 TFLOP/s")]
    table(["LoRA step, 8x2048 tokens", *head], lines)


def print_decode() -> None:
    print("### Decoding, 2,048 tokens of context\n")
    lines = []
    for adapters in (False, True):
        for batch in (1, 16, 128):
            works = decode(batch, adapters)
            host = host_seconds(works)
            line = ["rank 32" if adapters else "none", str(batch), short(sum(work.least for work in works)), f"{1e3 * host:.1f}"]
            for device in HBM:
                gpu = sum(work.seconds(device) for work in works)
                gemms = sum(work.seconds(device) for work in works if work.gemm)
                attend = sum(work.seconds(device) for work in works if "attention" in work.name)
                sampling = sum(work.seconds(device) for work in works if work.name in ("sample", "row_log_sums"))
                step = max(gpu, host)
                line += [f"{1e3 * seconds:.1f}" for seconds in (gemms, attend, sampling, gpu)] + [f"{batch / step:.0f}"]
            lines.append([*line, f"{100 * 2 * WEIGHTS / step / GOAL_BYTES:.0f} %"])
    head = ["adapter", "batch", "least bytes", "host ms"]
    for device in HBM:
        head += [f"{device} GEMM ms", "attention ms", "sampling ms", "GPU ms", "tokens/s"]
    table([*head, "weights at 4.3 TB/s"], lines)
    print("The longest kernels on H200, with an adapter, in ms:\n")
    for batch in (1, 16, 128):
        works = merged(decode(batch, True))
        times = {name: sum(work.seconds("H200") for work in of) for name, of in works.items()}
        longest = sorted(times, key=lambda name: -times[name])[:6]
        bounds = {name: max(works[name], key=lambda work: work.seconds("H200")).bound("H200") for name in longest}
        print(f"- batch {batch}: " + ", ".join(f"{name} {1e3 * times[name]:.2f} ({bounds[name]})" for name in longest))
    print()


if __name__ == "__main__":
    print_lora()
    print_decode()
    print_counts("--all" in sys.argv)
