"""Predicts times of the CUDA backend from counts of the simulator: a LoRA step and decoding of Qwen3-8B's shape.

`python3 bench/gpu_roofline.py` prints the tables of docs/design/gpu.md, which states the assumptions; with `--all` the counts of every
kernel. Nothing here was measured on a GPU.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

CUDA = Path(__file__).parent.parent / "gpu-runtime/src/backend/cuda"
COUNTS, RESOURCES = CUDA / "counts.tsv", CUDA / "resources.txt"

# From data sheets; registers and bytes of shared memory of a multiprocessor, of which each block takes 1 KiB extra.
HBM = {"H100": 3.35e12, "H200": 4.8e12}
MEMORY = {"H100": 80e9, "H200": 141e9}
SMS, PEAK = 132, 989e12
REGISTERS, SHARED = 65536, 228 * 1024
# Assumptions: see docs/design/gpu.md.
HBM_PART, CLOCK, ISSUE_PART = 0.9, 1.7e9, 0.6
L2, GEMM, MMA = 4.4e12, 700e12, 500e12
# Seconds of a load that HBM and the level 2 cache serve; most warps of a multiprocessor.
HBM_LATENCY, L2_LATENCY, RESIDENT_WARPS = 0.7e-6, 0.3e-6, 48
LEAST_TIME, HOST_LAUNCH, HOST_COPY = 2e-6, 3e-6, 6e-6
GOAL_FLOPS, GOAL_BYTES = 790e12, 4.3e12

# Extents of Qwen3-8B.
BLOCKS, HIDDEN, HEADS, KV_HEADS, DIM, INNER, VOCAB = 36, 4096, 32, 8, 128, 12288, 151936
Q, KV = HEADS * DIM, KV_HEADS * DIM
QKV = Q + 2 * KV
RANK, SEQUENCES, LENGTH, CONTEXT = 32, 8, 2048, 2048
# Most rows of a pass, and the number from which more bring little; memory for runs first: as the runtime divides it.
PASS_ROWS, ENOUGH_ROWS, RUNS, GIB = 8192, 4096, 4 << 30, 1 << 30
# Most outputs that a GEMM computes.
CHUNK = 8192
LINEAR = {"q": (HIDDEN, Q), "k": (HIDDEN, KV), "v": (HIDDEN, KV), "o": (Q, HIDDEN)}
LINEAR |= {"gate": (HIDDEN, INNER), "up": (HIDDEN, INNER), "down": (INNER, HIDDEN)}
ADAPTER = sum(RANK * (i + o) for i, o in LINEAR.values())
WEIGHTS = BLOCKS * (HIDDEN * QKV + Q * HIDDEN + 3 * HIDDEN * INNER) + VOCAB * HIDDEN

# Layers that share an input, and therefore a launch of each kernel of adapters.
CALLS = (("q", "k", "v"), ("o",), ("gate", "up"), ("down",))

# Simultaneous loads of a warp: asynchronous copies of the next tiles, or loads in the source before their first use; 4
# elsewhere.
IN_FLIGHT = {
    "tensor_attention_128": 8,
    "tensor_attention_split_128": 8,
    "tensor_attention_backward_q_128": 8,
    "tensor_lora_shrink": 12,
    "tensor_lora_shrink_backward": 12,
    "tensor_lora_shrink_few": 16,
    "tensor_lora_expand": 8,
    "tensor_lora_expand_backward": 8,
    "tensor_outer_products": 6,
    "tensor_attention_join": 8,
    "row_log_sums": 16,
    "sample": 16,
    "norm_bf16": 8,
    "norm_f32": 8,
    "norm_backward": 8,
}


def counted() -> dict[tuple[str, str], dict[str, float]]:
    """Returns counters per unit of each kernel and shape."""
    found = {}
    with COUNTS.open() as file:
        for line in csv.DictReader(file, delimiter="\t"):
            kernel, shape, unit = line.pop("kernel"), line.pop("shape"), line.pop("unit")
            units = int(line.pop("units"))
            found[kernel, shape] = {name: int(count) / units for name, count in line.items()} | {"unit": unit}
    return found


def needed() -> dict[str, tuple[int, int]]:
    """Returns registers per thread and bytes of shared memory per block of each kernel on sm_90."""
    lines = [line.split() for line in RESOURCES.read_text().splitlines() if not line.startswith("#")]
    needs = {kernel: sm_90.split("/") for _, _, kernel, _, sm_90, *_ in lines}
    return {kernel: (int(registers), int(shared)) for kernel, (registers, shared, *_) in needs.items()}


COUNTED, NEEDED = counted(), needed()
SHAPE_OF = {
    "tensor_attention_prepare": "1024 rows of 4+1 heads of 128",
    "kv_write_bf16": "1024 rows of 1 head of 128",
    "row_log_sums": "1x8192",
    "sample": "1x8192",
}
DECODED = "1 row of 4+1 heads of 128, 256 keys"
PREFILLED = "1024 rows of 4+1 heads of 128"
LORA_MANY = "576 rows of 1024 inputs, 1024 outputs, rank 32"
LORA_ONE = "1 row of 4096 inputs, 1024 outputs, rank 32"
# Layers whose outputs are added to the residual stream, which their launch of `tensor_lora_expand` reads.
ONTO, RESIDUAL = ", onto rows", ("o", "down")
LORA_GRADIENT = {"A": "of A, 1024 rows: 32x256", "B": "of B, 1024 rows: 256x32"}


def counts_of(kernel: str, shape: str | None) -> dict[str, float]:
    """Returns counters per unit; without a shape those of the only one, or of SHAPE_OF."""
    shape = shape or SHAPE_OF.get(kernel)
    matching = [counts for (name, of), counts in COUNTED.items() if name == kernel and shape in (None, of)]
    if len(matching) != 1:
        raise SystemExit(f"{COUNTS.name} has {len(matching)} lines of {kernel}, {shape}: expected one")
    return matching[0]


@dataclass
class Work:
    """All launches of a kernel in a step or in the decoding of one token."""

    name: str
    # Bytes that must move to or from HBM, and multiplications and additions that must be done.
    least: float
    flop: float = 0
    launches: float = 1
    # For own kernels: units of the counted line, and warps of a launch.
    units: float = 0
    warps: float = 1e9
    shape: str | None = None
    # Number of warps of a block.
    per_block: int = 8
    # Whether this is a GEMM.
    gemm: bool = False
    # Number of copies from the host's memory.
    uploads: float = 0

    def resident(self) -> int:
        """Returns the simultaneous warps of a multiprocessor, limited by registers, in units of 8, and shared memory."""
        registers, shared = NEEDED[self.name]
        blocks = min(REGISTERS // (ceil(registers, 8) * 8 * 32 * self.per_block), SHARED // (shared + 1024))
        return min(RESIDENT_WARPS, blocks * self.per_block)

    def counts(self) -> dict[str, float]:
        return counts_of(self.name, self.shape) if self.units else {}

    def bounds(self, device: str) -> dict[str, float]:
        """Returns the seconds during which each resource is busy."""
        bounds = {"HBM": self.least / (HBM[device] * HBM_PART)}
        if self.gemm:
            return bounds | {"GEMM": self.flop / GEMM}
        c = self.counts()
        if not c:
            return bounds
        sms = min(SMS, max(1, self.warps / self.per_block))
        sectors, units = c["global_sectors"] * self.units, self.units
        shared = (c["shared_load_bytes"] + c["shared_store_bytes"]) / 128 + c["bank_conflicts"]
        warps = min(self.warps, SMS * self.resident())
        far = min(1, self.least / (sectors * 32))
        latency = far * HBM_LATENCY + (1 - far) * L2_LATENCY
        return bounds | {
            "L2": sectors * 32 / L2,
            "L1": max(sectors / 4, c["global_requests"] * units) / (sms * CLOCK),
            "shared": shared * units / (sms * CLOCK),
            "issue": c["instructions"] * units / (4 * sms * CLOCK * ISSUE_PART),
            "mma": c["tensor_flop"] * units / (MMA * sms / SMS),
            "latency": c["global_requests"] * units * latency / (IN_FLIGHT.get(self.name, 4) * warps),
        }

    def seconds(self, device: str) -> float:
        return max(max(self.bounds(device).values()), LEAST_TIME * self.launches)

    def bound(self, device: str) -> str:
        bounds = self.bounds(device)
        if self.seconds(device) > max(bounds.values()):
            return "launch"
        return max(bounds, key=lambda name: bounds[name])


def gemm(rows: int, k: int, n: int, label: str, *, accumulate: bool = False, chunked: bool = False, times: float = 1) -> Work:
    """Returns a GEMM of bf16 to f32; `chunked` along the outputs, as in the forward pass."""
    least = 2 * rows * k + 2 * k * n + 4 * rows * n * (2 if accumulate else 1)
    launches = -(-n // CHUNK) if chunked else 1
    return Work(f"GEMM {label}", least * times, 2 * rows * k * n * times, launches * times, gemm=True)


def copy(bytes_: float, label: str, times: float = 1) -> Work:
    return Work(label, bytes_ * times, launches=times)


def each(name: str, rows: int, width: int, bytes_: float, times: float = 1, flop: float = 0, launches: float = 0) -> Work:
    """Returns a kernel whose units are elements."""
    elements = rows * width
    of_thread = 4 if name.startswith(("round", "activate")) else 1
    if name.startswith("kv_write"):
        of_thread = 2
    spread = name.startswith(("activate", "round", "gather", "scatter", "kv_write"))
    warps = elements / 32 / of_thread if spread else rows * 8
    return Work(name, elements * bytes_ * times, elements * flop * times, launches or times, elements * times, warps)


def ceil(x: float, by: float) -> int:
    return -int(-x // by)


def lora(rows: int, kind: str, times: float = 1) -> list[Work]:
    """Returns a kernel on adapters of all layers: shrink, expand, or either of the backward pass."""
    side = 0 if kind in ("shrink", "expand_backward") else 1
    few = rows <= 512
    name = "tensor_lora_" + kind + ("_few" if kind == "shrink" and few else "")
    shape = LORA_ONE if kind == "shrink" and few or kind == "expand" and rows <= 64 else LORA_MANY
    # The line of one row equals that of a whole tile of rows.
    counted_rows = rows if shape == LORA_MANY else ceil(rows, 8 if kind == "shrink" else 64)
    found = []
    for call in CALLS:
        widths = [LINEAR[module][side] for module in call]
        narrow = 2 * rows * RANK * len(call) + 2 * RANK * sum(widths)
        # The shrinks read bf16; the others write f32, to which the GEMM adds.
        onto = kind == "expand" and call[0] in RESIDUAL
        bytes_ = 2 if kind.startswith("shrink") else 8 if onto else 4
        # Inputs are read once for all layers of a call, and their gradient is written once.
        wide = rows * (max(widths) if side == 0 else sum(widths)) * bytes_
        if kind == "shrink":
            warps = ceil(rows, 8) * RANK / 8 * 16 * len(call) if few else ceil(rows, 64) * 4 * len(call)
        elif kind == "shrink_backward":
            warps = ceil(rows, 64) * 4 * len(call)
        elif kind == "expand":
            warps = ceil(rows, 64) * 4 * sum(ceil(width, 128) for width in widths)
        else:
            warps = ceil(rows, 64) * 4 * ceil(max(widths), 64)
        products = RANK * sum(widths) * times
        uploads = times if kind.startswith("shrink") else 0
        of = shape + (ONTO if onto else "")
        work = Work(name, (narrow + wide) * times, 2 * rows * products, times, counted_rows * products, warps, of, uploads=uploads)
        work.per_block = 16 if name.endswith("_few") else 4
        found.append(work)
    return found


def gradients(rows: int, times: float) -> list[Work]:
    """Returns the gradients of A and B: a launch for each call computes both."""
    found = []
    for call in CALLS:
        blocks = sum(ceil(width, 64) for module in call for width in LINEAR[module])
        for side, part in enumerate("AB"):
            widths = [LINEAR[module][side] for module in call]
            products = rows * RANK * sum(widths) * times
            # Both sides are bf16. Inputs are read by each layer of the call.
            least = (2 * rows * (sum(widths) + len(widths) * RANK) + 8 * RANK * sum(widths)) * times
            name, shape = "tensor_outer_products", LORA_GRADIENT[part]
            found.append(Work(name, least, 2 * products, times / 2, products, 8 * blocks, shape, uploads=times))
    return found


@dataclass
class Design:
    """Possible changes: activations saved in bf16, attention at the rates of published kernels."""

    narrow: bool = False
    attention: bool = False


def adapters_of(rows: int, kinds: tuple[str, ...], times: float) -> list[Work]:
    return [work for kind in kinds for work in lora(rows, kind, times)]


def attention(design: Design, sequences: int, blocks: float) -> list[Work]:
    pairs = sequences * HEADS * LENGTH * (LENGTH + 1) / 2
    rows = sequences * LENGTH
    # One tile of queries contains 16 rows of the four heads of a key head.
    tiles = sequences * KV_HEADS * sum((16 * i + 15) // 32 + 1 for i in range(LENGTH // 16))
    least, flop = rows * (Q * 8 + 2 * KV * 2) * blocks, 4 * DIM * pairs * blocks
    if design.attention:
        return [Work("GEMM attention", least, flop * GEMM / 250e12, blocks, gemm=True)]
    # The counted line has 17 tiles for each block of threads; here the average is 33.
    return [Work("tensor_attention_128", least, flop, blocks, tiles * blocks, shape=PREFILLED, per_block=4)]


def attention_backward(design: Design, sequences: int, blocks: float) -> list[Work]:
    pairs = sequences * HEADS * LENGTH * (LENGTH + 1) / 2
    rows = sequences * LENGTH
    flop, least = 10 * DIM * pairs * blocks, rows * (3 * Q * 4 + 2 * KV * 4) * blocks
    tiles = sequences * KV_HEADS * sum((16 * i + 15) // 32 + 1 for i in range(LENGTH // 16))
    steps = sequences * HEADS * sum((LENGTH - 64 * i) // 16 for i in range(LENGTH // 64))
    if design.attention:
        return [Work("GEMM attention", least, flop * GEMM / 180e12, blocks, gemm=True)]
    q, kv = "tensor_attention_backward_q_128", "tensor_attention_backward_kv_128"
    return [
        Work("tensor_attention_prepare", rows * Q * 16 * blocks, 0, blocks, rows * HEADS * blocks),
        # Of five products for each pair, both kernels compute the gradients of scores and probabilities.
        Work(q, least, flop * 2 / 5, blocks, tiles * blocks, shape=PREFILLED, per_block=4),
        Work(kv, least, flop * 3 / 5, blocks, steps * blocks, shape=PREFILLED, per_block=4),
    ]


def block_forward(design: Design, sequences: int) -> list[Work]:
    rows, blocks = sequences * LENGTH, BLOCKS
    return [
        each("norm_bf16", rows, HIDDEN, 6, 2 * blocks),
        gemm(rows, HIDDEN, QKV, "forward", accumulate=True, chunked=True, times=blocks),
        # To other memory, because v is copied.
        Work("rotate", rows * QKV * 8 * blocks, 0, blocks, rows * blocks, rows * 48, uploads=blocks),
        each("kv_write_bf16", rows, 2 * KV, 6, blocks),
        *attention(design, sequences, blocks),
        each("round_to_bf16", rows, HIDDEN, 6, blocks),
        gemm(rows, Q, HIDDEN, "forward", accumulate=True, chunked=True, times=blocks),
        gemm(rows, HIDDEN, 2 * INNER, "forward", accumulate=True, chunked=True, times=blocks),
        each("activate_bf16", rows, INNER, 10, blocks),
        gemm(rows, INNER, HIDDEN, "forward", accumulate=True, chunked=True, times=blocks),
        *adapters_of(rows, ("shrink", "expand"), blocks),
    ]


def block_backward(design: Design, sequences: int) -> list[Work]:
    rows, blocks = sequences * LENGTH, BLOCKS
    return [
        # The gradient of the residual stream for down and for o, and attention's output for the gradient of A.
        each("round_to_bf16", rows, 2 * HIDDEN + Q, 6, blocks, launches=3 * blocks),
        gemm(rows, HIDDEN, INNER, "input gradients", accumulate=True, times=blocks),
        each("activate_backward_bf16", rows, INNER, 18, blocks),
        gemm(rows, 2 * INNER, HIDDEN, "input gradients", accumulate=True, times=blocks),
        each("norm_bf16", rows, HIDDEN, 6, 2 * blocks),
        each("norm_backward", rows, HIDDEN, 16, 2 * blocks),
        gemm(rows, HIDDEN, Q, "input gradients", accumulate=True, times=blocks),
        *attention_backward(design, sequences, blocks),
        Work("rotate_back_rounded", rows * (6 * QKV + 4 * (Q + KV)) * blocks, 0, blocks, rows * blocks, rows * 48, uploads=blocks),
        gemm(rows, QKV, HIDDEN, "input gradients", accumulate=True, times=blocks),
        *adapters_of(rows, ("shrink_backward", "expand_backward"), blocks),
        *gradients(rows, blocks),
    ]


def ends(sequences: int) -> list[Work]:
    """Returns the embedding, and the loss head forward and backward, whose logits are computed again."""
    rows = sequences * LENGTH
    chunks = -(-VOCAB // CHUNK)
    head = [gemm(rows, HIDDEN, VOCAB, "loss head", chunked=True) for _ in range(2)]
    # Every chunk reads and writes the gradient of hidden states.
    back = 2 * rows * VOCAB + 2 * VOCAB * HIDDEN + 8 * rows * HIDDEN * chunks
    return [
        each("embed_bf16", rows, HIDDEN, 6),
        each("norm_f32", rows, HIDDEN, 8),
        each("gather_rows", rows, HIDDEN, 8, 2),
        each("scatter_rows", rows, HIDDEN, 8),
        copy(rows * HIDDEN * 4, "memset", 3),
        each("round_to_bf16", rows, 2 * HIDDEN, 6, launches=2),
        *head,
        each("head_chunk", rows, VOCAB, 4, launches=chunks),
        each("head_gradient_bf16", rows, VOCAB, 6, launches=chunks),
        Work("GEMM loss head", back, 2 * rows * VOCAB * HIDDEN, chunks, gemm=True),
        each("norm_backward", rows, HIDDEN, 16),
    ]


def update() -> list[Work]:
    """Returns AdamW and the rounding of adapters."""
    params = BLOCKS * ADAPTER
    return [
        Work("squares", 4 * params, 0, 1, params),
        Work("adamw", 28 * params, 0, 1, params),
        Work("round_to_bf16", 6 * params, 0, 2 * len(LINEAR) * BLOCKS, params / 4),
    ]


# Bytes per row that a block saves, and of other live data.
SAVED, WORKING = 4 * (2 * HIDDEN + 2 * QKV + Q + HEADS + 2 * INNER), 4 * (5 * INNER + 2 * QKV)


def sequences_of_pass(device: str, design: Design) -> int:
    """Plans a pass as the trainer does by default: as many rows as let every block save its activations."""
    weights = 2 * (WEIGHTS + VOCAB * HIDDEN)
    # A checkpoint of all weights must fit beside them.
    left = 0.8 * MEMORY[device] - 2 * weights
    row = BLOCKS * (SAVED + 4 * KV) + WORKING
    budget = min(min(GIB, left / 8) + 0.6 * (left - RUNS), ENOUGH_ROWS * row * 9 / 8)
    fits = int(min(budget / (BLOCKS * (SAVED / (1 + design.narrow) + 4 * KV) + WORKING), PASS_ROWS)) // LENGTH
    # An even part of the request; a single sequence that does not fit would compute blocks again.
    return max(number for number in (1, 2, 4) if number <= max(fits, 1))


def pass_of(design: Design, sequences: int) -> list[Work]:
    return block_forward(design, sequences) + block_backward(design, sequences) + ends(sequences)


def lora_step(device: str, design: Design) -> list[Work]:
    sequences = sequences_of_pass(device, design)
    return pass_of(design, sequences) * (SEQUENCES // sequences) + update()


def decode(batch: int, adapters: bool) -> list[Work]:
    """Returns the work of one token for each of `batch` sequences; with one adapter for all, or none."""
    b = BLOCKS
    keys, splits = batch * CONTEXT * 2 * KV * 2 * b, CONTEXT // 128
    apart = batch * KV_HEADS < 264
    # Counted as if one block of threads handled all splits of keys where they are not separate.
    warps = batch * KV_HEADS * 4 * (splits if apart else 1)
    tiles = batch * KV_HEADS * CONTEXT / 32 * b
    attend = [Work("tensor_attention_split_128", keys, 0, b, tiles, warps, DECODED, per_block=4)]
    if apart:
        parts = batch * HEADS * splits
        attend.append(Work("tensor_attention_join", parts * DIM * 4 * b, 0, b, parts * b, batch * HEADS * 4, DECODED, per_block=4))
    on_adapters = adapters_of(batch, ("shrink", "expand"), b) if adapters else []
    wide = f"weights, {batch} rows"
    return [
        each("embed_bf16", batch, HIDDEN, 6),
        each("norm_bf16", batch, HIDDEN, 6, 2 * b + 1),
        gemm(batch, HIDDEN, QKV, wide, accumulate=adapters, chunked=True, times=b),
        Work("rotate", batch * (Q + KV) * 8 * b, 0, b, batch * b, batch * 40, uploads=b, per_block=4),
        each("kv_write_bf16", batch, 2 * KV, 6, b),
        *attend,
        each("round_to_bf16", batch, HIDDEN, 6, b),
        gemm(batch, Q, HIDDEN, wide, accumulate=True, chunked=True, times=b),
        gemm(batch, HIDDEN, 2 * INNER, wide, accumulate=adapters, chunked=True, times=b),
        each("activate_bf16", batch, INNER, 10, b),
        gemm(batch, INNER, HIDDEN, wide, accumulate=True, chunked=True, times=b),
        *on_adapters,
        gemm(batch, HIDDEN, VOCAB, wide, chunked=True),
        Work("row_log_sums", batch * VOCAB * 4, 0, 1, batch * VOCAB, batch * 8, uploads=2),
        Work("sample", batch * VOCAB * 4, 0, 1, batch * VOCAB, batch * 16, uploads=4, per_block=16),
    ]


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


def model_flop() -> float:
    """Returns the operations of a LoRA step: GEMMs of blocks and loss head, attention and adapters; nothing twice."""
    rows = SEQUENCES * LENGTH
    pairs = SEQUENCES * HEADS * LENGTH * (LENGTH + 1) / 2
    return rows * (4 * WEIGHTS + 6 * BLOCKS * ADAPTER) + BLOCKS * pairs * DIM * 14


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
