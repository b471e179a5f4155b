"""Questions whose answers are in documents, which a local search (BM25) finds."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence

from ..core import data
from ..core.chat import Message, tool_calls
from ..core.config import ConfigError
from .base import Environment, Outcome, tool

HELD_OUT = 0x5EED
WORD = re.compile(r"\w+")
SEARCH = tool("search", "Finds documents.", query="words to look for")
PLACES = ["Arvella", "Bremont", "Calder", "Dunmere", "Estova", "Farrow", "Galdin", "Hesper", "Ilmar", "Jorvale"]
FACTS = {
    "river": ["Oln", "Tessa", "Marrow", "Quill"],
    "mayor": ["Ruth Ames", "Paul Oduya", "Nina Sato", "Igor Belin"],
    "colour of the flag": ["green", "white", "crimson", "amber"],
    "main export": ["salt", "wool", "glass", "tea"],
}


class Bm25:
    """Ranks texts by the words that they share with a query (Robertson and Zaragoza 2009, k1 = 1.5, b = 0.75)."""

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> None:
        self.counts = [Counter(words(text)) for text in texts]
        lengths = [sum(count.values()) for count in self.counts]
        average = sum(lengths) / max(len(lengths), 1) or 1.0
        self.k1 = k1
        self.norms = [k1 * (1 - b + b * length / average) for length in lengths]
        documents = Counter(word for count in self.counts for word in count)
        total = len(texts)
        self.idf = {word: math.log(1 + (total - n + 0.5) / (n + 0.5)) for word, n in documents.items()}

    def best(self, query: str, limit: int) -> list[int]:
        """Indices of the best texts that share a word with the query, best first, ties by index."""
        wanted = [word for word in words(query) if word in self.idf]
        scores = [
            sum(self.idf[word] * count[word] * (self.k1 + 1) / (count[word] + norm) for word in wanted)
            for count, norm in zip(self.counts, self.norms, strict=True)
        ]
        order = sorted((index for index, score in enumerate(scores) if score > 0), key=lambda i: (-scores[i], i))
        return order[:limit]


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


class Search:
    """Made-up facts, or your own: `documents` (records with `text`) and `questions` (`question`, `answer`)."""

    def __init__(
        self, held_out: bool = False, documents: str = "", questions: str = "", held_out_questions: str = "",
        turns: int = 3, shown: int = 2, tasks: int = 256,
    ) -> None:  # fmt: skip
        self.turns, self.shown = turns, shown
        if documents:
            key = "environment.options.documents"
            self.texts = [_text(one, "text", documents) for one in data.read(documents, key)]
            source = (held_out_questions or questions) if held_out else questions
            records = data.read(source, "environment.options.questions")
            self.questions = [(_text(one, "question", source), _text(one, "answer", source)) for one in records]
        else:
            self.texts, made = made_up()
            random.Random(HELD_OUT).shuffle(made)
            held = len(made) // 4
            self.questions = (made[:held] if held_out else made[held:])[:tasks]
        self.index = Bm25(self.texts)

    def __len__(self) -> int:
        return len(self.questions)

    def make(self, index: int) -> Environment:
        return Episode(self, *self.questions[index])

    def found(self, query: str) -> str:
        return "\n".join(self.texts[at] for at in self.index.best(query, self.shown)) or "nothing found"


def _text(record: data.Record, key: str, source: str) -> str:
    if key not in record:
        raise ConfigError(f"environment.options: a record of {source} has no {key!r}")
    return str(record[key])


def made_up() -> tuple[list[str], list[tuple[str, str]]]:
    """Returns facts about places that do not exist, so that no model knows them."""
    random_ = random.Random(7)
    texts, questions = [], []
    for place in PLACES:
        for kind, values in FACTS.items():
            value = random_.choice(values)
            texts.append(f"The {kind} of {place} is {value}.")
            questions.append((f"What is the {kind} of {place}?", value))
    return texts, questions


class Episode(Environment):
    tools = [SEARCH]

    def __init__(self, suite: Search, question: str, answer: str) -> None:
        self.suite, self.question, self.answer, self.left = suite, question, answer, suite.turns
        self.searches = 0

    def reset(self) -> list[Message]:
        system = (
            "Find the answer with the tool search: "
            '<tool_call>{"name": "search", "arguments": {"query": "…"}}</tool_call>. Then answer in a few words.'
        )
        return [{"role": "system", "content": system}, {"role": "user", "content": self.question}]

    def step(self, reply: str) -> Outcome:
        self.left -= 1
        calls = [call for call in tool_calls(reply) if call["name"] == "search"]
        if calls and self.left > 0:
            self.searches += len(calls)
            found = [self.suite.found(str(call["arguments"].get("query", ""))) for call in calls]
            return Outcome(done=False, messages=[{"role": "tool", "content": text} for text in found])
        said = " ".join(words(reply))
        correct = not calls and " ".join(words(self.answer)) in said and len(words(reply)) <= 24
        return Outcome(float(correct), metrics={"correct": float(correct), "searches": float(self.searches)})
