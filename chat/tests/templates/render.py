"""Renders chat templates as transformers does, for comparison with the server's renderer.

`python render.py` writes expected.json from the templates and conversations beside it, and expected_snippets.json from
the lines of snippets.txt, each of which is a template; it needs Jinja2.
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
EXPECTED = HERE / "expected.json"
EXPECTED_SNIPPETS = HERE / "expected_snippets.json"
SNIPPETS_CONVERSATION = {
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo\n"}],
    "add_generation_prompt": True,
}
NOW = datetime.datetime(2024, 7, 9, 15, 4, 5)
THOUGHTS = ("reasoning_content", "thinking", "reasoning")
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class Generation(jinja2.ext.Extension):
    """The tag `generation`, which renders its content in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("content"), [], [], body).set_lineno(line)

    def content(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


def with_thoughts(message):
    """The message with its thoughts under both names that templates read."""
    thoughts = next((message[name] for name in THOUGHTS if message.get(name) is not None), None)
    return message if thoughts is None else {"thinking": thoughts, **message, "reasoning_content": thoughts}


def rendered(source, conversation):
    """The text of a conversation, or None if the template refuses it."""
    try:
        return environment().from_string(source).render(
            messages=[with_thoughts(message) for message in conversation["messages"]],
            tools=conversation.get("tools"),
            documents=None,
            add_generation_prompt=conversation["add_generation_prompt"],
            **TOKENS,
            **conversation.get("variables", {}),
        )
    except Exception:  # noqa: BLE001: whatever a template fails with, the server must refuse it too
        return None


def expected():
    """Texts by template and conversation."""
    conversations = json.loads((HERE / "conversations.json").read_text())
    sources = {path.stem: path.read_bytes().decode() for path in sorted(HERE.glob("*.jinja"))}
    return {
        name: {other: rendered(source, conversation) for other, conversation in conversations.items()}
        for name, source in sources.items()
    }


def expected_snippets():
    """Snippets with their texts."""
    lines = (HERE / "snippets.txt").read_text().splitlines()
    return [[line, rendered(line, SNIPPETS_CONVERSATION)] for line in lines]


def text(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    EXPECTED.write_text(text(expected()))
    EXPECTED_SNIPPETS.write_text(text(expected_snippets()))
