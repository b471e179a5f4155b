"""The Responses API, driven by the official `openai` package and by raw requests."""

import json
from typing import Literal

import httpx
import openai
import pydantic
import pytest

import chat_model
import folders
from helpers import KEY
from process import PATIENCE

FOLDER = chat_model.write(folders.new() / "tiny-chat")
MODEL = chat_model.NAME
ENDLESS = chat_model.ENDLESS
MODELS = {MODEL: FOLDER, ENDLESS: chat_model.write_endless(folders.new() / ENDLESS)}

SYSTEM, USER = "Be brief.", "Hi there, naïve café?"
CHAT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
PARAMETERS = {
    "type": "object",
    "properties": {"size": {"enum": ["small", "large"]}, "count": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["size", "count"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "name": "box", "description": "Löök.", "parameters": PARAMETERS, "strict": True}
CHAT_TOOL = {"type": "function", "function": {name: TOOL[name] for name in ("name", "description", "parameters")}}

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def oai(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=120 * PATIENCE) as connected:
        yield connected


def seeded(seed=5, **more) -> dict:
    return {"extra_body": {"seed": seed, **more}}


def streamed(server, **body) -> list[tuple[str, dict]]:
    """The events of a stream, as they are on the wire."""
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.stream(
        "POST", f"{server.url}/v1/responses", headers=headers, json=body | {"stream": True}, timeout=120 * PATIENCE
    ) as answer:
        assert answer.status_code == 200, answer.read()
        blocks = [block for block in "".join(answer.iter_text()).split("\n\n") if block and not block.startswith(":")]
    events = []
    for block in blocks:
        name, data = block.split("\n")
        assert name.startswith("event: ") and data.startswith("data: "), block
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def alike(response: dict) -> dict:
    """A response without what differs between two requests."""
    request = response["id"].removeprefix("resp_")
    text = json.dumps({name: value for name, value in response.items() if name not in ("created_at", "usage")})
    return json.loads(text.replace(request, "R"))


def test_a_response_is_the_reply_of_chat_completions(oai):
    reply = oai.chat.completions.create(model=MODEL, messages=CHAT, max_tokens=24, seed=5)
    for asked in (
        {"input": USER, "instructions": SYSTEM},
        {"input": CHAT},
        {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": USER}]}],
         "instructions": SYSTEM},
    ):  # fmt: skip
        response = oai.responses.create(model=MODEL, max_output_tokens=24, **asked, **seeded())
        assert response.output_text == reply.choices[0].message.content
        ended = {"stop": ("completed", None), "length": ("incomplete", "max_output_tokens")}
        reason = response.incomplete_details and response.incomplete_details.reason
        assert (response.status, reason) == ended[reply.choices[0].finish_reason]
        usage = response.usage
        assert (usage.input_tokens, usage.output_tokens) == (reply.usage.prompt_tokens, reply.usage.completion_tokens)
        assert usage.total_tokens == reply.usage.total_tokens
        assert usage.output_tokens_details.reasoning_tokens == 0
    assert response.id.startswith("resp_") and (response.object, response.model) == ("response", MODEL)


def test_a_stream_says_what_the_whole_answer_says(server, oai):
    request = {"model": MODEL, "input": USER, "seed": 3, "max_output_tokens": 60, "metadata": {"run": "a"}}
    whole = oai.responses.create(
        model=MODEL, input=USER, max_output_tokens=60, metadata={"run": "a"}, **seeded(3)
    ).model_dump(mode="json", exclude_unset=True)
    events = streamed(server, **request)
    assert [event["sequence_number"] for _, event in events] == list(range(len(events)))
    assert all(name == event["type"] for name, event in events)
    names = [name.removeprefix("response.") for name, _ in events]
    deltas = [event["delta"] for name, event in events if name == "response.output_text.delta"]
    begin = ["created", "in_progress", "output_item.added", "content_part.added"]
    end = ["output_text.done", "content_part.done", "output_item.done", whole["status"]]
    assert names == [*begin, *["output_text.delta"] * len(deltas), *end]
    final = events[-1][1]["response"]
    assert alike(final) == alike(whole) and final["metadata"] == {"run": "a"}
    assert len(deltas) > 3 and "".join(deltas) == final["output"][0]["content"][0]["text"]
    assert {event["response"]["status"] for _, event in events[:2]} == {"in_progress"}
    with oai.responses.stream(model=MODEL, input=USER, max_output_tokens=60, **seeded(3)) as stream:
        seen = list(stream)
    assert [event.type.removeprefix("response.") for event in seen] == names


def test_token_ids_are_those_that_were_sampled(server, oai):
    response = oai.responses.create(model=MODEL, input=USER, max_output_tokens=24, **seeded(return_token_ids=True))
    prompt, sampled = response.prompt_token_ids, response.token_ids
    assert (len(prompt), len(sampled)) == (response.usage.input_tokens, response.usage.output_tokens)
    body = {"model": MODEL, "input": USER, "max_output_tokens": 24, "seed": 5, "return_token_ids": True}
    last = streamed(server, **body)[-1][1]["response"]
    assert (last["prompt_token_ids"], last["token_ids"]) == (prompt, sampled)
    tokenizer = chat_model.tokenizer(FOLDER)
    assert response.output_text == tokenizer.decode(sampled, skip_special_tokens=True)
    assert tokenizer.decode(prompt).endswith(f"<|user|>{USER}<|end|><|assistant|>")
    assert "token_ids" not in oai.responses.create(model=MODEL, input=USER, max_output_tokens=2).to_dict()


def test_a_demanded_call_is_streamed_and_answered(server, oai):
    common = {"model": ENDLESS, "tools": [TOOL], "max_output_tokens": 400, "instructions": SYSTEM}
    named = {"type": "function", "name": "box"}
    response = oai.responses.create(input=USER, tool_choice=named, **common, **seeded(1))
    (call,) = response.output
    assert (call.type, call.name, call.status, response.status) == ("function_call", "box", "completed", "completed")
    assert json.loads(call.arguments)["size"] in ("small", "large")
    events = streamed(server, input=USER, tool_choice=named, seed=1, **common)
    assert [name.removeprefix("response.") for name, _ in events] == [
        "created", "in_progress", "output_item.added", "function_call_arguments.delta",
        "function_call_arguments.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert events[4][1]["arguments"] == call.arguments
    with oai.responses.stream(input=USER, tool_choice=named, **common, **seeded(1)) as stream:
        final = stream.get_final_response()
    assert (final.output[0].arguments, final.usage.output_tokens) == (call.arguments, response.usage.output_tokens)
    # The whole conversation, sent back as the documentation of the SDK has it.
    items = [{"role": "user", "content": USER}, *(item.to_dict() for item in response.output)]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "ok"})
    after = oai.responses.create(input=items, **common, **seeded())
    made = {"id": call.call_id, "type": "function", "function": {"name": "box", "arguments": call.arguments}}
    messages = [*CHAT, {"role": "assistant", "content": None, "tool_calls": [made]}]
    messages.append({"role": "tool", "tool_call_id": call.call_id, "content": "ok"})
    same = oai.chat.completions.create(model=ENDLESS, messages=messages, tools=[CHAT_TOOL], max_tokens=400, seed=5)
    assert after.output_text == (same.choices[0].message.content or "")
    assert after.usage.input_tokens == same.usage.prompt_tokens
    single = oai.responses.create(
        input=USER, tool_choice="required", parallel_tool_calls=False, **common, **seeded(1)
    )
    assert [item.type for item in single.output] == ["function_call"]
    without = oai.responses.create(input=USER, tool_choice="none", **common, **seeded())
    assert without.usage.input_tokens < response.usage.input_tokens


class Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    size: Literal["small", "large"]
    flag: bool


def test_a_reply_follows_a_json_schema(oai):
    parsed = oai.responses.parse(model=MODEL, input=USER, text_format=Item, max_output_tokens=200, **seeded(1))
    assert parsed.status == "completed" and parsed.output_parsed.size in ("small", "large")
    assert parsed.to_dict()["text"]["format"]["type"] == "json_schema"
    free = {"format": {"type": "json_object"}}
    response = oai.responses.create(model=MODEL, input=USER, text=free, max_output_tokens=200, **seeded(1))
    assert response.status == "incomplete" or isinstance(json.loads(response.output_text), dict)


def test_the_defaults_of_clients_are_accepted_and_nothing_is_stored(oai):
    response = oai.responses.create(
        model=MODEL, input="Hi", store=True, max_output_tokens=4, include=["reasoning.encrypted_content"],
        metadata={"a": "b"}, truncation="disabled", service_tier="auto", user="me", prompt_cache_key="k",
    )  # fmt: skip
    assert response.metadata == {"a": "b"} and response.to_dict()["store"] is False
    with pytest.raises(openai.NotFoundError) as missing:
        oai.responses.retrieve(response.id)
    assert missing.value.code == "unknown_url"
    with pytest.raises(openai.BadRequestError, match="not stored: send the whole conversation") as refused:
        oai.responses.create(model=MODEL, input="Hi", previous_response_id=response.id)
    assert refused.value.param == "previous_response_id"


def test_refusals_name_the_field_in_the_form_of_the_api(oai):
    unfit = {"format": {"type": "json_schema", "name": "x", "schema": {"not": {"type": "string"}}}}
    for field, request in (
        ("tools[0].type", {"tools": [{"type": "web_search"}]}),
        ("tool_choice", {"tools": [TOOL], "tool_choice": {"type": "function", "name": "none"}}),
        ("parallel_tool_calls", {"tools": [TOOL], "parallel_tool_calls": False}),
        ("text.format", {"tools": [TOOL], "text": {"format": {"type": "json_object"}}}),
        ("text.format.schema", {"text": unfit}),
        ("temperature", {"temperature": 9}),
        ("max_output_tokens", {"max_output_tokens": 0}),
        ("input[0].type", {"input": [{"type": "item_reference", "id": "msg_1"}]}),
        ("input[0].content[0].image_url", {"input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": "http://x/a.png", "detail": "auto"}]}]}),
        ("foo", {"extra_body": {"foo": 1}}),
    ):  # fmt: skip
        with pytest.raises(openai.BadRequestError) as refused:
            oai.responses.create(**{"model": MODEL, "input": "Hi"} | request)
        assert (refused.value.param, refused.value.type) == (field, "invalid_request_error"), refused.value
    with pytest.raises(openai.NotFoundError) as missing:
        oai.responses.create(model="none", input="Hi")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as long:
        oai.responses.create(model=MODEL, input="Hi", max_output_tokens=4_000)
    assert long.value.code == "context_length_exceeded"
    # In a stream too: nothing has begun.
    with pytest.raises(openai.BadRequestError):
        oai.responses.create(model=MODEL, input="Hi", temperature=9, stream=True)
