"""The interface of environments: `reset` gives a conversation, `step` takes the model's answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.chat import Message


@dataclass
class Outcome:
    """Result of an answer."""

    reward: float = 0.0
    done: bool = True
    messages: list[Message] = field(default_factory=list)
    """Message that the model sees next, unless the episode is done."""
    metrics: dict[str, float] = field(default_factory=dict)


class Environment(ABC):
    """One episode of a task. The methods of one environment are called from one thread at a time."""

    tools: list[Message] | None = None
    """Tools in the form of the OpenAI API, for the chat template."""

    @abstractmethod
    def reset(self) -> list[Message]:
        """Returns the conversation up to the model's first answer."""

    @abstractmethod
    def step(self, reply: str) -> Outcome:
        """Takes an answer of the model; an episode's reward is the sum over its answers."""

    def close(self) -> None:  # noqa: B027
        """Releases what the episode holds; called once, also after errors."""


class BlackBox(ABC):
    """An episode that runs by itself and asks the model through an OpenAI base URL."""

    @abstractmethod
    def run(self, base_url: str, api_key: str, model: str) -> Outcome:
        """Plays the episode; the outcome's reward is that of the whole episode."""

    def close(self) -> None:  # noqa: B027
        """Releases what the episode holds; called once, also after errors."""


@dataclass
class Turn:
    """What follows an answer in a game: whose turn it is, or the end."""

    agent: str = ""
    """Name of the agent that answers next."""
    messages: list[Message] = field(default_factory=list)
    """What that agent sees first: at its first turn its conversation so far, later the messages since its answer."""
    done: bool = False
    rewards: dict[str, float] = field(default_factory=dict)
    """Rewards by agent, which are added to those that it already has."""
    metrics: dict[str, float] = field(default_factory=dict)


class Game(ABC):
    """One episode of several agents that take turns. The policy plays all of them, each in a conversation of its own
    and for rewards of its own."""

    @abstractmethod
    def reset(self) -> Turn:
        """Returns the first turn."""

    @abstractmethod
    def step(self, reply: str) -> Turn:
        """Takes the answer of the agent whose turn it is."""

    def close(self) -> None:  # noqa: B027
        """Releases what the episode holds; called once, also after errors."""


AnyEpisode = Environment | BlackBox | Game


class Suite(Protocol):
    """Tasks by number. The same number always gives the same task."""

    def __len__(self) -> int: ...

    def make(self, index: int) -> AnyEpisode: ...


def tool(name: str, description: str, **parameters: str) -> Message:
    """A tool whose parameters are texts; each has a description."""
    properties: dict[str, Any] = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return function(name, description, schema)


def function(name: str, description: str, schema: dict[str, Any]) -> Message:
    """A tool whose parameters a JSON schema describes."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
