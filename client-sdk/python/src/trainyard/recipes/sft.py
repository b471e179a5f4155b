"""Supervised fine-tuning on conversations.

python -m trainyard.recipes.sft --folder runs/sft --data train.jsonl --validation test.jsonl --steps 200
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .core import data, datums
from .core.chat import Chat, Example, LossOn, messages_of
from .core.config import ConfigError, check, opt, run_main
from .core.run import Common, Run, opened


@dataclass(frozen=True)
class Config(Common):
    """Settings of supervised fine-tuning."""

    data: str = opt("", "training data: FILE.jsonl, FILE.parquet or hf:NAME@SPLIT, with messages or prompt/completion")
    validation: str = opt("", "held-out data; its loss is measured before the first step and at every evaluation")
    loss_on: LossOn = opt(
        "all",
        'tokens to train on: all assistant turns, the last one, those marked by "train": true, or what the chat '
        "template marks with {% generation %} (generation)",
    )
    max_length: int = opt(2048, "maximum tokens of an example; longer ones are truncated")
    packing: Literal["none", "budget", "concat"] = opt(
        "none",
        "none: batch_size examples a step; budget: as many as fit in batch_tokens; concat: rows of max_length tokens "
        "of several examples, batch_size rows a step",
    )
    batch_size: int = opt(32, "examples, or rows, of a step")
    batch_tokens: int = opt(16384, "maximum tokens of a step with packing = budget")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.data != "", "data", "training data is required")
        check(self.max_length > 1, "max_length", "must be at least 2")
        check(self.batch_size > 0, "batch_size", "must be at least 1")
        check(self.batch_tokens >= self.max_length, "batch_tokens", "must be at least max_length")


def examples(records: Sequence[data.Record], key: str, chat: Chat, config: Config) -> list[Example]:
    """The data set in tokens, without examples that have nothing to learn."""
    found = []
    for record in records:
        tools = record.get("tools")
        example = chat.example(messages_of(record), config.loss_on, tools if isinstance(tools, list) else None)
        found.append(example.cut(config.max_length))
    found = [example for example in found if sum(example.weights[1:]) > 0]
    if not found:
        raise ConfigError(f"{key}: no record has a target within max_length and loss_on")
    return found


def packed(examples: Sequence[Example], config: Config) -> Iterator[list[Example]]:
    """Batches without end, in an order that only depends on the seed."""
    if config.packing == "budget":
        batch: list[Example] = []
        tokens = 0
        for index in data.shuffled(len(examples), config.seed):
            length = len(examples[index].tokens)
            if batch and tokens + length > config.batch_tokens:
                yield batch
                batch, tokens = [], 0
            batch.append(examples[index])
            tokens += length
    if config.packing == "concat":
        order = itertools.islice(data.shuffled(len(examples), config.seed), len(examples))
        examples = datums.joined((examples[index] for index in order), config.max_length)
    for indices in data.batches(len(examples), config.batch_size, config.seed):
        yield [examples[index] for index in indices]


def validation_loss(run: Run, held_out: Sequence[Example]) -> float:
    """Mean loss per target; computes no gradient."""
    future = run.training.forward([datums.supervised(example) for example in held_out], "cross_entropy")
    return future.result().metrics["loss:sum"] / datums.weight_of(held_out)


def main(config: Config) -> None:
    records = data.read(config.data, "data")
    others = data.read(config.validation, "validation") if config.validation else []
    with opened("sft", config) as run:
        train_set = examples(records, "data", run.chat, config)
        held_out = examples(others, "validation", run.chat, config) if others else []
        batches = packed(train_set, config)
        for _ in range(run.first_step):
            next(batches)
        for step in run.steps():
            batch = next(batches)
            metrics = {}
            if step == 0 and held_out:
                metrics["validation_loss_before"] = validation_loss(run, held_out)
            weight = datums.weight_of(batch)
            pending = run.training.forward_backward(
                [datums.supervised(example, 1 / weight) for example in batch], "cross_entropy"
            )
            stepped = run.optimize(step)
            metrics["loss"] = pending.result().metrics["loss:sum"]
            metrics |= stepped.result().metrics or {}
            metrics |= {"targets": weight, "tokens": float(sum(len(example.tokens) for example in batch))}
            if held_out and run.evaluates(step):
                metrics["validation_loss"] = validation_loss(run, held_out)
            run.record(step, metrics, ("loss", "validation_loss"))
            run.after(step)


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.sft")


if __name__ == "__main__":
    raise SystemExit(cli())
