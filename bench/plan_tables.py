"""Prints the tables of docs/operators/planning.md: bytes that ranks send for each token, and projections.

    python bench/plan_tables.py [--binary target/release/trainyard]
"""

import argparse
import json
import subprocess
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Model, layout, and whether all parameters are trained.
SENT = [
    *[("llama-3.1-8b", layout, False) for layout in ("tp=2", "tp=4", "tp=8", "dp=2", "dp=8")],
    *[("llama-3.1-8b", layout, True) for layout in ("dp=8", "dp=8,zero=3")],
    *[("qwen3-235b-a22b", layout, False) for layout in ("tp=8", "ep=8", "tp=2,ep=4")],
]
PROJECTED = [
    *[("llama-3.1-8b", layout) for layout in ("tp=8", "tp=2,dp=4", "dp=8")],
    *[("llama-3.1-70b", layout) for layout in ("tp=8", "tp=4,dp=2")],
    *[("qwen3-235b-a22b", layout) for layout in ("ep=8", "tp=8", "tp=4,ep=2", "tp=2,ep=4")],
]
NVLINK = ["--gpus-per-node", "8"]
NETWORK = ["--gpus-per-node", "1", "--link", "400g"]
GIB = 1 << 30
# Sequences sampled at a time, by default.
SEQUENCES = 16


def plan(binary: Path, model: str, layout: str, device: str, *flags: str) -> dict:
    """Returns the output of `trainyard plan`."""
    command = [binary, "plan", "--model", model, "--parallel", layout, "--device", device, "--json", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["plan"]


def row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def by_purpose(moved: Iterable[dict]) -> dict[str, tuple[list[str], int, float]]:
    """Returns kinds of collectives, bytes, and the least possible bytes, by purpose, in order."""
    found = {}
    for purpose, parts in groupby(moved, key=lambda part: part["purpose"]):
        parts = list(parts)
        kinds = list(dict.fromkeys(part["kind"].replace("_", "-") for part in parts))
        found[purpose] = (kinds, sum(part["bytes"] for part in parts), sum(part["least_bytes"] for part in parts))
    return found


def sent_rows(binary: Path) -> Iterable[str]:
    for model, layout, full in SENT:
        made = plan(binary, model, layout, "h200", *(["--full"] if full else []))
        tokens = made["tokens_per_step"] / made["layout"]["dp"]
        training, decoding = by_purpose(made["training_moved"]), by_purpose(made["decoding_moved"])
        for purpose in dict.fromkeys([*training, *decoding]):
            kinds, sent, least = training.get(purpose, ([], None, None))
            others, sampled, _ = decoding.get(purpose, ([], None, None))
            trained = [per_token(count, tokens) for count in (sent, least)]
            if trained[0] == "0":
                continue  # Rounds of agreement: some bytes in a step.
            what = f"{purpose} ({' and '.join(kinds or others)})"
            name = f"{model}, all parameters" if full else model
            yield row(name, f"`{layout}`", what, *trained, per_token(sampled, SEQUENCES))


def per_token(count: float | None, tokens: float) -> str:
    return "–" if count is None else f"{round(count / tokens):,}"


def limit(step: dict) -> str:
    return step["limit"].removesuffix("_bandwidth").replace("_", " ")


def projected_rows(binary: Path) -> Iterable[str]:
    for model, layout in PROJECTED:
        for device in ("h100", "h200"):
            near, far = (plan(binary, model, layout, device, *flags) for flags in (NVLINK, NETWORK))
            held = f"{sum(near['memory'].values()) / GIB:.1f}"
            missing = near["exceeds_by"]
            if missing:
                held += f", {missing / GIB:.1f} too many"
            if near["saved_blocks"] < near["blocks"]:
                held += f" ({near['blocks'] - near['saved_blocks']} of {near['blocks']} blocks recomputed)"
            speeds = ["–"] * 4 if missing else [
                f"{made[f'{what}_tokens_per_second']:,.0f}, {limit(made[step])}"
                for what, step in (("training", "training"), ("sampled", "decoding"))
                for made in (near, far)
            ]  # fmt: skip
            yield row(model, f"`{layout}`", device, held, *speeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/trainyard")
    binary = parser.parse_args().binary
    print("\n".join(sent_rows(binary)), "\n", "\n".join(projected_rows(binary)), sep="\n")


if __name__ == "__main__":
    main()
