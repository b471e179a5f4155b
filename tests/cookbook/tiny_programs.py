"""Programs on tiny random models of the families that they name: they show that a program works, not that it learns.

Where a loss must fall it does, since a random model is easily improved. Rewards of such models are mostly constant, so
programs of reinforcement learning are judged by their steps. Teachers with the student's weights must be at a distance
of 0: what was sampled is scored to the same bits.
"""

import re
from collections.abc import Callable

from programs import FRESH, LOSS, RECIPES, REWARD, Metrics, Program, Unmet, falls, values

PACKAGE = "tinker_cookbook"
SMALL = ("lora_rank=8", FRESH)
RARE = ("eval_every=0", "save_every=0")
GROUPS = ("group_size=2", "groups_per_batch=4", "max_tokens=8", "max_steps=2")
QWEN, MIXTURE, DENSE = "Qwen/Qwen3.5-9B", "Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3-8B"
NEMOTRON = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"

FAMILIES = {
    "qwen3": DENSE,
    "qwen3_5": QWEN,
    "qwen3_5_moe": MIXTURE,
    "nemotron_h": NEMOTRON,
    "nemotron_h_latent": "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
    "llama": "meta-llama/Llama-3.1-8B-Instruct",
    "deepseek_v3": "deepseek-ai/DeepSeek-V3.1",
    "gpt_oss": "openai/gpt-oss-20b",
    "glm_moe_dsa": "zai-org/GLM-5.3",
}


def recorded(name: str, steps: int) -> Callable[[Metrics], str]:
    """Requires a number of values of a metric."""

    def check(metrics: Metrics) -> str:
        found = values(metrics, name)
        seen = f"{name} {', '.join(f'{value:.3f}' for value in found)}"
        if len(found) < steps:
            raise Unmet(f"{seen}: fewer than {steps} values")
        return seen

    return check


def agree(name: str, steps: int) -> Callable[[Metrics], str]:
    """Requires a number of values, of which none differs from 0 by more than rounding."""

    def check(metrics: Metrics) -> str:
        seen = recorded(name, steps)(metrics)
        if max(map(abs, values(metrics, name))) > 1e-5:
            raise Unmet(f"{seen}: not 0")
        return seen

    return check


def rises(name: str, above: float) -> Callable[[Metrics], str]:
    """Requires that the last value is above the first one, and above what chance gives."""

    def check(metrics: Metrics) -> str:
        found = values(metrics, name)
        seen = f"{name} {found[0]:.3f} → {found[-1]:.3f}"
        if not found[-1] > max(found[0], above):
            raise Unmet(f"{seen}: not above {above}")
        return seen

    return check


def says(*words: str) -> Callable[[str], str]:
    """Requires texts in the output; the last line that has the last of them is shown."""

    def check(text: str) -> str:
        if missing := [word for word in words if word not in text]:
            raise Unmet(f"the output lacks {', '.join(missing)}")
        return next(line.strip() for line in reversed(text.splitlines()) if words[-1] in line)

    return check


def tiny(name: str, module: str, check: Callable[[Metrics], str], *arguments: str) -> Program:
    command = ("-m", f"{PACKAGE}.{module}", "log_path={folder}", *arguments)
    return Program(name, command, check, ("metrics.jsonl", "checkpoints.jsonl"), tiny=True)


def talk(
    name: str, module: str, printed: Callable[[str], str], *arguments: str, typed: str = "", after: str = ""
) -> Program:
    """A program that prints its results."""
    command = ("-m", f"{PACKAGE}.{module}", *arguments)
    return Program(name, command, printed=printed, typed=typed, after=after, tiny=True)


def accurate(above: float) -> Callable[[str], str]:
    """Requires an accuracy above what chance gives."""

    def check(text: str) -> str:
        found = re.search(r"'accuracy': ([\d.]+)", text)
        if not found or not float(found[1]) > above:
            raise Unmet(f"no accuracy above {above}: {found and found[0]}")
        return found[0]

    return check


def of_family(family: str, model: str) -> tuple[Program, Program]:
    """One that trains, and one that samples, scores the samples with a teacher of the same weights, and trains."""
    return (
        tiny(
            f"chat_sl_{family}", "recipes.chat_sl.train", falls(LOSS), f"model_name={model}", "batch_size=32",
            "max_steps=4", "learning_rate=1e-2", *SMALL, *RARE,
        ),
        tiny(
            f"distill_{family}", "recipes.distillation.on_policy_distillation", agree("teacher_kl", 2),
            f"model_name={model}", f"teacher_model={model}", *GROUPS, *SMALL, *RARE,
        ),
    )  # fmt: skip


VISION = ("model_name=Qwen/Qwen3-VL-4B-Instruct", "renderer_name=qwen3_vl_instruct", "max_tokens=8")


def classifier(dataset: str) -> tuple[Program, Program]:
    """Trains a classifier of pictures, and evaluates what was saved."""
    trained = Program(
        f"vlm_{dataset}",
        (
            "-m", f"{RECIPES}.vlm_classifier.train", "experiment_dir={folder}", f"dataset={dataset}", *VISION,
            "batch_size=20", "num_epochs=31", "learning_rate=1e-2", "lr_schedule=constant", "n_eval=16",
            "eval_every=10", "save_every=0", *SMALL,
        ),
        rises("accuracy", 0.5),
        tiny=True,
    )  # fmt: skip
    evaluated = talk(
        f"vlm_{dataset}_eval", "recipes.vlm_classifier.eval", accurate(0.5), f"dataset={dataset}",
        "model_path={sampler}", "max_tokens=8", after=trained.name,
    )  # fmt: skip
    return trained, evaluated


FORECASTS = ("max_train_questions=16", "max_validation_questions=8", "data_path={forecasts}")

TINY_PROGRAMS = (
    *(program for family, model in FAMILIES.items() for program in of_family(family, model)),
    *(program for dataset in ("caltech101", "flowers102") for program in classifier(dataset)),
    tiny(
        "rl_numerics_check", "recipes.rl_numerics_check.train", recorded(REWARD, 1), "group_size=2",
        "groups_per_batch=2", "max_tokens=16", "max_steps=1", "task.num_pages_min=2", "task.num_pages_max=2",
        "task.page_chars=200", *SMALL, *RARE,
    ),
    tiny(
        "off_policy_reasoning", "recipes.distillation.off_policy_reasoning", falls(LOSS), "batch_size=16",
        "max_prompts=64", "buffer_size=64", "learning_rate=1e-2", *SMALL, *RARE,
    ),
    tiny(
        "multi_teacher", "recipes.distillation.on_policy_multi_teacher", recorded("teacher_kl", 1),
        "deepmath_groups_per_batch=2", "tulu3_groups_per_batch=2", "group_size=2", "max_tokens=8", "max_steps=1",
        *SMALL, *RARE,
    ),
    tiny(
        "rubric", "recipes.rubric.train", recorded(REWARD, 1), "train_group_size=2", "groups_per_batch=2",
        "max_tokens=8", "max_steps=1", "train_jsonl_path={rubrics}", "test_jsonl_path={rubrics}", *SMALL, *RARE,
    ),
    tiny(
        "rubric_prometheus", "recipes.rubric.prometheus_experimental", recorded(REWARD, 1), "train_group_size=2",
        "groups_per_batch=2", "max_tokens=8", "max_steps=1", *SMALL, *RARE,
    ),
    talk("rubric_debug", "recipes.rubric.debug_env", says("Warning: Failed to extract score")),
    Program(
        "rubric_data", ("-m", f"{RECIPES}.rubric.generate_data"), printed=says("Generated train dataset"), tiny=True
    ),
    tiny(
        "sdft", "recipes.sdft.train", recorded("sdft/mean_teacher_entropy", 2), "groups_per_batch=4", "max_tokens=8", "topk=4",
        "max_steps=2", *SMALL, *RARE,
    ),
    talk("custom_evaluators", "eval.custom_evaluators", says("accuracy")),
    talk("tool_calling", "scripts.test_tool_calling_e2e", says("Passed:"), "--model", QWEN),
    talk(
        "forecasting_data", "recipes.forecasting.data", says("train:", "validation:"), "--data-path", "{forecasts}"
    ),
    tiny(
        "forecasting", "recipes.forecasting.train", recorded(REWARD, 1), *FORECASTS, "group_size=2",
        "groups_per_batch=2", "validation_group_size=1", "max_tokens=8", "max_steps=1", *SMALL, *RARE,
    ),
    tiny(
        "decisions_forecasting", "recipes.decisions.forecasting", falls("train/loss"), *FORECASTS, "batch_size=4",
        "learning_rate=1e-2", "eval_every=2", "save_every=0", *SMALL,
    ),
    talk(
        "decisions_demo", "recipes.decisions.demo", says("{", "}"), f"model_name={QWEN}",
        typed="How do I pay?\n\n",
    ),
    talk(
        "chat", "chat_app.tinker_chat_cli", says("Chat started", "Goodbye"), f"base_model={QWEN}", "max_tokens=16",
        typed="Hello\nquit\n",
    ),
    tiny(
        "code_rl", "recipes.code_rl.train", recorded(REWARD, 1), "group_size=2", "groups_per_batch=2", "max_tokens=16",
        "max_steps=1", *SMALL, *RARE,
    ),
    talk(
        "tts", "recipes.true_thinking_score.analyze", says("Done"), "log_path={folder}", "n_problems=2",
        "max_tokens=64",
    ),
    talk("tts_small", "recipes.true_thinking_score.run_small_experiment", says("Results saved")),
)  # fmt: skip
