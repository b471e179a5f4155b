"""Distillation: on the student's own samples (reverse KL), on a teacher's top-k targets, both, or from demonstrations.

    python -m trainyard.recipes.distill --folder runs/distill --data prompts.jsonl --teacher tinker://RUN/sampler_weights/X

With `mode = "sdft"` the student is its own teacher, which also reads a demonstration (Self-Distillation Fine-Tuning,
Shenfeld et al. 2026, arXiv:2601.19897): the student answers, and learns the teacher's distribution over its most likely
tokens at each token of that answer. Records may name one of several teachers. On the student's samples a teacher may
have another tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import tinker
from numpy.typing import NDArray
from tinker import types

from .core import data, datums
from .core.chat import Chat, Message, as_messages, load_tokenizer
from .core.config import ConfigError, check, opt, run_main
from .core.distances import Distance, Prompt, Sample, Sampler, distances, reverse_kl
from .core.images import model_input
from .core.run import Common, Run, opened
from .core.seeds import seed_of
from .core.spans import Reader

DEMONSTRATION = "{question}\n\nThis is an example of a good answer:\n{answer}\n\nNow give an answer of your own."


@dataclass(frozen=True)
class Config(Common):
    """Settings of distillation."""

    data: str = opt("", "prompts: records with prompt, or with messages, of which the last answer is left out")
    validation: str = opt("", "held-out prompts")
    teacher: str = opt(
        "",
        "base model, or tinker:// path of sampler weights, with the student's tokenizer unless teacher_tokenizer is "
        "set; sdft: by default the student",
    )
    teacher_tokenizer: str = opt("", "folder or hub name of the teacher's tokenizer if it has another, for on_policy")
    teachers: dict[str, str] = opt({}, "additional teachers by name, chosen by the key teacher of a record")
    teacher_tokenizers: dict[str, str] = opt({}, "tokenizers of these teachers, by the same names")
    mode: Literal["on_policy", "off_policy", "mixed", "sdft"] = opt(
        "on_policy",
        "on_policy: reverse KL on the student's samples; off_policy: top-k targets on the teacher's; mixed: both on "
        "the student's; sdft: top-k targets on the student's, scored with a demonstration",
    )
    demonstration: str | None = opt(
        None, "what the teacher reads in place of a question, with {question} and {answer}, for sdft"
    )
    top_k: int = opt(8, "targets at each token, for off_policy, mixed and sdft")
    batch_size: int = opt(8, "prompts of a step")
    samples: int = opt(2, "samples of each prompt")
    max_tokens: int = opt(128, "maximum tokens of a sample")
    kl: float = opt(1.0, "weight of the reverse KL to the teacher, for on_policy and mixed")
    forward_kl: float | None = opt(None, "weight of the forward KL over the targets, for mixed; by default that of kl")
    center: bool = opt(
        False, "take the mean distance of a step from those of its tokens, as a baseline, for on_policy and mixed"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.data != "", "data", "prompts are required")
        has = bool(self.teacher or self.teachers)
        check(has or self.mode == "sdft", "teacher", "a base model or sampler weights are required")
        for name, path in self.teachers.items():
            named = isinstance(path, str) and path != ""
            check(named, f"teachers.{name}", f"a base model or sampler weights are required, not {path!r}")
        check(
            self.mode == "sdft" or self.demonstration is None,
            "demonstration",
            f"not used by {self.mode}, only by sdft",
        )
        self._check_tokenizers()
        text = self.demonstration or DEMONSTRATION
        check("{question}" in text and "{answer}" in text, "demonstration", "{question} and {answer} are required")
        check(self.top_k > 0, "top_k", "must be at least 1")
        given = self.forward_kl is not None
        check(self.mode == "mixed" or not given, "forward_kl", f"not used by {self.mode}, only by mixed")
        check(self.forward_weight >= 0, "forward_kl", "must be at least 0")
        check(self.batch_size > 0, "batch_size", "must be at least 1")
        check(self.samples > 0, "samples", "must be at least 1")

    def _check_tokenizers(self) -> None:
        alone = self.teacher_tokenizer == "" or self.teacher != ""
        check(alone, "teacher_tokenizer", "teacher is not set; those of teachers are in teacher_tokenizers")
        for name in self.teacher_tokenizers:
            check(name in self.teachers, f"teacher_tokenizers.{name}", "teachers has no such name")
        for key in ("teacher_tokenizer", "teacher_tokenizers"):
            text = f"{self.mode} learns the teacher's distribution over the student's tokens; use on_policy"
            check(self.mode == "on_policy" or not getattr(self, key), key, text)

    @property
    def tokenizers(self) -> dict[str, str]:
        """Tokenizers other than the student's, by the names of their teachers in prompts."""
        return ({"": self.teacher_tokenizer} if self.teacher_tokenizer else {}) | self.teacher_tokenizers

    @property
    def forward_weight(self) -> float:
        """The weight of the forward KL, for mixed."""
        return self.kl if self.forward_kl is None else self.forward_kl


def prompts(
    records: Sequence[data.Record], key: str, chat: Chat, config: Config, readers: Mapping[str, Reader] | None = None
) -> list[Prompt]:
    """Returns the tokens up to the beginning of the assistant's turn, and the teacher's prompts. `readers` are those of
    teachers with another tokenizer, by name."""
    found = []
    for record in records:
        asked = conversation(record, key)
        tokens, name = chat.prompt(asked), teacher_name(record, key, config)
        reader = (readers or {}).get(name)
        shown = tokens if reader is None else reader.teacher.prompt(asked)
        if config.mode == "sdft":
            shown = chat.prompt(demonstrated(asked, record, key, config))
        found.append(Prompt(tokens, shown, name, reader))
    return found


def conversation(record: data.Record, key: str) -> list[Message]:
    if "prompt" in record:
        return as_messages(record["prompt"])
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ConfigError(f"{key}: a record needs 'prompt' or 'messages'; it has {', '.join(record)}")
    return messages[:-1] if messages[-1]["role"] == "assistant" else messages


def demonstrated(asked: Sequence[Message], record: data.Record, key: str, config: Config) -> list[Message]:
    """Returns the conversation with the record's answer next to its last question."""
    messages = record.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    answer = last.get("content") if last.get("role") == "assistant" else record.get("completion")
    question = asked[-1].get("content") if asked else None
    if not isinstance(answer, str) or not isinstance(question, str):
        text = "sdft needs a text to answer, and 'completion' or a last message of the assistant as its demonstration"
        raise ConfigError(f"{key}: {text}; a record has {', '.join(record)}")
    template = config.demonstration or DEMONSTRATION
    before, after = template.split("{question}", 1)
    shown = before.replace("{answer}", answer) + question + after.replace("{answer}", answer)
    return [*asked[:-1], {**asked[-1], "content": shown}]


def teacher_name(record: data.Record, key: str, config: Config) -> str:
    """Returns the teacher that a record names, if there are several."""
    if not config.teachers:
        return ""
    name = str(record.get("teacher", ""))
    if name not in config.teachers and (name or not config.teacher):
        named = f"has the teacher {name!r}" if name else "names no teacher, and teacher is not set"
        raise ConfigError(f"{key}: a record {named}; teachers has {', '.join(config.teachers)}")
    return name


def sampled(sampler: Sampler, wanted: Sequence[Prompt], config: Config, seed: int) -> list[Sample]:
    """Samples `config.samples` answers to each prompt."""
    pending = [
        sampler(prompt).sample(
            model_input(prompt.tokens),
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


def nearer(samples: Sequence[Sample], apart: Sequence[Sequence[Distance]], config: Config) -> list[types.Datum]:
    """Returns examples for `importance_sampling` whose loss has the gradient of the reverse KL per token."""
    count = sum(len(one.answer) for one in samples)
    baseline = reverse_kl(apart) if config.center else 0.0
    examples = []
    for one, far in zip(samples, apart, strict=True):
        head = [0.0] * len(one.prompt.tokens)
        advantages = head + [config.kl * (baseline * token.size - token.log_ratio) / count for token in far]
        examples.append(datums.policy(one.tokens, head + one.logprobs, advantages))
    return examples


def of_student(run: Run, wanted: Sequence[Prompt], config: Config, seed: int) -> tuple[list[Sample], Sampler]:
    """Returns answers of the current weights, and their sampler."""
    student = run.training.save_weights_and_get_sampling_client().result()
    return sampled(lambda _: student, wanted, config, seed), lambda _: student


class OnPolicy:
    """The student samples; each token's advantage is the negative log-ratio to the teacher."""

    def __init__(self, run: Run, teacher: Sampler, config: Config) -> None:
        self.run, self.teacher, self.config = run, teacher, config

    def student(self, wanted: Sequence[Prompt], seed: int) -> tuple[list[Sample], list[list[Distance]]]:
        samples, _ = of_student(self.run, wanted, self.config, seed)
        return samples, distances(self.teacher, samples)

    def step(self, wanted: Sequence[Prompt], step: int) -> dict[str, float]:
        samples, apart = self.student(wanted, seed_of(self.config.seed, step))
        pending = self.run.training.forward_backward(nearer(samples, apart, self.config), "importance_sampling")
        stepped = self.run.optimize(step)
        pending.result()
        count = float(sum(len(one.answer) for one in samples))
        return {"reverse_kl": reverse_kl(apart), "tokens": count} | (stepped.result().metrics or {})

    def held_out(self, wanted: Sequence[Prompt]) -> dict[str, float]:
        return {"held_out/reverse_kl": reverse_kl(self.student(wanted, seed_of(self.config.seed, "held out"))[1])}


class OffPolicy:
    """The teacher samples; the student learns its top-k distribution at each token of the answers."""

    def __init__(self, run: Run, teacher: Sampler, config: Config) -> None:
        self.run, self.teacher, self.config = run, teacher, config

    def answers(self, wanted: Sequence[Prompt], seed: int) -> tuple[list[Sample], Sampler]:
        """Returns answers, and the models whose distribution is learned at each of their tokens."""
        return sampled(self.teacher, wanted, self.config, seed), self.teacher

    def examples(self, wanted: Sequence[Prompt], seed: int) -> tuple[list[types.Datum], float, float]:
        """Examples, their number of answer tokens, and the teacher's own entropy over its top-k, per token."""
        return self.learned(*self.answers(wanted, seed))

    def learned(
        self, samples: Sequence[Sample], judge: Sampler, weight: float = 1.0
    ) -> tuple[list[types.Datum], float, float]:
        """As `examples`, for given answers; the loss has this weight."""
        params = types.SamplingParams(max_tokens=1, temperature=1.0, seed=0)
        pending = [
            judge(one.prompt).sample(model_input(one.scored), 1, params, topk_prompt_logprobs=self.config.top_k)
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
                    "weights": types.TensorData.from_numpy((weight * weights / count).astype(np.float32)),
                },
            )
            for one, targets, weights in found
        ]
        return examples, float(count), entropy / count

    def targets(self, one: Sample, response: types.SampleResponse) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns the teacher's candidates for each token of the answer, with their renormalised probabilities."""
        rows = response.topk_prompt_logprobs
        if rows is None:
            raise ConfigError("teacher: the server returned no top-k log-probabilities of prompts")
        shape = (len(one.tokens) - 1, self.config.top_k)
        targets, weights = np.zeros(shape, np.int64), np.zeros(shape, np.float64)
        first = len(one.prompt.tokens) - 1
        for at, row in enumerate(rows[len(one.prompt.shown) :], first):
            candidates = (row or [])[: self.config.top_k]
            probabilities = np.exp([lp for _, lp in candidates])
            targets[at, : len(candidates)] = [token for token, _ in candidates]
            weights[at, : len(candidates)] = probabilities / probabilities.sum()
        return targets, weights

    def step(self, wanted: Sequence[Prompt], step: int) -> dict[str, float]:
        examples, count, entropy = self.examples(wanted, seed_of(self.config.seed, step))
        pending = self.run.training.forward_backward(examples, "cross_entropy")
        stepped = self.run.optimize(step)
        # Cross-entropy less the teacher's entropy is the forward KL over the candidates.
        metrics = {"forward_kl": pending.result().metrics["loss:sum"] - entropy, "tokens": count}
        return metrics | (stepped.result().metrics or {})

    def held_out(self, wanted: Sequence[Prompt]) -> dict[str, float]:
        examples, _, entropy = self.examples(wanted, seed_of(self.config.seed, "held out"))
        output = self.run.training.forward(examples, "cross_entropy").result()
        return {"held_out/forward_kl": output.metrics["loss:sum"] - entropy}


class Demonstrated(OffPolicy):
    """The student samples; it learns the top-k distribution that it, or a teacher, has with the demonstration."""

    def answers(self, wanted: Sequence[Prompt], seed: int) -> tuple[list[Sample], Sampler]:
        samples, student = of_student(self.run, wanted, self.config, seed)
        own = not (self.config.teacher or self.config.teachers)
        return samples, student if own else self.teacher


class Mixed(OffPolicy):
    """The student samples; its loss is a weighted sum of the reverse KL, and of the forward KL over the teacher's
    top-k."""

    def answers(self, wanted: Sequence[Prompt], seed: int) -> tuple[list[Sample], Sampler]:
        samples, _ = of_student(self.run, wanted, self.config, seed)
        return samples, self.teacher

    def step(self, wanted: Sequence[Prompt], step: int) -> dict[str, float]:
        config, training = self.config, self.run.training
        samples, judge = self.answers(wanted, seed_of(config.seed, step))
        apart, weight = distances(judge, samples), config.forward_weight
        examples, count, entropy = self.learned(samples, judge, weight)
        # Gradients add up until the optimizer step.
        training.forward_backward(nearer(samples, apart, config), "importance_sampling")
        pending = training.forward_backward(examples, "cross_entropy")
        stepped = self.run.optimize(step)
        loss = pending.result().metrics["loss:sum"]
        found = {"forward_kl": loss / weight - entropy} if weight else {}
        return found | {"reverse_kl": reverse_kl(apart), "tokens": count} | (stepped.result().metrics or {})

    def held_out(self, wanted: Sequence[Prompt]) -> dict[str, float]:
        samples, judge = self.answers(wanted, seed_of(self.config.seed, "held out"))
        examples, _, entropy = self.learned(samples, judge)
        output = self.run.training.forward(examples, "cross_entropy").result()
        apart = distances(judge, samples)
        return {
            "held_out/forward_kl": output.metrics["loss:sum"] - entropy,
            "held_out/reverse_kl": reverse_kl(apart),
        }


METHODS: Mapping[str, type[OnPolicy] | type[OffPolicy]] = {
    "on_policy": OnPolicy,
    "off_policy": OffPolicy,
    "mixed": Mixed,
    "sdft": Demonstrated,
}


def main(config: Config) -> None:
    records = data.read(config.data, "data")
    others = data.read(config.validation, "validation") if config.validation else []
    with opened("distill", config) as run:
        readers = {
            name: Reader(run.chat, Chat(load_tokenizer(path))) for name, path in sorted(config.tokenizers.items())
        }
        train_set = prompts(records, "data", run.chat, config, readers)
        held_out = prompts(others, "validation", run.chat, config, readers)
        method = METHODS[config.mode](run, teachers_of(run, config), config)
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


def teachers_of(run: Run, config: Config) -> Sampler:
    """Returns the samplers of all teachers, by the names in prompts."""
    paths = ({"": config.teacher} if config.teacher else {}) | config.teachers
    samplers = {name: teacher_of(run, path) for name, path in paths.items()}
    return lambda prompt: samplers[prompt.teacher]


def teacher_of(run: Run, name: str) -> tinker.SamplingClient:
    """A sampler of a checkpoint or of a base model."""
    if name.startswith("tinker://"):
        return run.service.create_sampling_client(model_path=name).result()
    return run.service.create_sampling_client(base_model=name).result()


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.distill")


if __name__ == "__main__":
    raise SystemExit(cli())
