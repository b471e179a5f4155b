"""How far a student's answers are from a teacher, which may read them in tokens of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import NamedTuple

import tinker

from .images import model_input
from .spans import Reader, Span


@dataclass(frozen=True)
class Prompt:
    """A prompt for the student, and for the teacher."""

    tokens: list[int]
    shown: list[int]
    """Prompt of the teacher, before the answer."""
    teacher: str = ""
    """Name of the record's teacher, if there are several."""
    reader: Reader | None = None
    """How the teacher reads answers, if it has another tokenizer than the student."""


@dataclass
class Sample:
    """A prompt with a sampled answer; `logprobs` are those of the answer under the model that sampled it."""

    prompt: Prompt
    answer: list[int]
    logprobs: list[float]
    read: list[int] = field(init=False)
    """The answer in the teacher's tokens."""
    spans: list[Span] = field(init=False)
    """Tokens of the answer and of `read` that say the same."""

    def __post_init__(self) -> None:
        if self.prompt.reader is None:
            self.read = self.answer
            self.spans = [Span(range(at, at + 1), range(at, at + 1)) for at in range(len(self.answer))]
        else:
            self.read, self.spans = self.prompt.reader.read(self.answer)

    @property
    def tokens(self) -> list[int]:
        return self.prompt.tokens + self.answer

    @property
    def scored(self) -> list[int]:
        """Returns the tokens that the teacher scores."""
        return self.prompt.shown + self.read


class Distance(NamedTuple):
    """How far a token's span is from the teacher: the log-probability of what it says under the sampling model minus
    that under the teacher. All tokens of a span have it, since each of them brought it about."""

    log_ratio: float
    size: int = 1
    """Tokens of the span."""

    @property
    def share(self) -> float:
        """The token's part of it."""
        return self.log_ratio / self.size


Sampler = Callable[[Prompt], tinker.SamplingClient]
"""The model that answers a prompt, or scores its answers."""


def distances(teacher: Sampler, samples: Sequence[Sample]) -> list[list[Distance]]:
    """Returns the distance of each token of each answer from the teacher."""
    pending = [teacher(one.prompt).compute_logprobs(model_input(one.scored)) for one in samples]
    return [apart_of(one, future.result()) for one, future in zip(samples, pending, strict=True)]


def apart_of(one: Sample, scores: Sequence[float | None]) -> list[Distance]:
    """The distances of an answer's tokens, with the teacher's log-probabilities of all that it scored. Tokens without a
    counterpart, which only an empty text has, are not apart."""
    others = [score or 0.0 for score in scores[len(one.prompt.shown) :]]
    found = [Distance(0.0)] * len(one.answer)
    for span in one.spans:
        log_ratio = sum(one.logprobs[at] for at in span.own) - sum(others[at] for at in span.other)
        for at in span.own:
            found[at] = Distance(log_ratio, len(span.own))
    return found


def reverse_kl(found: Sequence[Sequence[Distance]]) -> float:
    """Returns the estimate of the reverse KL per token, from the student's own samples."""
    return mean(distance.share for one in found for distance in one)
