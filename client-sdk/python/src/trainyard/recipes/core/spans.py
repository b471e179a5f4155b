"""A text in the tokens of two models: spans of tokens that say the same characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .chat import Chat, Tokenizer


@dataclass(frozen=True)
class Span:
    """Tokens of either model, by their places."""

    own: range
    other: range


def spans(tokenizer: Tokenizer, own: Sequence[int], others: Tokenizer, other: Sequence[int]) -> list[Span]:
    """Divides two sequences of tokens of one text wherever both have a token that ends there. All tokens are in a span,
    and each span has tokens of both. Special tokens, which have no text, belong to the token before them.

    Where the texts differ, because a tokenizer changes what it encodes, everything is one span.
    """
    first, second = ends(tokenizer, own), ends(others, other)
    whole = Span(range(len(own)), range(len(other)))
    if first.text != second.text or not own or not other:
        return [whole]
    found: list[Span] = []
    at_own = at_other = 0
    for place in sorted(first.last.keys() & second.last.keys()):
        through_own, through_other = first.last[place] + 1, second.last[place] + 1
        found.append(Span(range(at_own, through_own), range(at_other, through_other)))
        at_own, at_other = through_own, through_other
    return found


@dataclass(frozen=True)
class Ends:
    """A text, and the last token that ends at each place of it at which one does."""

    text: str
    last: dict[int, int]


def ends(tokenizer: Tokenizer, tokens: Sequence[int]) -> Ends:
    """Finds where tokens end. One that ends within a character has no place."""
    text = tokenizer.decode(list(tokens), skip_special_tokens=True)
    last: dict[int, int] = {}
    for at in range(len(tokens)):
        begun = tokenizer.decode(list(tokens[: at + 1]), skip_special_tokens=True)
        if text.startswith(begun):
            last[len(begun)] = at
    return Ends(text, last)


@dataclass(frozen=True)
class Reader:
    """Turns answers of the student into tokens of a teacher that has another tokenizer."""

    student: Chat
    teacher: Chat

    def read(self, answer: Sequence[int]) -> tuple[list[int], list[Span]]:
        """Returns the teacher's tokens of an answer, and the spans in which both say the same. The student's end token
        is the teacher's."""
        end, other_end = (self._end(chat) for chat in (self.student, self.teacher))
        ended = bool(end) and list(answer[-len(end) :]) == end
        own = list(answer[: -len(end)] if ended else answer)
        text = self.student.decode(own)
        other = self.teacher.encode(text)
        found = spans(self.student.tokenizer, own, self.teacher.tokenizer, other) if own and other else []
        if ended and other_end:
            through = range(len(own), len(answer)), range(len(other), len(other) + len(other_end))
            found.append(Span(*through))
            other += other_end
        return other, found

    @staticmethod
    def _end(chat: Chat) -> list[int]:
        end = chat.tokenizer.eos_token
        return chat.encode(end) if end else []
