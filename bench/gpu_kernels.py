"""Costs of a kernel on a GPU: what the simulator counted of it, and how long each part of the GPU is busy with that."""

from __future__ import annotations

import csv
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


def counts_of(kernel: str, shape: str | None) -> dict[str, float]:
    """Returns counters per unit; without a shape those of the only one, or of SHAPE_OF."""
    shape = shape or SHAPE_OF.get(kernel)
    matching = [counts for (name, of), counts in COUNTED.items() if name == kernel and shape in (None, of)]
    if len(matching) != 1:
        raise SystemExit(f"{COUNTS.name} has {len(matching)} lines of {kernel}, {shape}: expected one")
    return matching[0]


def ceil(x: float, by: float) -> int:
    return -int(-x // by)


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
