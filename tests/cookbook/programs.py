"""The cookbook's programs, each in a form that two cores finish in minutes, and the metrics that each must reach."""

import re
from collections.abc import Callable
from dataclasses import dataclass

Metrics = list[dict]

RECIPES = "tinker_cookbook.recipes"
# The cookbook recognises models by name, so the test model is served under names that it knows.
BASE, CHAT = "Qwen/Qwen3.5-9B-Base", "Qwen/Qwen3.5-4B"
ANSWERER, TEACHER = "Qwen/Qwen3.5-9B", "Qwen/Qwen3.6-35B-A3B"
# Chat formats of these names need special tokens for thoughts.
THINKING = (CHAT, ANSWERER, TEACHER)

LOSS, REWARD, MIXED = "train_mean_nll", "env/all/reward/total", "env/all/by_group/frac_mixed"
SCORE, TRAINED_TOKENS = "reward/total", "tokens/trained"
FRESH = "behavior_if_log_dir_exists=delete"


class Unmet(Exception):
    """A program ended without an error, but its metrics are not the required ones."""


def values(metrics: Metrics, name: str) -> list[float]:
    found = [line[name] for line in metrics if line.get(name) is not None]
    if not found:
        known = sorted({key for line in metrics for key in line})
        raise Unmet(f"no metric {name}; there are {', '.join(known)}")
    return found


def falls(name: str) -> Callable[[Metrics], str]:
    """Requires that the last value is below the first."""

    def check(metrics: Metrics) -> str:
        found = values(metrics, name)
        seen = f"{name} {found[0]:.3f} → {found[-1]:.3f} in {len(found)} steps"
        if not found[-1] < found[0]:
            raise Unmet(seen)
        return seen

    return check


def trained(steps: int, name: str = REWARD, mixed: str | None = MIXED) -> Callable[[Metrics], str]:
    """Requires rewards in each step, and a step in which samples of a group differed, so that there was a gradient.

    `mixed` is the fraction of such groups; without it, rewards are 0 and 1, and a mean between them proves the same.
    A few steps of reinforcement learning do not show its direction.
    """

    def check(metrics: Metrics) -> str:
        found = values(metrics, name)
        seen = f"{name} {', '.join(f'{value:.3f}' for value in found)}"
        if len(found) != steps:
            raise Unmet(f"{seen}: not {steps} values")
        differed = (
            any(value > 0 for value in values(metrics, mixed)) if mixed else any(0 < value < 1 for value in found)
        )
        if not differed:
            raise Unmet(f"{seen}: all samples of each group are alike")
        return seen

    return check


def played(steps: int) -> Callable[[Metrics], str]:
    """Requires the number of trained steps, whatever the reward: a small model does not win these games."""

    def check(metrics: Metrics) -> str:
        found = values(metrics, REWARD)
        seen = f"{REWARD} {', '.join(f'{value:.3f}' for value in found)}"
        if len(found) != steps or not all(value > 0 for value in values(metrics, TRAINED_TOKENS)):
            raise Unmet(seen)
        return seen

    return check


@dataclass(frozen=True)
class Program:
    """A command line after `python`.

    In it `{folder}` is the program's own folder, `{runs}` the folder of all, and `{labelled}` a file of conversations;
    see `Place.names` for the others.
    """

    name: str
    arguments: tuple[str, ...]
    # Judges the program's metrics.
    check: Callable[[Metrics], str] | None = None
    # Files that must exist in its folder afterwards.
    files: tuple[str, ...] = ()
    # Judges its output.
    printed: Callable[[str], str] | None = None
    # Whether it runs in the folder of the cookbook's sources.
    in_sources: bool = False
    # Whether it runs on tiny models of the families that it names, and not on the test model.
    tiny: bool = False
    # For a program that can not run here: the error with which it ends, and why.
    refused: str = ""
    reason: str = ""
    # What is typed.
    typed: str = ""
    # Another program, which runs first. Its folder is `{before}`; what it saved last is `{sampler}` and `{state}`.
    after: str = ""
    # Modules that it starts in processes of their own.
    starts: tuple[str, ...] = ()

    @property
    def modules(self) -> set[str]:
        """The modules of the cookbook that it starts."""
        own = {self.arguments[1]} if self.arguments[0] == "-m" and self.arguments[1] != "pytest" else set()
        return own | set(self.starts)


def program(name: str, module: str, check: Callable[[Metrics], str], *arguments: str) -> Program:
    command = ("-m", f"{RECIPES}.{module}", "log_path={folder}", *arguments)
    return Program(name, command, check, ("metrics.jsonl", "checkpoints.jsonl"))


def passed(number: int) -> Callable[[str], str]:
    """Requires that this many tests of pytest passed, and that none failed or was skipped."""

    def check(text: str) -> str:
        last = text.strip().splitlines()[-1]
        if not re.search(rf"\b{number} passed\b", last) or re.search(r"failed|error|skipped", last):
            raise Unmet(last)
        return f"{number} passed"

    return check


def scales(text: str) -> str:
    """Requires that the last column of its tables, largest differences of log-probabilities, is within rounding."""
    rows = [line.split() for line in text.splitlines() if re.fullmatch(r"(\s+[\d.]+){5}", line)]
    if not rows:
        raise Unmet("no table")
    most = max(float(row[-1]) for row in rows)
    seen = f"largest difference {most:.6f} in {len(rows)} rows"
    if most > 1e-3:
        raise Unmet(seen)
    return seen


def tests(name: str, number: int, *arguments: str) -> Program:
    return Program(name, ("-m", "pytest", "-q", "-rs", *arguments), printed=passed(number), in_sources=True)


# The test model uses the chat format of Qwen3.
CHATML = "renderer_name=qwen3_instruct"
GAME = (CHATML, "group_size=2", "eval_every=0", "save_every=0", "max_steps=2", FRESH)
ARITHMETIC = (
    f"model_name={CHAT}",
    CHATML,
    "groups_per_batch=8",
    "group_size=4",
    "max_tokens=5",
    "learning_rate=1e-4",
    "eval_every=0",
    FRESH,
)
MATH = "math_rl.train"
LOOP = ("batch_size=3", "group_size=16", "max_tokens=32", "max_steps=2", "save_every=1", "lora_rank=8")

PROGRAMS = (
    program("sl_loop", "sl_loop", falls(LOSS), "batch_size=16", "max_steps=6", "learning_rate=1e-3", "save_every=3"),
    program("rl_loop", "rl_loop", trained(2, SCORE, None), *LOOP),
    program("rl_loop_cispo", "rl_loop", trained(2, SCORE, None), *LOOP, "loss_fn=cispo"),
    program("rl_loop_gspo", "rl_loop", trained(2, SCORE, None), *LOOP, "loss_fn=gspo"),
    program("sl_basic", "sl_basic", falls("test/nll"), "learning_rate=1e-3", "num_epochs=2", "eval_every=2"),
    program("rl_basic", "rl_basic", trained(1), "max_tokens=48"),
    program(
        "shorter",
        "preference.shorter.train",
        trained(2),
        CHATML,
        "batch_size=2",
        "group_size=4",
        "eval_every=0",
        "max_tokens=32",
        "max_steps=2",
        FRESH,
    ),
    program("guess_number", "multiplayer_rl.guess_number.train", played(2), "batch_size=2", "max_tokens=16", *GAME),
    program(
        "twenty_questions", "multiplayer_rl.twenty_questions.train", played(2), "batch_size=2", "num_epochs=1", *GAME
    ),
    program(
        "text_arena",
        "multiplayer_rl.text_arena.train",
        played(2),
        "batch_size=4",
        "num_train_datapoints=8",
        "num_test_datapoints=2",
        "max_tokens=16",
        *(one for one in GAME if not one.startswith("group_size")),
    ),
    program("math_rl", MATH, trained(3), *ARITHMETIC, "max_steps=3"),
    program("math_rl_async", MATH, trained(3), *ARITHMETIC, "max_steps=3", "max_steps_off_policy=2"),
    program(
        "math_rl_stream",
        MATH,
        trained(3),
        *ARITHMETIC,
        "max_steps=3",
        "stream_minibatch_config.groups_per_batch=8",
        "stream_minibatch_config.num_minibatches=2",
    ),
    Program(
        "prompt_distillation_data",
        ("-m", f"{RECIPES}.prompt_distillation.create_data", "output_file={folder}/answers.jsonl"),
        files=("answers.jsonl",),
    ),
    program(
        "prompt_distillation",
        "prompt_distillation.train",
        falls(LOSS),
        "file_path={labelled}",
        f"model_name={CHAT}",
        CHATML,
        "batch_size=4",
        "num_epochs=2",
        "learning_rate=1e-3",
        FRESH,
    ),
    program(
        "dpo", "preference.dpo.train", falls("dpo_loss"), "batch_size=8", "max_steps=4", "learning_rate=1e-4", FRESH
    ),
)

# The cookbook's own tests that need only a server, and that two cores finish.
TESTS = (
    tests("test_recipe_math_rl", 3, "tests/recipes/test_recipe_math_rl.py"),
    tests("test_download", 1, "tests/weights/test_download.py"),
    Program(
        "validate_temperature_logprobs",
        ("tests/validate_temperature_logprobs.py", f"base_model={BASE}"),
        printed=scales,
        in_sources=True,
    ),
)
