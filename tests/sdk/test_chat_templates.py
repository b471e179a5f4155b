"""The expected texts of chat templates are those of the installed Jinja2, set up by the installed transformers."""

import json
import pathlib
import sys

import pytest
from transformers.utils import chat_template_utils

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "chat" / "tests" / "templates"
sys.path.insert(0, str(TEMPLATES))

import render

pytestmark = pytest.mark.timeout(120)

CONVERSATIONS = json.loads((TEMPLATES / "conversations.json").read_text())


def test_the_expected_texts_are_current():
    """The server's tests compare its renderer with this file."""
    assert render.EXPECTED.read_text() == render.text(render.expected())
    assert render.EXPECTED_SNIPPETS.read_text() == render.text(render.expected_snippets())


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.jinja")), ids=lambda path: path.stem)
def test_transformers_renders_the_same(path):
    source = path.read_bytes().decode()
    if "strftime_now" in source:
        pytest.skip("it shows the present")
    for name, conversation in CONVERSATIONS.items():
        assert by_transformers(source, conversation) == render.rendered(source, conversation), name


def by_transformers(source: str, conversation: dict) -> str | None:
    try:
        (text,), _ = chat_template_utils.render_jinja_template(
            conversations=[conversation["messages"]], tools=conversation.get("tools"), chat_template=source,
            add_generation_prompt=conversation["add_generation_prompt"],
            **render.TOKENS, **conversation.get("variables", {}),
        )  # fmt: skip
    except Exception:  # noqa: BLE001: any failure is a refusal
        return None
    return text
