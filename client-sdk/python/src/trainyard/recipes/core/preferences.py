"""Pairs of answers, of which one is preferred, and the logistic loss of their margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from . import data
from .chat import Chat, Example, as_messages
from .config import ConfigError
from .images import with_images


@dataclass
class Pair:
    """Two answers to a prompt."""

    chosen: Example
    rejected: Example


def pairs(records: Sequence[data.Record], key: str, chat: Chat, max_length: int) -> list[Pair]:
    """Returns the data set as tokens; the last turn of each answer is compared."""
    found = []
    for number, record in enumerate(records, 1):
        for name in ("chosen", "rejected"):
            if name not in record:
                raise ConfigError(f"{key}: record {number} has no {name!r}; it has {', '.join(record)}")
        prompt = as_messages(record["prompt"]) if "prompt" in record else []
        answers = [[*prompt, *as_messages(record[name], "assistant")] for name in ("chosen", "rejected")]
        both = [
            chat.example(with_images(messages, record.get("images")), "last").cut(max_length) for messages in answers
        ]
        if all(sum(one.weights[1:]) for one in both):
            found.append(Pair(*both))
    if not found:
        raise ConfigError(f"{key}: no pair fits within max_length")
    return found


def sequences(batch: Sequence[Pair]) -> list[Example]:
    """All answers: the chosen ones, then the rejected ones."""
    return [pair.chosen for pair in batch] + [pair.rejected for pair in batch]


def logistic(x: float, smoothing: float) -> tuple[float, float]:
    """-log sigmoid(x), mixed with -log sigmoid(-x) by `smoothing`, and its derivative."""
    loss = (1 - smoothing) * softplus(-x) + smoothing * softplus(x)
    return loss, smoothing - sigmoid(-x)


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def sigmoid(x: float) -> float:
    return math.exp(-softplus(-x))
