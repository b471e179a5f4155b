"""Conversations to tokens: prompts, answers with a loss, and continuations of what was sampled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from . import generation
from .config import ConfigError
from .images import Loader, Picture, Vision, file_of, parts_of, plain, whole, with_images

Message = dict[str, Any]
"""`role`, `content`, and what else the template of the model reads (`tool_calls`, `name`, …)."""

LossOn = Literal["all", "last", "marked", "generation"]
MARK = "\N{OBJECT REPLACEMENT CHARACTER}answer\N{OBJECT REPLACEMENT CHARACTER}"
CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


class Tokenizer(Protocol):
    """Methods of a `transformers` tokenizer that the recipes use."""

    eos_token: str | None

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> list[int]: ...

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = ...) -> str: ...

    def apply_chat_template(self, conversation: list[Message], **kwargs: Any) -> Any: ...

    def get_chat_template(self, chat_template: str | None = ..., tools: list[Message] | None = ...) -> str: ...

    @property
    def special_tokens_map(self) -> dict[str, Any]: ...


@dataclass
class Example:
    """Tokens with the weight that each has in the loss as a target."""

    tokens: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, tokens: list[int], weight: float) -> None:
        self.tokens += tokens
        self.weights += [weight] * len(tokens)

    def cut(self, length: int) -> Example:
        """Returns the first tokens, without an image that would be cut in two."""
        length = whole(self.tokens, length)
        return Example(self.tokens[:length], self.weights[:length])


class Chat:
    """The chat template of a model. `load` reads the model's image settings when the first image occurs."""

    def __init__(self, tokenizer: Tokenizer, load: Loader | None = None) -> None:
        self.tokenizer, self._load = tokenizer, load
        self._vision: Vision | None = None

    @property
    def vision(self) -> Vision:
        """Returns the rule by which the model counts and marks images."""
        if self._vision is None:
            if self._load is None:
                raise ConfigError("data: images are not supported here")
            self._vision = self._load()
        return self._vision

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True)

    def render(self, messages: list[Message], tools: list[Message] | None = None, ask: bool = False) -> str:
        """Returns the text of a conversation; `ask` adds the beginning of the assistant's turn."""
        text = self.tokenizer.apply_chat_template(
            [plain(message) for message in messages], tools=tools or None, add_generation_prompt=ask, tokenize=False
        )
        return str(text)

    def prompt(self, messages: list[Message], tools: list[Message] | None = None) -> list[int]:
        """Returns the tokens up to the beginning of the assistant's turn."""
        pictures = self._pictures(messages)
        return self._complete(self.render(messages, tools, ask=True), pictures)

    def _pictures(self, messages: Sequence[Message]) -> list[Picture]:
        """The images of a conversation."""
        return [self.vision.picture(file_of(part)) for message in messages for part in parts_of(message)]

    def _complete(self, text: str, pictures: list[Picture]) -> list[int]:
        """The tokens of a text that has all these images."""
        if not pictures:
            return self.encode(text)
        left = iter(pictures)
        tokens = self.vision.placed(self.encode(text), left)
        none_left(left)
        return tokens

    def example(self, messages: list[Message], loss_on: LossOn = "all", tools: list[Message] | None = None) -> Example:
        """Returns a conversation with a loss on the assistant's turns: all, the last, or those with `"train": true`; or
        on the text that the template marks with `{% generation %}`.

        Each answer is encoded by itself after its prompt, as it is when it is sampled, so that training and sampling
        see the same tokens. What the template adds after the end token belongs to the next prompt.
        """
        turns = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
        if not turns:
            raise ConfigError("data: a conversation has no assistant turn")
        bare = [{key: value for key, value in message.items() if key != "train"} for message in messages]
        pictures = self._pictures(bare if loss_on == "generation" else bare[: turns[-1] + 1])
        left = iter(pictures)

        def encode(text: str) -> list[int]:
            return self.vision.placed(self.encode(text), left) if pictures else self.encode(text)

        example, done = Example(), ""
        if loss_on == "generation":
            for piece, learned in self._marked(bare, tools):
                example.add(encode(piece), float(learned))
            none_left(left)
            return example
        for at in turns:
            prompt, through = self.render(bare[:at], tools, ask=True), self.render(bare[: at + 1], tools)
            if not through.startswith(prompt) or not prompt.startswith(done):
                raise ConfigError("data: the chat template changes earlier turns, so turns can't be separated")
            answer = self._up_to_end(through[len(prompt) :])
            marked = bool(messages[at].get("train"))
            trained = {"all": True, "last": at == turns[-1], "marked": marked}[loss_on]
            example.add(encode(prompt[len(done) :]), 0.0)
            example.add(encode(answer), float(trained))
            done = prompt + answer
        none_left(left)
        return example

    def _marked(self, messages: list[Message], tools: list[Message] | None) -> Iterator[tuple[str, bool]]:
        shown = {"messages": [plain(message) for message in messages], "tools": tools or None, "documents": None}
        variables = {**self.tokenizer.special_tokens_map, **shown, "add_generation_prompt": False}
        template = self.tokenizer.get_chat_template(tools=tools or None)
        return generation.pieces(self.render(messages, tools), template, variables)

    def _up_to_end(self, answer: str) -> str:
        end = self.tokenizer.eos_token
        at = answer.rfind(end) if end else -1
        return answer[: at + len(end)] if end and at >= 0 else answer

    def following(self, sampled: list[int], messages: list[Message]) -> list[int]:
        """Returns the tokens after a sampled answer: the rest of its turn, further messages, and the beginning of the
        next turn.

        The tokens that were sampled stay as they are; an end token among them is not repeated.
        """
        dummy = [{"role": "user", "content": "."}, {"role": "assistant", "content": MARK}]
        text = self.render([*dummy, *messages], ask=True)
        _, found, tail = text.partition(MARK)
        if not found:
            raise ConfigError("tokenizer: the chat template changes the assistant's text")
        tokens = self._complete(tail, self._pictures(messages))
        if sampled and tokens and sampled[-1] == tokens[0]:
            return tokens[1:]
        return tokens


def none_left(pictures: Iterator[Picture]) -> None:
    """Refuses a conversation if the template rendered fewer images than it has."""
    if next(pictures, None) is not None:
        raise ConfigError("tokenizer: the chat template does not render all images of a conversation")


def tool_calls(text: str) -> list[dict[str, Any]]:
    """Returns the calls `<tool_call>{"name": …, "arguments": {…}}</tool_call>` in an answer, without malformed ones."""
    calls = []
    for match in CALL.finditer(text):
        try:
            call = json.loads(match.group(1))
        except json.JSONDecodeError:
            continue
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            arguments = call.get("arguments")
            calls.append({"name": call["name"], "arguments": arguments if isinstance(arguments, dict) else {}})
    return calls


def messages_of(record: dict[str, Any], key: str = "messages") -> list[Message]:
    """The conversation of a record: `messages`, or `prompt` with `completion` or `response`."""
    if isinstance(record.get(key), list):
        return with_images(cast(list[Message], record[key]), record.get("images"))
    prompt, answer = record.get("prompt"), record.get("completion", record.get("response"))
    if prompt is not None and answer is not None:
        return with_images([*as_messages(prompt), *as_messages(answer, "assistant")], record.get("images"))
    raise ConfigError(f"data: a record needs {key!r}, or 'prompt' and 'completion'; it has {', '.join(record)}")


def as_messages(value: Any, role: str = "user") -> list[Message]:
    """Returns a text as one message; a list of messages is returned unchanged."""
    return value if isinstance(value, list) else [{"role": role, "content": str(value)}]


def load_tokenizer(name: str) -> Tokenizer:
    """A tokenizer from a folder or the hub."""
    from transformers import AutoTokenizer

    return cast(Tokenizer, AutoTokenizer.from_pretrained(name))
