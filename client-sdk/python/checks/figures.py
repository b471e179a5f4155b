"""Draws the figures of docs/users/recipes.md from the metrics of runs: `python figures.py RUNS OUTPUT`.

A figure has one metric over the steps: the mean of the seeds as a line, their range as a band.
"""

import json
import math
import pathlib
import sys
from statistics import mean
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 560, 276, 58, 40, 48, 16
FONT = 'font-family="sans-serif" font-size="12"'
COLOURS = ["#1b6ca8", "#c2542d", "#3f7d3a"]
# Name of the figure: its title, the label of its axis, and its lines: label, runs of this name and a seed, metric.
FIGURES = {
    "sft": ("sft: Pig Latin", "loss per token", [("training", "sft", "loss"), ("held out", "sft", "validation_loss")]),
    "dpo": ("dpo: short answers", "loss", [("training", "dpo", "loss"), ("held out", "dpo", "held_out/loss")]),
    "reward_model": ("reward_model: short answers", "loss", [
        ("training", "reward_model", "loss"), ("held out", "reward_model", "held_out/loss"),
    ]),
    "ppo": ("ppo: arithmetic", "reward", [("samples", "ppo", "reward"), ("held out", "ppo", "held_out/reward")]),
    "distill": ("distill: what grpo made as the teacher", "KL per token", [
        ("reverse, on policy", "distill_on", "held_out/reverse_kl"),
        ("forward, off policy", "distill_off", "held_out/forward_kl"),
    ]),
    "grpo": ("grpo: arithmetic", "reward", [("samples", "grpo", "reward"), ("held out", "grpo", "held_out/reward")]),
    "eval": ("eval: arithmetic, before and after grpo", "pass@k", [
        ("base model", "eval_base", "pass@k"), ("after grpo", "eval_trained", "pass@k"),
    ]),
    "agent_env": ("agent_env: guess in three turns", "reward", [
        ("samples", "agent_env", "reward"), ("held out", "agent_env", "held_out/reward"),
    ]),
    "async_grpo": ("async_grpo and grpo with a slow environment", "seconds since the first step", [
        ("grpo", "slow_sync", "elapsed"), ("async_grpo, staleness 2", "slow_async", "elapsed"),
    ]),
    "async_reward": ("async_grpo and grpo with a slow environment", "reward", [
        ("grpo", "slow_sync", "reward"), ("async_grpo, staleness 2", "slow_async", "reward"),
    ]),
}  # fmt: skip
# What the horizontal axis has, if not steps.
AXES = {"eval": "k"}
# Metrics of the end of a step.
AFTER = ("held_out", "validation", "eval/", "elapsed", "pass@")


def series(runs: pathlib.Path, prefix: str, metric: str) -> dict[float, list[float]]:
    """Values of all seeds by the number of updates that the weights had: samples and losses of a step come before its
    update, evaluations after it."""
    found: dict[float, list[float]] = {}
    for path in sorted(runs.glob(f"{prefix}-[0-9]*/metrics.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            # Not that of a step that ends with an evaluation.
            if not any(key.startswith("held_out") and not key.endswith("_before") for key in line):
                line["elapsed"] = line["time"] - lines[0]["time"]
            if f"{metric}_before" in line:
                found.setdefault(0, []).append(line[f"{metric}_before"])
            if metric in line:
                found.setdefault(line["step"] + metric.startswith(AFTER), []).append(line[metric])
    return found


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Returns the multiples of 1, 2 or 5 times a power of ten in a range, up to a maximum number."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (power * factor) < most)
    first = math.ceil(low / step - 1e-9)
    return [round((first + at) * step, 9) for at in range(int((high - first * step) / step + 1e-9) + 1)]


def figure(title: str, label: str, axis: str, lines: list[tuple[str, dict[float, list[float]]]]) -> str:
    """An SVG document."""
    values = [value for _, points in lines for several in points.values() for value in several]
    steps = [step for _, points in lines for step in points]
    low, high, last = min(0.0, *values), max(values) * 1.05, max(steps)
    x = lambda step: LEFT + (WIDTH - LEFT - RIGHT) * step / last  # noqa: E731
    y = lambda value: HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)  # noqa: E731
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-weight="bold">{escape(title)}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{escape(axis)}</text>',
        f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(label)}</text>',
    ]
    for tick in ticks(low, high):
        at = f"{y(tick):.1f}"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{float(at) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in [tick for tick in ticks(0, last) if tick == int(tick)]:
        parts.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for number, (name, points) in enumerate(lines):
        colour = COLOURS[number]
        upper = [f"{x(step):.1f},{y(max(points[step])):.1f}" for step in sorted(points)]
        lower = [f"{x(step):.1f},{y(min(points[step])):.1f}" for step in sorted(points, reverse=True)]
        middle = [f"{x(step):.1f},{y(mean(points[step])):.1f}" for step in sorted(points)]
        parts.append(f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.18"/>')
        parts.append(f'<polyline points="{" ".join(middle)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        place = LEFT + 170 * number
        parts.append(f'<rect x="{place}" y="27" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{place + 14}" y="36">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def draw(runs: pathlib.Path, output: pathlib.Path) -> list[str]:
    """Writes all figures for which there are runs; returns their names."""
    output.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, (title, label, lines) in FIGURES.items():
        found = [(text, series(runs, prefix, metric)) for text, prefix, metric in lines]
        found = [(text, points) for text, points in found if points]
        if found:
            (output / f"{name}.svg").write_text(figure(title, label, AXES.get(name, "steps"), found))
            drawn.append(name)
    return drawn


if __name__ == "__main__":
    print(*draw(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
