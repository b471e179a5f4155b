"""Server-sent events of the OpenAI and Anthropic APIs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

from ._sending import AsyncSender, Sender
from .errors import ProtocolError, TransportError

END = "[DONE]"
LAST = ("message_stop", "response.completed", "response.incomplete")
"""Types of the last events of messages and responses."""

Event = dict[str, Any]
"""A chunk of the OpenAI API, or an event of the Anthropic API, as a dictionary of its fields."""


class Decoder:
    """Joins the lines of a stream into events."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self.ended = False

    def line(self, line: str) -> Event | None:
        """Returns the event that a line completes. `ended` is true after the last one."""
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            return None
        if not self._data:
            return None
        text, self._data = "\n".join(self._data), []
        if text == END:
            self.ended = True
            return None
        return self._event(text)

    def _event(self, text: str) -> Event:
        try:
            event = json.loads(text)
        except ValueError as error:
            raise ProtocolError(f"stream: an event is not JSON: {error}") from error
        if not isinstance(event, dict):
            raise ProtocolError("stream: an event is not a JSON object")
        refusal = event.get("error")
        if refusal is not None:
            raise ProtocolError(f"stream: {refusal.get('message') if isinstance(refusal, dict) else refusal}")
        self.ended = self.ended or event.get("type") in LAST
        return event


def _body(request: dict[str, Any]) -> bytes:
    return json.dumps(request | {"stream": True}, allow_nan=False).encode()


_HEADERS = {"content-type": "application/json", "accept": "text/event-stream"}
_STREAMED = {"streamed": True}


def stream(sender: Sender, path: str, request: dict[str, Any]) -> Iterator[Event]:
    """Yields events as they arrive."""
    decoder = Decoder()
    body = _body(request)
    try:
        with sender.http.stream("POST", path, content=body, headers=_HEADERS, extensions=_STREAMED) as response:
            for line in response.iter_lines():
                event = decoder.line(line)
                if event is not None:
                    yield event
    except httpx.TransportError as error:
        raise TransportError(f"{path}: the stream was interrupted: {error}") from error
    if not decoder.ended:
        raise TransportError(f"{path}: the stream ended before its last event")


async def astream(sender: AsyncSender, path: str, request: dict[str, Any]) -> AsyncIterator[Event]:
    """Yields events as they arrive."""
    decoder = Decoder()
    body = _body(request)
    try:
        async with sender.http.stream("POST", path, content=body, headers=_HEADERS, extensions=_STREAMED) as response:
            async for line in response.aiter_lines():
                event = decoder.line(line)
                if event is not None:
                    yield event
    except httpx.TransportError as error:
        raise TransportError(f"{path}: the stream was interrupted: {error}") from error
    if not decoder.ended:
        raise TransportError(f"{path}: the stream ended before its last event")
