"""Episodes of recipes in which a script says what the model would."""

import json

import chat_model
import folders
import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes.core.attempts import Episodes  # isort: skip
from trainyard.recipes.core.chat import Chat  # isort: skip
from trainyard.recipes.core.rollout import Limits, Sampled  # isort: skip
from trainyard.recipes.envs import EnvironmentConfig, load_suite  # isort: skip

LIMITS = Limits(max_turns=4, max_context=4096, seconds=60.0)


def tiny_chat() -> Chat:
    """The chat template of a tiny model."""
    return Chat(chat_model.tokenizer(chat_model.write(folders.new() / "tiny-chat")))


class Script:
    """A policy that says the lines of a script, and keeps what it was shown."""

    def __init__(self, chat, *lines):
        self.chat, self.lines, self.seen = chat, list(lines), []

    def sample(self, prompt, limits, seed):
        self.seen.append(self.chat.decode(prompt))
        tokens = self.chat.encode(f"{self.lines.pop(0)}<|end|>")
        return Sampled(tokens, [-1.0] * len(tokens), [0] * len(tokens), True)


def played(chat, suite, index, *lines):
    """An episode in which the model says these lines: its sequence, or its error, and all that it was shown."""
    policy = Script(chat, *lines)
    with Episodes(chat, LIMITS) as episodes:
        episode = episodes.play(lambda: suite.make(index), policy, 0)
    assert episode.error or not policy.lines, "the episode ended early"
    return episode.error or episode.trajectories[0], policy.seen


def suite_of(name, held_out=False, **options):
    return load_suite(EnvironmentConfig(name, options), held_out)


def written(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def user(text):
    return [{"role": "user", "content": text}]


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
