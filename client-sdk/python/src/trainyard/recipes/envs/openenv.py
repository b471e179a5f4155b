"""Environments behind a server of OpenEnv, through its client, when the package `openenv-core` is installed."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import Any

from ..core.chat import Message, tool_calls
from ..core.config import ConfigError, check, missing
from .base import Environment, Outcome, function

REPLY = "{reply}"
"""What stands for the model's answer in an action."""
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class Server:
    """How to reach an environment and how to talk to it: the options of `OpenEnv`."""

    url: str
    prompt: str
    action: dict[str, Any]
    shown: str
    tools: bool
    seconds: float

    def connected(self) -> Any:
        """Opens a session, which is one environment on the server."""
        try:
            core: Any = importlib.import_module("openenv.core")
        except ImportError as error:
            raise missing("environment.name", "openenv", "openenv-core") from error
        client = core.GenericEnvClient(base_url=self.url, message_timeout_s=self.seconds).sync()
        try:
            client.connect()
        except BaseException:
            client.close()
            raise
        return client


class OpenEnv:
    """Task number n resets the environment with the seed n; held-out tasks have the seeds behind the others.

    An answer is the action `action`, in whose texts `{reply}` stands for it. The model sees the field `shown` of
    observations, or all of them as JSON; `prompt` precedes the first. With `tools`, the environment's tools are offered
    to the model, its calls are the actions, and it sees their results; an answer without a call ends the episode, which
    begins with `prompt` alone.
    """

    def __init__(
        self, url: str, held_out: bool = False, tasks: int = 1000, held_out_tasks: int = 16, prompt: str = "",
        action: dict[str, Any] | None = None, shown: str = "", tools: bool = False, seconds: float = 60.0,
    ) -> None:  # fmt: skip
        check(not (tools and action), "environment.options.action", "with tools, the model's calls are the actions")
        check(bool(prompt) or not tools, "environment.options.prompt", "with tools, a prompt is required")
        check(tools or action is None or REPLY in json.dumps(action), "environment.options.action", f"has no {REPLY}")
        self.server = Server(url, prompt, action or {"message": REPLY}, shown, tools, seconds)
        self.first, self.count = (tasks, held_out_tasks) if held_out else (0, tasks)
        try:
            self.server.connected().close()
        except (OSError, ValueError) as error:
            raise ConfigError(f"environment.options.url: {url}: {error}") from error

    def __len__(self) -> int:
        return self.count

    def make(self, index: int) -> Environment:
        return Episode(self.server, self.first + index)


class Episode(Environment):
    """A session with the server."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.seed = server, seed
        self.client: Any = None

    def reset(self) -> list[Message]:
        self.client = self.server.connected()
        first = self.client.reset(seed=self.seed).observation
        if self.server.tools:
            listed = self.client.step({"type": "list_tools"}).observation
            self.tools = [
                function(tool["name"], tool.get("description", ""), tool.get("input_schema") or NO_PARAMETERS)
                for tool in listed.get("tools", [])
            ]
        parts = [self.server.prompt, "" if self.server.tools else self._text(first)]
        return [{"role": "user", "content": "\n\n".join(filter(None, parts))}]

    def step(self, reply: str) -> Outcome:
        if self.server.tools:
            return self._called(reply)
        found = self.client.step(_filled(self.server.action, reply))
        messages = [] if found.done else [{"role": "user", "content": self._text(found.observation)}]
        return Outcome(float(found.reward or 0.0), bool(found.done), messages)

    def _called(self, reply: str) -> Outcome:
        """Makes the calls of an answer, in their order, until the environment is done."""
        outcome = Outcome()
        for call in tool_calls(reply):
            action = {"type": "call_tool", "tool_name": call["name"], "arguments": call["arguments"]}
            found = self.client.step(action)
            outcome.reward += float(found.reward or 0.0)
            outcome.messages.append({"role": "tool", "content": _result(found.observation)})
            outcome.done = bool(found.done)
            if outcome.done:
                break
        return outcome

    def _text(self, observation: dict[str, Any]) -> str:
        if not self.server.shown:
            return json.dumps(observation, ensure_ascii=False)
        if self.server.shown not in observation:
            known = ", ".join(observation) or "no fields"
            raise ConfigError(f"environment.options.shown: an observation has no {self.server.shown!r}; it has {known}")
        return str(observation[self.server.shown])

    def close(self) -> None:
        if self.client is not None:
            self.client.close()


def _filled(value: Any, reply: str) -> Any:
    """An action with the answer in its texts."""
    if isinstance(value, dict):
        return {key: _filled(part, reply) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, reply) for part in value]
    return value.replace(REPLY, reply) if isinstance(value, str) else value


def _result(observation: dict[str, Any]) -> str:
    """The text of a call's result: its error, its value, or the texts of its content."""
    if error := observation.get("error"):
        return str(error.get("message", error))
    result = observation.get("result")
    if isinstance(result, dict):
        texts = [part["text"] for part in result.get("content") or [] if isinstance(part.get("text"), str)]
        result = result["data"] if result.get("data") is not None else "\n".join(texts) if texts else result
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
