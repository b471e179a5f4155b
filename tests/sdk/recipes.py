"""The recipes in a test's own process: their packages, a tiny model that they train, and what they wrote."""

import json
import pathlib
import sys

import chat_model
from server import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "client-sdk" / "python" / "src"))


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
