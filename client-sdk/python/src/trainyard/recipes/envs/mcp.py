"""A data set of prompts whose answers may call the tools of MCP servers, when the package `mcp` 2 is installed."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from ..core import data
from ..core.chat import Message, tool_calls
from ..core.config import ConfigError, check, check_keys, missing
from ..core.rewards import Reward
from .base import Environment, Outcome, function
from .prompts import Answer, Prompts

SERVERS = "environment.options.servers"
KEYS = {"url", "command", "args", "env", "cwd"}


class Mcp(Prompts):
    """Records and rewards are those of `prompts`. Each episode connects to the `servers`: of a `url`, or of a `command`
    with `args`, `env` and `cwd`, which is started for the episode. A call may take `seconds`.
    """

    def __init__(
        self, servers: Sequence[dict[str, Any]], data: str, reward: str, held_out: bool = False,
        held_out_data: str = "", key: str = "prompt", system: str = "", seconds: float = 60.0,
    ) -> None:  # fmt: skip
        super().__init__(data, reward, held_out, held_out_data, key, system)
        check(len(servers) > 0, SERVERS, "at least one is required")
        self.servers, self.seconds = [_server(number, given) for number, given in enumerate(servers)], seconds
        # So that a server that does not start is an error of the settings.
        Connection(self.servers, seconds).close()

    def make(self, index: int) -> Environment:
        return ToolAnswer(self.records[index], self.key, self.system, self.reward, self.servers, self.seconds)


def _package() -> Any:
    try:
        package: Any = importlib.import_module("mcp")
    except ImportError as error:
        raise missing("environment.name", "mcp", "mcp") from error
    if not hasattr(package, "Client"):
        raise ConfigError("environment.name: the package mcp is older than 2; run: pip install --upgrade mcp")
    return package


def _server(number: int, given: dict[str, Any]) -> Any:
    """What the client of the package connects to."""
    package, key = _package(), f"{SERVERS}[{number}]"
    check_keys(given, KEYS, key)
    check(("url" in given) != ("command" in given), key, "expected either a url or a command")
    if "url" in given:
        check(len(given) == 1, key, "a server with a url has no further settings")
        return str(given["url"])
    return package.StdioServerParameters(**given)


class ToolAnswer(Answer):
    """An episode: calls of tools, until an answer has none, which is judged."""

    def __init__(
        self, record: data.Record, key: str, system: str, reward: Reward, servers: Sequence[Any], seconds: float
    ) -> None:
        super().__init__(record, key, system, reward)
        self.servers, self.seconds = servers, seconds
        self.connection: Connection | None = None

    def reset(self) -> list[Message]:
        self.connection = Connection(self.servers, self.seconds)
        self.tools = self.connection.tools
        return super().reset()

    def step(self, reply: str) -> Outcome:
        calls = tool_calls(reply)
        if not calls or self.connection is None:
            return super().step(reply)
        results = [self.connection.call(call["name"], call["arguments"]) for call in calls]
        return Outcome(done=False, messages=[{"role": "tool", "content": result} for result in results])

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


class Connection:
    """Sessions with servers, in an event loop of their own: the package's clients belong to the task that opened
    them."""

    tools: list[Message]
    """Tools of all servers, in the form of the OpenAI API."""

    def __init__(self, servers: Sequence[Any], seconds: float) -> None:
        self.servers, self.seconds = servers, seconds
        self.ready: Future[list[Message]] = Future()
        self.loop = asyncio.new_event_loop()
        self.ended = asyncio.Event()
        self.of_tool: dict[str, Any] = {}
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.tools = self.ready.result()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Returns the text of a result, or of what went wrong, which the model sees too."""
        if name not in self.of_tool:
            return f"Error: unknown tool {name!r}; expected one of {', '.join(self.of_tool)}"
        return asyncio.run_coroutine_threadsafe(self._call(name, arguments), self.loop).result()

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        try:
            result = await self.of_tool[name].call_tool(name, arguments)
        except _package().MCPError as error:
            return f"Error: {error.error.message}"
        texts = [part.text for part in result.content if getattr(part, "type", "") == "text"]
        if not texts and result.structured_content is not None:
            texts = [json.dumps(result.structured_content, ensure_ascii=False)]
        return "\n".join(texts)

    def close(self) -> None:
        """Ends the sessions, and the servers that were started for them."""
        self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join()

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        except Exception as error:
            # A client that ends badly after its episode changes nothing of it.
            if not self.ready.done():
                self.ready.set_exception(ConfigError(f"{SERVERS}: {_cause(error)}"))
        finally:
            self.loop.close()

    async def _serve(self) -> None:
        package = _package()
        async with contextlib.AsyncExitStack() as stack:
            tools: list[Message] = []
            for server in self.servers:
                client = await stack.enter_async_context(package.Client(server, read_timeout_seconds=self.seconds))
                for tool in await _listed(client):
                    if tool.name in self.of_tool:
                        raise ConfigError(f"two servers have a tool {tool.name!r}")
                    self.of_tool[tool.name] = client
                    tools.append(function(tool.name, tool.description or "", tool.input_schema))
            self.ready.set_result(tools)
            await self.ended.wait()


async def _listed(client: Any) -> list[Any]:
    """The tools of a server, from all pages."""
    found: list[Any] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            return found


def _cause(error: BaseException) -> str:
    """The first error within groups of one task."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
