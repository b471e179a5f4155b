"""Text that a chat template marks for training: that of its `{% generation %}` blocks."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from .config import ConfigError

OPEN, CLOSE = "\ue0f0", "\ue0f1"
"""Private-use characters around marked text, which stay with it through all filters and variables."""


def pieces(text: str, template: str, variables: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The text of a conversation in pieces, each with whether it is marked. `template` rendered it with `variables`."""
    marked = _rendered(template, variables)
    if text.count(OPEN) + text.count(CLOSE) or marked.replace(OPEN, "").replace(CLOSE, "") != text:
        raise ConfigError(
            "loss_on: the chat template changes the text inside its generation blocks, so it can't be located"
        )
    depth, start = 0, 0
    for at, character in enumerate(marked):
        if character in (OPEN, CLOSE):
            if at > start:
                yield marked[start:at], depth > 0
            depth, start = depth + (1 if character == OPEN else -1), at + 1
            if depth < 0:
                break
    if depth:
        raise ConfigError("loss_on: the chat template renders only part of a generation block")
    if start < len(marked):
        yield marked[start:], False


def _rendered(template: str, variables: dict[str, Any]) -> str:
    """The text as `transformers` renders it, with signs around what is marked."""
    import jinja2
    import jinja2.ext
    import jinja2.nodes
    import jinja2.sandbox

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("content"), [], [], body).set_lineno(line)

        def content(self, caller: Callable[[], str]) -> str:
            return OPEN + caller() + CLOSE

    def raise_exception(message: str) -> NoReturn:
        raise jinja2.exceptions.TemplateError(message)

    def tojson(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals |= {
        "raise_exception": raise_exception,
        "strftime_now": lambda form: datetime.datetime.now().strftime(form),
    }
    return environment.from_string(template).render(**variables)
