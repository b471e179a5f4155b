"""A data set of prompts whose answers a reward function scores."""

from __future__ import annotations

from ..core import data
from ..core.chat import Message, as_messages
from ..core.config import ConfigError, check
from ..core.images import with_images
from ..core.rewards import Reward, load_reward
from .base import Environment, Outcome


class Prompts:
    """`data` and `held_out_data` are read as in `sft`; `reward` is `math`, `code`, `none` or `MODULE:FUNCTION`.

    A record has `prompt`, a text or a list of messages; the reward function gets the whole record.
    """

    def __init__(
        self, data: str, reward: str, held_out: bool = False, held_out_data: str = "", key: str = "prompt",
        system: str = "",
    ) -> None:  # fmt: skip
        source = (held_out_data or data) if held_out else data
        check(source != "", "environment.options.data", "a data set is required")
        self.records = _read(source, key)
        self.reward, self.key, self.system = load_reward(reward), key, system

    def __len__(self) -> int:
        return len(self.records)

    def make(self, index: int) -> Environment:
        return Answer(self.records[index], self.key, self.system, self.reward)


def _read(source: str, key: str) -> list[data.Record]:
    records = data.read(source, "environment.options.data")
    for number, record in enumerate(records, 1):
        if key not in record:
            raise ConfigError(f"environment.options.key: record {number} of {source} has no {key!r}")
    return records


class Answer(Environment):
    """One answer, one reward."""

    def __init__(self, record: data.Record, key: str, system: str, reward: Reward) -> None:
        self.record, self.key, self.system, self.reward = record, key, system, reward

    def reset(self) -> list[Message]:
        head = [{"role": "system", "content": self.system}] if self.system else []
        return head + with_images(as_messages(self.record[self.key]), self.record.get("images"))

    def step(self, reply: str) -> Outcome:
        return Outcome(float(self.reward(reply, self.record)))
