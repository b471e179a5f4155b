"""Runs each recipe in a small form against the server of `TINKER_BASE_URL` and checks what it did.

    python client-sdk/python/checks/run.py --runs .cache/recipes [--only sft,dpo] [--seeds 2] [--resume]

Ends with 0 only if every loss or reward moved as it should, every resumed run repeated the numbers of the uninterrupted
one to the bit, and staleness kept its bound.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

import data
import figures
import tinker

HERE = pathlib.Path(__file__).resolve().parent
COMMON = {"rank": 16, "train_unembed": "false", "eval_every": 4, "keep": 4}
ARITHMETIC = {"environment.name": "arithmetic", "environment.options.largest": 9, "environment.options.partial": 0.3}
RL = {"groups": 4, "group_size": 8, "limits.max_tokens": 16, "eval_tasks": 24, "adam.learning_rate": 3e-4}
# A step has so little work that the delay of the environment is most of it. Held-out tasks wait too, so they are played
# before the first step and after the last, which are not measured.
SLOW = {
    **ARITHMETIC,
    **RL,
    "groups": 2,
    "limits.max_tokens": 8,
    "eval_every": 0,
    "adam.learning_rate": 6e-4,
    "environment.options.delay": 10.0,
    "steps": 10,
}
KS = (1, 2, 4)
MOST = 3
"""Squares in a picture."""
VISION = "tiny-vision"
"""A model with a tower, which the server serves beside the first one."""


class Checks:
    """What was checked, and whether it held."""

    def __init__(self, runs: pathlib.Path, seeds: int, resume: bool) -> None:
        self.runs, self.seeds, self.resume = runs, seeds, resume
        self.sets = data.write(runs / "data")
        self.failed: list[str] = []
        self.seconds: dict[str, float] = {}

    def check(self, what: str, held: bool, detail: str) -> None:
        print(f"{'PASS' if held else 'FAIL'}  {what}: {detail}", flush=True)
        if not held:
            self.failed.append(what)

    def recipe(self, name: str, run: str, fresh: bool = True, **settings: object) -> list[dict]:
        """Runs a recipe to its end in the folder of a run; returns the lines of its metrics."""
        folder = self.runs / run
        if fresh and not self.resume:
            shutil.rmtree(folder, ignore_errors=True)
        chosen = {"folder": folder, **COMMON, **settings}
        self.command(name, run, chosen)
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def command(self, name: str, run: str, settings: dict[str, object]) -> str:
        flags = [f"--{key}={value}" for key, value in settings.items()]
        began = time.monotonic()
        log = self.runs / f"{run}.log"
        with log.open("w") as errors:
            done = subprocess.run(
                [sys.executable, "-m", f"trainyard.recipes.{name}", *flags],
                stdout=subprocess.PIPE, stderr=errors, text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), str(HERE)])},
            )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{name} ended with {done.returncode}:\n{log.read_text()[-3000:]}")
        self.seconds[run] = time.monotonic() - began
        return done.stdout

    def every_seed(self, name: str, run: str, **settings: object) -> list[list[dict]]:
        """Runs a recipe with each seed."""
        return [self.recipe(name, f"{run}-{seed}", seed=seed, **settings) for seed in range(self.seeds)]

    def moved(self, run: str, metric: str, seeds: list[list[dict]], up: bool) -> None:
        """Checks that a metric measured before the first and after the last step moved in the right direction, with
        every seed."""
        ends = [(lines[0][f"{metric}_before"], lines[-1][metric]) for lines in seeds]
        held = all((after > before) if up else (after < before) for before, after in ends)
        self.check(f"{run}: {metric} {'rises' if up else 'falls'}", held, shown(ends))

    def resumes(self, name: str, run: str, **settings: object) -> None:
        """Resumes the run with seed 0 from an earlier checkpoint, and checks that the metrics are the same to the
        bit."""
        source, folder = self.runs / f"{run}-0", self.runs / f"{run}_resumed-0"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        checkpoints = (folder / "checkpoints.jsonl").read_text().splitlines(keepends=True)
        (folder / "checkpoints.jsonl").write_text(checkpoints[0])
        self.recipe(name, f"{run}_resumed-0", fresh=False, seed=0, **settings)
        first = json.loads(checkpoints[0])["step"]
        whole, parts = timeless(source), timeless(folder)
        self.check(f"{run}: resumed to the bit", whole == parts, f"from step {first} of {len(whole)}")

    def made(self, recipe: Callable[["Checks"], None], run: str) -> dict:
        """Returns the weights that a run of a recipe published; runs the recipe first if the server has no such
        weights."""
        final = self.runs / run / "final.json"
        if final.exists() and is_there(json.loads(final.read_text())["sampler"]):
            return json.loads(final.read_text())
        recipe(self)
        return json.loads(final.read_text())


def is_there(path: str) -> bool:
    """Whether the server has weights."""
    with tinker.ServiceClient() as service:
        try:
            service.create_sampling_client(model_path=path).result()
        except tinker.NotFoundError:
            return False
        return True


def timeless(folder: pathlib.Path) -> list[dict]:
    """Returns metrics without those that depend on the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("time", "seconds_waiting")} for line in lines]


def shown(ends: Sequence[tuple[float, float]]) -> str:
    """Pairs of a value before and one after, of each seed."""
    return ", ".join(f"{before:.3f} -> {after:.3f}" for before, after in ends)


def sft(checks: Checks) -> None:
    sets = {"data": checks.sets["chats"], "validation": checks.sets["held_out_chats"]}
    settings = {**sets, "steps": 12, "save_every": 6, "batch_size": 16, "adam.learning_rate": 1e-3}
    checks.moved("sft", "validation_loss", checks.every_seed("sft", "sft", **settings), up=False)
    checks.resumes("sft", "sft", **settings)


def dpo(checks: Checks) -> None:
    sets = {"data": checks.sets["pairs"], "validation": checks.sets["held_out_pairs"]}
    settings = {**sets, "steps": 8, "save_every": 4, "batch_size": 8, "adam.learning_rate": 2e-4}
    seeds = checks.every_seed("dpo", "dpo", **settings)
    checks.moved("dpo", "held_out/loss", seeds, up=False)
    accuracy = [lines[-1]["held_out/accuracy"] for lines in seeds]
    checks.check("dpo: held-out pairs are told apart", min(accuracy) >= 0.9, str(accuracy))
    checks.resumes("dpo", "dpo", **settings)
    for loss in ("ipo", "simpo"):
        lines = checks.recipe("dpo", f"{loss}-0", **settings | {"loss": loss, "steps": 4})
        checks.moved(loss, "held_out/loss", [lines], up=False)
    if importlib.util.find_spec("torch"):
        lines = checks.recipe("dpo", "kto-0", **settings | {"loss": "kto", "steps": 4})
        checks.moved("kto", "held_out/margin", [lines], up=True)
    else:
        print("SKIP  kto: its loss is traced by PyTorch, which is not installed", flush=True)


def distill(checks: Checks) -> None:
    """Checks `distill`: the teacher is the student after `grpo`."""
    path = checks.made(grpo, "grpo-0")["sampler"]
    sets = {"data": checks.sets["sums"], "validation": checks.sets["held_out_sums"]}
    settings = {**sets, "teacher": path, "steps": 8, "save_every": 4, "eval_every": 4, "max_tokens": 12}
    settings |= {"samples": 4, "batch_size": 8, "adam.learning_rate": 3e-4}
    on = settings | {"mode": "on_policy", "center": "true"}
    checks.moved("distill_on", "held_out/reverse_kl", checks.every_seed("distill", "distill_on", **on), up=False)
    checks.resumes("distill", "distill_on", **on)
    off = settings | {"mode": "off_policy", "samples": 1, "top_k": 16}
    checks.moved("distill_off", "held_out/forward_kl", checks.every_seed("distill", "distill_off", **off), up=False)


def grpo(checks: Checks) -> None:
    evals = '[{name = "sums", every = 5, tasks = 24, samples = 2, max_tokens = 16}]'
    settings = {
        **ARITHMETIC,
        **RL,
        "steps": 10,
        "save_every": 5,
        "eval_every": 5,
        "evals": evals,
        "best": "eval/sums/pass@1",
    }
    seeds = checks.every_seed("grpo", "grpo", **settings)
    checks.moved("grpo", "held_out/reward", seeds, up=True)
    checks.moved("grpo", "eval/sums/pass@1", seeds, up=True)
    ends = [
        json.loads((checks.runs / f"grpo-{seed}" / "final.json").read_text())["best"] for seed in range(checks.seeds)
    ]
    best = [max(line.get("eval/sums/pass@1", 0.0) for line in lines) for lines in seeds]
    checks.check("grpo: the best checkpoint is kept", [one["value"] for one in ends] == best, str(best))
    checks.resumes("grpo", "grpo", **settings)


def reward_model(checks: Checks) -> None:
    sets = {"data": checks.sets["pairs"], "validation": checks.sets["held_out_pairs"]}
    settings = {**sets, "steps": 8, "save_every": 4, "batch_size": 8, "adam.learning_rate": 2e-4}
    seeds = checks.every_seed("reward_model", "reward_model", **settings)
    checks.moved("reward_model", "held_out/loss", seeds, up=False)
    accuracy = [lines[-1]["held_out/accuracy"] for lines in seeds]
    checks.check("reward_model: held-out pairs are told apart", min(accuracy) >= 0.9, str(accuracy))
    checks.resumes("reward_model", "reward_model", **settings)


def with_critic(**more: object) -> dict[str, Any]:
    """Settings of recipes with a critic, whose tasks have one episode each."""
    without = {key: value for key, value in RL.items() if key not in ("groups", "group_size")}
    return {**ARITHMETIC, **without, "tasks": 32, "critic.rank": 16, "critic.adam.learning_rate": 3e-4, **more}


def ppo(checks: Checks) -> None:
    settings = with_critic(steps=10, save_every=5, eval_every=5, minibatches=2)
    seeds = checks.every_seed("ppo", "ppo", **settings)
    checks.moved("ppo", "held_out/reward", seeds, up=True)
    # It begins at 0, and what it should expect rises with the reward.
    errors = [mean(abs(line["value"] - line["return"]) for line in lines[-3:]) for lines in seeds]
    checks.check("ppo: the critic expects what comes", max(errors) < 0.25, ", ".join(f"{one:.3f}" for one in errors))
    checks.resumes("ppo", "ppo", **settings)


def evaluation(checks: Checks) -> None:
    """Checks `eval`: pass@k of the base model and of the model after `grpo`."""
    ends, rising = [], True
    for seed in range(checks.seeds):
        made = checks.made(grpo, f"grpo-{seed}")
        found = {}
        for kind, name in (("base", made["model"]), ("trained", made["sampler"])):
            settings = {"model": name, "tasks": 24, "samples": max(KS), "k": ",".join(map(str, KS)), "max_tokens": 16}
            found[kind] = json.loads(checks.command("eval", f"eval_{kind}", settings | ARITHMETIC | {"seed": seed}))
            passed = [found[kind][f"pass@{k}"] for k in KS]
            rising = rising and passed == sorted(passed)
            folder = checks.runs / f"eval_{kind}-{seed}"
            folder.mkdir(exist_ok=True)
            # For the figure, which has k where others have steps.
            lines = [{"step": k - 1, "time": 0.0, "pass@k": found[kind][f"pass@{k}"]} for k in KS]
            (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        ends.append((found["base"]["pass@1"], found["trained"]["pass@1"]))
    checks.check("eval: pass@1 rises", all(after > before for before, after in ends), shown(ends))
    checks.check("eval: pass@k does not fall with k", rising, "both models")


def agent_env(checks: Checks) -> None:
    """Checks `agent_env`: several turns, in an environment that is not part of the package."""
    settings = {
        **RL,
        "environment.name": "guess:Guess",
        "limits.max_turns": 3,
        "limits.max_tokens": 6,
        "algorithm": "grpo",
        "mask_truncated": "false",
        "steps": 10,
        "save_every": 5,
        "eval_every": 5,
    }
    seeds = checks.every_seed("agent_env", "agent_env", **settings)
    checks.moved("agent_env", "held_out/reward", seeds, up=True)
    turns = [lines[0]["turns"] for lines in seeds]
    checks.check("agent_env: episodes have several turns", min(turns) > 2, ", ".join(f"{one:.2f}" for one in turns))
    checks.resumes("agent_env", "agent_env", **settings)


def counting(checks: Checks) -> None:
    """Checks images, on a tiny random model with a vision tower: `sft` teaches it to count badly, `grpo` better."""
    begun = {"model": VISION, "train_unembed": "true", "eval_every": 0}
    guesses = data.guesses(checks.runs / "data" / "guesses.jsonl", MOST)
    first = {"data": guesses, "steps": 150, "save_every": 150, "batch_size": 16, "adam.learning_rate": 3e-3}
    checks.recipe("sft", "guessing-0", seed=0, **begun | first)
    saved = (checks.runs / "guessing-0" / "checkpoints.jsonl").read_text().splitlines()[-1]
    settings = begun | {
        "load": json.loads(saved)["path"],
        "environment.name": "counting",
        "environment.options.most": MOST,
        "groups": 8,
        "group_size": 8,
        "limits.max_tokens": 1,
        "eval_tasks": 24,
        "eval_every": 12,
        "adam.learning_rate": 6e-4,
        "steps": 24,
        "save_every": 12,
    }
    seeds = checks.every_seed("grpo", "counting", **settings)
    checks.moved("counting", "held_out/reward", seeds, up=True)
    checks.resumes("grpo", "counting", **settings)


def async_grpo(checks: Checks) -> None:
    """Checks `async_grpo`: the same work as `grpo` with an environment that takes seconds, at least 1.5 times as fast;
    and it learns."""
    sync = checks.every_seed("grpo", "slow_sync", **SLOW)
    others = checks.every_seed("async_grpo", "slow_async", staleness=2, segment_tokens=4, **SLOW)
    oldest = [max(line["staleness_max"] for line in lines) for lines in others]
    checks.check("async_grpo: staleness is at most 2", max(oldest) <= 2, str(oldest))
    # From the end of the first step to that of the last but one.
    span = lambda lines: lines[-2]["time"] - lines[0]["time"]  # noqa: E731
    ratios = [span(a) / span(b) for a, b in zip(sync, others, strict=True)]
    checks.check("async_grpo: 1.5 times as fast", min(ratios) >= 1.5, ", ".join(f"{ratio:.2f}" for ratio in ratios))
    checks.moved("async_grpo", "held_out/reward", others, up=True)
    # What is in flight depends on the clock, unless nothing may be.
    exact = SLOW | {"environment.options.delay": 0.0, "eval_tasks": 0, "staleness": 0, "steps": 4, "save_every": 2}
    checks.recipe("async_grpo", "async_exact-0", seed=0, **exact)
    checks.resumes("async_grpo", "async_exact", **exact)


def async_ppo(checks: Checks) -> None:
    """Checks `async_ppo`: it learns from samples that are a step old."""
    settings = with_critic(steps=10, save_every=5, eval_every=10, minibatches=2)
    seeds = checks.every_seed("async_ppo", "async_ppo", staleness=1, **settings)
    oldest = [max(line["staleness_max"] for line in lines) for lines in seeds]
    checks.check("async_ppo: staleness is at most 1", max(oldest) <= 1, str(oldest))
    checks.moved("async_ppo", "held_out/reward", seeds, up=True)
    exact = settings | {"tasks": 8, "eval_tasks": 0, "staleness": 0, "steps": 4, "save_every": 2}
    checks.recipe("async_ppo", "async_ppo_exact-0", seed=0, **exact)
    checks.resumes("async_ppo", "async_ppo_exact", **exact)


ALL = {
    one.__name__: one
    for one in (sft, dpo, reward_model, distill, grpo, ppo, evaluation, agent_env, counting, async_grpo, async_ppo)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", type=pathlib.Path, required=True, help="folder of the runs; runs of the same names are replaced"
    )
    parser.add_argument("--only", default=",".join(ALL), help="some of " + ", ".join(ALL))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--resume", action="store_true", help="go on with runs that are there, on a server that has their checkpoints"
    )
    parser.add_argument("--figures", type=pathlib.Path, help="folder for figures; none when absent")
    options = parser.parse_args()
    checks = Checks(options.runs, options.seeds, options.resume)
    began = time.monotonic()
    for name in options.only.split(","):
        ALL[name](checks)
    if options.figures:
        figures.draw(options.runs, options.figures)
    failed = f"FAILED: {', '.join(checks.failed)}" if checks.failed else "All checks passed"
    print(f"{failed} in {time.monotonic() - began:.0f} s")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
