"""Tasks of a resources server of NeMo Gym, over HTTP: its tools, its state of an episode, and its verifier."""

from __future__ import annotations

import copy
import json
import re
import time
from dataclasses import dataclass
from typing import Any

import httpx

from ..core import data
from ..core.chat import Message, tool_calls
from ..core.config import ConfigError, check
from .base import Environment, Outcome, function

DATA = "environment.options.data"
PARAMS = "responses_create_params"
"""Key of a record with the prompt and the tools, as the responses API of OpenAI takes them."""
CALLS = re.compile(r"<tool_call>.*?</tool_call>", re.DOTALL)
THOUGHT = re.compile(r"\A\s*(?:<think>)?(.*?)</think>\s*", re.DOTALL)
TEXT_PARTS = {"input_text", "output_text", "text"}


@dataclass(frozen=True)
class Server:
    """How to reach a resources server: the options of `NemoGym`."""

    url: str
    seconds: float
    max_steps: int

    def client(self) -> httpx.Client:
        """Its cookies are one session of the server."""
        return httpx.Client(base_url=self.url, timeout=self.seconds)


class NemoGym:
    """A record has `responses_create_params`, and what the server's `seed_session` and `verify` read.

    Each episode is a session of the server at `url`. The model's calls are requests to the server's tools. An answer
    without a call is verified, or the answer number `max_steps`.
    """

    def __init__(
        self, url: str, data: str, held_out: bool = False, held_out_data: str = "", max_steps: int = 0,
        seconds: float = 60.0,
    ) -> None:  # fmt: skip
        check(max_steps >= 0, "environment.options.max_steps", "must be at least 0, which means no limit")
        self.server = Server(url, seconds, max_steps)
        self.source = (held_out_data or data) if held_out else data
        self.tasks = _read(self.source)
        with self.server.client() as client:
            try:
                client.get("/openapi.json")
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ConfigError(f"environment.options.url: {url}: {error}") from error

    def __len__(self) -> int:
        return len(self.tasks)

    def make(self, index: int) -> Environment:
        return Episode(self.server, self.tasks[index])


@dataclass(frozen=True)
class Task:
    """A record, and what the model sees of it."""

    record: data.Record
    prompt: list[Message]
    tools: list[Message]


class Episode(Environment):
    """A session of the server."""

    def __init__(self, server: Server, task: Task) -> None:
        self.server, self.task = server, task
        self.tools = task.tools or None
        self.client = server.client()
        self.steps = 0
        self.output: list[dict[str, Any]] = []
        """Items of the response that the server verifies."""

    def reset(self) -> list[Message]:
        self._post("seed_session", self.task.record).raise_for_status()
        return copy.deepcopy(self.task.prompt)

    def step(self, reply: str) -> Outcome:
        self.steps += 1
        calls = tool_calls(reply)
        self._say(reply)
        messages = [{"role": "tool", "content": self._call(call["name"], call["arguments"])} for call in calls]
        if calls and self.steps != self.server.max_steps:
            return Outcome(done=False, messages=messages)
        return self._verified()

    def _say(self, reply: str) -> None:
        """Adds the thoughts and the text of an answer, as the responses API divides them."""
        if thought := THOUGHT.match(reply):
            summary = [{"type": "summary_text", "text": thought.group(1).strip()}]
            self._add("reasoning", "rs", summary=summary)
            reply = reply[thought.end() :]
        text = CALLS.sub("", reply).strip()
        if text or not tool_calls(reply):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            self._add("message", "msg", role="assistant", status="completed", content=content)

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        """Makes a call, and returns the text of its result, or of what went wrong, which the model sees too."""
        call = f"call_{len(self.output)}"
        self._add("function_call", "fc", call_id=call, name=name, arguments=json.dumps(arguments), status="completed")
        offered = [tool["function"]["name"] for tool in self.task.tools]
        if name in offered:
            result = self._post(name, arguments).text
        else:
            # Never sent: the server's `verify` is a path like those of tools.
            result = json.dumps({"error": f"unknown tool {name!r}; expected one of {', '.join(offered) or 'none'}"})
        self._add("function_call_output", "fco", call_id=call, output=result, status="completed")
        return result

    def _add(self, kind: str, prefix: str, **fields: Any) -> None:
        self.output.append({"type": kind, "id": f"{prefix}_{len(self.output)}", **fields})

    def _verified(self) -> Outcome:
        """The reward, and the numbers that the server adds to it."""
        params = self.task.record[PARAMS]
        response = {
            "id": "resp_0", "object": "response", "created_at": time.time(), "model": "policy", "output": self.output,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": params.get("tools") or [],
        }  # fmt: skip
        answer = self._post("verify", {**self.task.record, "response": response})
        answer.raise_for_status()
        found = answer.json()
        if not isinstance(found.get("reward"), (int, float)):
            raise ConfigError(f"environment.options.url: the answer of verify has no reward; it has {', '.join(found)}")
        known = {"reward", *self.task.record}
        numbers = {key: float(value) for key, value in found.items() if isinstance(value, (bool, int, float))}
        metrics = {key: value for key, value in numbers.items() if key not in known}
        return Outcome(float(found["reward"]), True, metrics=metrics)

    def _post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self.client.post(f"/{path}", json=body)

    def close(self) -> None:
        self.client.close()


def _read(source: str) -> list[Task]:
    tasks = []
    for number, record in enumerate(data.read(source, DATA), 1):
        where = f"{DATA}: record {number} of {source}"
        params = record.get(PARAMS)
        if not isinstance(params, dict) or "input" not in params:
            raise ConfigError(f"{where}: expected {PARAMS!r} with 'input'")
        try:
            task = Task(record, _prompt(params, where), [_tool(one, where) for one in params.get("tools") or []])
        except ConfigError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"{where}: {PARAMS} is malformed: {type(error).__name__}: {error}") from error
        tasks.append(task)
    return tasks


def _tool(given: dict[str, Any], where: str) -> Message:
    if given.get("type") != "function":
        raise ConfigError(f"{where}: a tool of type {given.get('type')!r} is not supported: expected 'function'")
    return function(given["name"], given.get("description") or "", given.get("parameters") or {"type": "object"})


def _prompt(params: dict[str, Any], where: str) -> list[Message]:
    """The messages of an input of the responses API."""
    given = params["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages: list[Message] = []
    if params.get("instructions"):
        messages.append({"role": "system", "content": params["instructions"]})
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            # Chat templates know no developer.
            role = "system" if item["role"] == "developer" else item["role"]
            messages.append({"role": role, "content": _text(item["content"], where)})
        elif kind == "function_call":
            call = {"name": item["name"], "arguments": json.loads(item["arguments"])}
            calls = [{"type": "function", "function": call}]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "content": _text(item["output"], where)})
        elif kind != "reasoning":
            raise ConfigError(f"{where}: an input of type {kind!r} is not supported")
    return messages


def _text(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if unknown := [part.get("type") for part in content if part.get("type") not in TEXT_PARTS]:
        raise ConfigError(f"{where}: content of type {unknown[0]!r} is not supported: expected text")
    return "".join(part["text"] for part in content)
