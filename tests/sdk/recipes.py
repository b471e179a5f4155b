"""The recipes in a test's own process: their packages, a tiny model that they train, and what they wrote."""

import json
import pathlib
import sys

import chat_model
import folders
from server import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "client-sdk" / "python" / "src"))

from trainyard.recipes.core.chat import Chat  # noqa: E402  # isort: skip
from trainyard.recipes.core.rollout import Sampled  # noqa: E402  # isort: skip


def settings(folder: pathlib.Path, tokenizer: pathlib.Path, **more) -> list[str]:
    """Flags of a short run of the tiny chat model."""
    chosen = {
        "folder": folder, "model": chat_model.NAME, "tokenizer": tokenizer, "rank": 4, "steps": 2, "save_every": 1,
        "eval_every": 0, "adam.learning_rate": 1e-2, **more,
    }  # fmt: skip
    return [f"--{key}={value}" for key, value in chosen.items()]


def metrics(folder: pathlib.Path) -> list[dict]:
    """The lines that a run wrote, without what depends on the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("time", "seconds_waiting")} for line in lines]


def final(folder: pathlib.Path) -> str:
    """The path of the weights that a finished run saved for sampling."""
    return json.loads((folder / "final.json").read_text())["sampler"]


def conversations(path: pathlib.Path, count=6) -> pathlib.Path:
    """A data set of conversations with two turns."""
    turns = lambda i: [  # noqa: E731
        {"role": "user", "content": f"Say {i}."},
        {"role": "assistant", "content": f"{i}!", "train": i % 2 == 0},
        {"role": "user", "content": "Again."},
        {"role": "assistant", "content": f"{i}, once more.", "train": True},
    ]
    path.write_text("".join(json.dumps({"messages": turns(i)}) + "\n" for i in range(count)))
    return path


def chat_of_tiny_model():
    """The chat template and tokenizer of the tiny chat model."""
    return Chat(chat_model.tokenizer(chat_model.write(folders.new() / "tiny-chat")))


class Scripted:
    """A policy that says what it is told."""

    def __init__(self, chat, *replies):
        self.chat, self.replies, self.prompts = chat, list(replies), []

    def sample(self, prompt, limits, seed):
        self.prompts.append(list(prompt))
        tokens = self.chat.encode(self.replies.pop(0) + "<|end|>")
        return Sampled(tokens, [-1.0] * len(tokens), [3] * len(tokens), True)
