"""Distillation of a teacher: on the student's own samples (reverse KL), or on the teacher's top-k targets.

python -m trainyard.recipes.distill --folder runs/distill --data prompts.jsonl --teacher tinker://RUN/sampler_weights/X
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal

import numpy as np
import tinker
from numpy.typing import NDArray
from tinker import types

from .core import data, datums
from .core.chat import Chat, Message, as_messages
from .core.config import ConfigError, check, opt, run_main
from .core.images import model_input
from .core.run import Common, Run, opened, seed_of


@dataclass(frozen=True)
class Config(Common):
    """Settings of distillation."""

    data: str = opt("", "prompts: records with prompt, or messages whose answers from the last one on are left out")
    validation: str = opt("", "held-out prompts")
    teacher: str = opt("", "base model, or tinker:// path of sampler weights; its tokenizer must be the student's")
    mode: Literal["on_policy", "off_policy"] = opt("on_policy", "whose samples are learned from")
    top_k: int = opt(8, "targets at each token, for off_policy")
    batch_size: int = opt(8, "prompts of a step")
    samples: int = opt(2, "samples of each prompt")
    max_tokens: int = opt(128, "tokens of a sample")
    kl: float = opt(1.0, "weight of the distance to the teacher, for on_policy")
    center: bool = opt(False, "take the mean distance of a step from those of its tokens, as a baseline, for on_policy")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.data != "", "data", "prompts are needed")
        check(self.teacher != "", "teacher", "a base model or sampler weights are needed")
        check(self.top_k > 0, "top_k", "at least 1 is needed")
        check(self.batch_size > 0, "batch_size", "at least 1 is needed")
        check(self.samples > 0, "samples", "at least 1 is needed")


@dataclass
class Sample:
    """A prompt with a sampled answer; `logprobs` are those of the answer under who sampled it."""

    prompt: list[int]
    answer: list[int]
    logprobs: list[float]

    @property
    def tokens(self) -> list[int]:
        return self.prompt + self.answer


def prompts(records: Sequence[data.Record], key: str, chat: Chat) -> list[list[int]]:
    """The tokens up to where the assistant begins."""
    return [chat.prompt(conversation(record, key)) for record in records]


def conversation(record: data.Record, key: str) -> list[Message]:
    if "prompt" in record:
        return as_messages(record["prompt"])
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ConfigError(f"{key}: a record needs 'prompt' or 'messages'; it has {', '.join(record)}")
    return messages[:-1] if messages[-1]["role"] == "assistant" else messages


def sampled(sampler: tinker.SamplingClient, wanted: Sequence[list[int]], config: Config, seed: int) -> list[Sample]:
    """`config.samples` answers to each prompt."""
    pending = [
        sampler.sample(
            model_input(prompt),
            config.samples,
            types.SamplingParams(max_tokens=config.max_tokens, temperature=1.0, seed=seed_of(seed, at)),
        )
        for at, prompt in enumerate(wanted)
    ]
    return [
        Sample(prompt, list(sequence.tokens), list(sequence.logprobs or []))
        for prompt, future in zip(wanted, pending, strict=True)
        for sequence in future.result().sequences
    ]


def distances(teacher: tinker.SamplingClient, samples: Sequence[Sample]) -> list[list[float]]:
    """For each token of each answer how much likelier it is under who sampled it than under the teacher."""
    pending = [teacher.compute_logprobs(model_input(one.tokens)) for one in samples]
    return [
        [own - (other or 0.0) for own, other in zip(one.logprobs, future.result()[len(one.prompt) :], strict=True)]
        for one, future in zip(samples, pending, strict=True)
    ]


def reverse_kl(found: Sequence[Sequence[float]]) -> float:
    """Its estimate per token, from the student's own samples."""
    return mean(value for one in found for value in one)


class OnPolicy:
    """The student samples; each token's advantage is minus its distance to the teacher."""

    def __init__(self, run: Run, teacher: tinker.SamplingClient, config: Config) -> None:
        self.run, self.teacher, self.config = run, teacher, config

    def student(self, wanted: Sequence[list[int]], seed: int) -> tuple[list[Sample], list[list[float]]]:
        sampler = self.run.training.save_weights_and_get_sampling_client().result()
        samples = sampled(sampler, wanted, self.config, seed)
        return samples, distances(self.teacher, samples)

    def step(self, wanted: Sequence[list[int]], step: int) -> dict[str, float]:
        samples, apart = self.student(wanted, seed_of(self.config.seed, step))
        count = sum(len(one.answer) for one in samples)
        distance = reverse_kl(apart)
        baseline = distance if self.config.center else 0.0
        examples = []
        for one, far in zip(samples, apart, strict=True):
            head = [0.0] * len(one.prompt)
            advantages = head + [self.config.kl * (baseline - value) / count for value in far]
            examples.append(datums.policy(one.tokens, head + one.logprobs, advantages))
        pending = self.run.training.forward_backward(examples, "importance_sampling")
        stepped = self.run.optimize(step)
        pending.result()
        return {"reverse_kl": distance, "tokens": float(count)} | (stepped.result().metrics or {})

    def held_out(self, wanted: Sequence[list[int]]) -> dict[str, float]:
        return {"held_out/reverse_kl": reverse_kl(self.student(wanted, seed_of(self.config.seed, "held out"))[1])}


class OffPolicy:
    """The teacher samples; the student learns its top-k distribution at each token of the answers."""

    def __init__(self, run: Run, teacher: tinker.SamplingClient, config: Config) -> None:
        self.run, self.teacher, self.config = run, teacher, config

    def examples(self, wanted: Sequence[list[int]], seed: int) -> tuple[list[types.Datum], float, float]:
        """Examples, their number of answer tokens, and the teacher's own entropy over its top-k, summed."""
        samples = sampled(self.teacher, wanted, self.config, seed)
        params = types.SamplingParams(max_tokens=1, temperature=1.0, seed=0)
        pending = [
            self.teacher.sample(model_input(one.tokens), 1, params, topk_prompt_logprobs=self.config.top_k)
            for one in samples
        ]
        found, entropy = [], 0.0
        for one, future in zip(samples, pending, strict=True):
            targets, weights = self.targets(one, future.result())
            found.append((one, targets, weights))
            entropy -= float(np.sum(weights * np.log(np.where(weights > 0, weights, 1.0))))
        count = sum(len(one.answer) for one in samples)
        examples = [
            types.Datum(
                model_input=model_input(one.tokens[:-1]),
                loss_fn_inputs={
                    "target_tokens": types.TensorData.from_numpy(targets),
                    "weights": types.TensorData.from_numpy((weights / count).astype(np.float32)),
                },
            )
            for one, targets, weights in found
        ]
        return examples, float(count), entropy / count

    def targets(self, one: Sample, response: types.SampleResponse) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The teacher's candidates for each token of the answer, and their probabilities among themselves."""
        rows = response.topk_prompt_logprobs
        if rows is None:
            raise ConfigError("teacher: the server returned no top-k log-probabilities of prompts")
        shape = (len(one.tokens) - 1, self.config.top_k)
        targets, weights = np.zeros(shape, np.int64), np.zeros(shape, np.float64)
        for at in range(len(one.prompt), len(one.tokens)):
            candidates = (rows[at] or [])[: self.config.top_k]
            probabilities = np.exp([lp for _, lp in candidates])
            targets[at - 1, : len(candidates)] = [token for token, _ in candidates]
            weights[at - 1, : len(candidates)] = probabilities / probabilities.sum()
        return targets, weights

    def step(self, wanted: Sequence[list[int]], step: int) -> dict[str, float]:
        examples, count, entropy = self.examples(wanted, seed_of(self.config.seed, step))
        pending = self.run.training.forward_backward(examples, "cross_entropy")
        stepped = self.run.optimize(step)
        # Cross-entropy less the teacher's entropy is the forward KL over the candidates.
        metrics = {"forward_kl": pending.result().metrics["loss:sum"] - entropy, "tokens": count}
        return metrics | (stepped.result().metrics or {})

    def held_out(self, wanted: Sequence[list[int]]) -> dict[str, float]:
        examples, _, entropy = self.examples(wanted, seed_of(self.config.seed, "held out"))
        output = self.run.training.forward(examples, "cross_entropy").result()
        return {"held_out/forward_kl": output.metrics["loss:sum"] - entropy}


def main(config: Config) -> None:
    records = data.read(config.data, "data")
    others = data.read(config.validation, "validation") if config.validation else []
    with opened("distill", config) as run:
        teacher = teacher_of(run, config.teacher)
        method = (OnPolicy if config.mode == "on_policy" else OffPolicy)(run, teacher, config)
        train_set = prompts(records, "data", run.chat)
        held_out = prompts(others, "validation", run.chat)
        batches = data.batches(len(train_set), config.batch_size, config.seed, run.first_step)
        for step, indices in zip(run.steps(), batches, strict=False):
            metrics: dict[str, float] = {}
            if step == 0 and held_out:
                metrics |= {f"{key}_before": value for key, value in method.held_out(held_out).items()}
            metrics |= method.step([train_set[index] for index in indices], step)
            if held_out and run.evaluates(step):
                metrics |= method.held_out(held_out)
            run.record(step, metrics, ("reverse_kl", "forward_kl", *(key for key in metrics if "held_out" in key)))
            run.after(step)


def teacher_of(run: Run, name: str) -> tinker.SamplingClient:
    """A sampler of a checkpoint or of a base model."""
    if name.startswith("tinker://"):
        return run.service.create_sampling_client(model_path=name).result()
    return run.service.create_sampling_client(base_model=name).result()


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.distill")


if __name__ == "__main__":
    raise SystemExit(cli())
