"""The Anthropic API, driven by the official `anthropic` package."""

import concurrent.futures
import contextlib
import threading

import anthropic
import httpx
import pytest

import chat_model
import folders
from helpers import KEY, WAIT, cancelled, gauge, lora, sample, wait_until
from process import PATIENCE

FOLDER = chat_model.write(folders.new() / "tiny-chat")
MODEL = chat_model.NAME
ENDLESS = chat_model.ENDLESS
MODELS = {MODEL: FOLDER, ENDLESS: chat_model.write_endless(folders.new() / ENDLESS)}
CHAT = [{"role": "user", "content": "Hi there, naïve café?"}]
SYSTEM = "Be brief."
STREAMS = 64
HANGING = 32

pytestmark = pytest.mark.timeout(240)


def api(server, key=KEY, base="anthropic/api"):
    # Its client adds `/v1/messages`; an empty base is the short path.
    return anthropic.Anthropic(base_url=f"{server.url}/{base}".rstrip("/"), api_key=key, max_retries=0)


@pytest.fixture(scope="module")
def claude(server):
    with api(server) as connected:
        yield connected


@pytest.fixture(scope="module")
def tokenizer():
    return chat_model.tokenizer(FOLDER)


def rendered(tokenizer, messages, **options):
    messages = [{"role": "system", "content": SYSTEM}, *messages]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options)
    return tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("base", ["anthropic/api", ""])
def test_a_message_is_the_greedy_sample_of_the_rendered_prompt(server, service, tokenizer, base):
    tokens = rendered(tokenizer, CHAT)
    sampler = service.create_sampling_client(base_model=MODEL).result(WAIT)
    sequence = sample(sampler, tokens, max_tokens=24, temperature=0.0).sequences[0]
    reply = api(server, base=base).messages.create(
        model=MODEL, messages=CHAT, system=SYSTEM, max_tokens=24, extra_body={"temperature": 0}
    )
    assert "".join(block.text for block in reply.content) == tokenizer.decode(sequence.tokens, skip_special_tokens=True)
    assert reply.stop_reason == {"stop": "end_turn", "length": "max_tokens"}[sequence.stop_reason]
    usage = reply.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == len(tokens)
    assert usage.output_tokens == len(sequence.tokens)
    assert (reply.type, reply.role, reply.model) == ("message", "assistant", MODEL)


def test_tokens_are_counted(claude, tokenizer):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    count = claude.messages.count_tokens(model=MODEL, messages=CHAT, system=SYSTEM)
    assert count.input_tokens == len(rendered(tokenizer, CHAT))
    tools = [{"name": "weather", "description": "Tells it", "input_schema": schema}]
    with_tools = claude.messages.count_tokens(model=MODEL, messages=CHAT, system=SYSTEM, tools=tools)
    function = {"name": "weather", "description": "Tells it", "parameters": schema}
    expected = rendered(tokenizer, CHAT, tools=[{"type": "function", "function": function}])
    assert with_tools.input_tokens == len(expected)


def test_an_assistants_message_is_continued(claude, service, tokenizer):
    prompt = tokenizer.decode(rendered(tokenizer, CHAT)) + "I think"
    tokens = tokenizer.encode(prompt, add_special_tokens=False)
    sampler = service.create_sampling_client(base_model=MODEL).result(WAIT)
    expected = sample(sampler, tokens, max_tokens=8, temperature=0.0).sequences[0]
    messages = [*CHAT, {"role": "assistant", "content": "I think"}]
    reply = claude.messages.create(model=MODEL, messages=messages, system=SYSTEM, max_tokens=8, extra_body={"temperature": 0})
    assert reply.content[0].text == tokenizer.decode(expected.tokens, skip_special_tokens=True)


def test_streams_say_what_whole_answers_say(claude):
    request = {"model": MODEL, "messages": CHAT, "max_tokens": 40, "extra_body": {"temperature": 0}}
    whole = claude.messages.create(**request)
    with claude.messages.stream(**request) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == final.content[0].text == whole.content[0].text
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
    kinds = [event.type for event in claude.messages.create(**request, stream=True)]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_calls_are_forced(claude):
    schema = {"type": "object", "properties": {"day": {"enum": ["today", "tomorrow"]}}, "required": ["day"]}
    tools = [{"name": name, "input_schema": schema | {"additionalProperties": False}} for name in ("weather", "news")]
    request = {"model": ENDLESS, "messages": CHAT, "max_tokens": 400, "tools": tools}
    reply = claude.messages.create(**request, tool_choice={"type": "tool", "name": "news", "disable_parallel_tool_use": True})
    (block,) = reply.content
    assert (block.type, block.name, reply.stop_reason) == ("tool_use", "news", "tool_use")
    assert block.input["day"] in ("today", "tomorrow")
    with claude.messages.stream(**request, tool_choice={"type": "any", "disable_parallel_tool_use": True}) as stream:
        (block,) = stream.get_final_message().content
    assert block.name in ("weather", "news") and block.input["day"] in ("today", "tomorrow")
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with pytest.raises(anthropic.BadRequestError, match="tool_choice"):
        claude.messages.create(**request | {"max_tokens": 2000}, thinking=thinking, tool_choice={"type": "any"})


def test_a_stop_sequence_is_named(claude):
    request = {"model": MODEL, "messages": CHAT, "max_tokens": 40, "extra_body": {"temperature": 0}}
    whole = claude.messages.create(**request).content[0].text
    stop = whole[5:8]
    cut = claude.messages.create(**request, stop_sequences=["never there", stop])
    assert cut.content[0].text == whole[: whole.index(stop)]
    assert (cut.stop_reason, cut.stop_sequence) == ("stop_sequence", stop)


def test_a_checkpoint_is_a_model(claude, service):
    path = lora(service, MODEL).save_weights_for_sampler("claude").result(WAIT).path
    for name in (path, f"{MODEL};{path}"):
        assert claude.messages.create(model=name, messages=CHAT, max_tokens=4).model == name


def test_64_streams_at_once(server, claude):
    def run(index, stream):
        messages = [{"role": "user", "content": f"Question {index}"}]
        request = {"model": MODEL, "messages": messages, "max_tokens": 12, "extra_body": {"temperature": 0}}
        with api(server) as own:
            if not stream:
                return "".join(block.text for block in own.messages.create(**request).content)
            with own.messages.stream(**request) as events:
                return "".join(events.text_stream)

    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        together = list(pool.map(lambda index: run(index, True), range(STREAMS)))
    assert together[::16] == [run(index, False) for index in range(0, STREAMS, 16)]


@pytest.mark.deployments("sqlite")
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_frees_its_place(server, claude, stream):
    """Its sample is cancelled, and the sequences that the engine decodes are none again."""
    before = cancelled(server)
    # So many tokens that together they last longer than any pause of the test.
    body = {"model": ENDLESS, "messages": CHAT, "max_tokens": 20_000, "temperature": 1, "stream": stream}
    together = threading.Barrier(HANGING, timeout=60 * PATIENCE)

    def hang_up(_):
        with httpx.Client(base_url=server.url, headers={"x-api-key": KEY}, timeout=60 * PATIENCE) as http:
            if not stream:
                with contextlib.suppress(httpx.ReadTimeout):
                    http.post("/v1/messages", json=body, timeout=0.1)
                return
            with http.stream("POST", "/v1/messages", json=body) as answer:
                assert answer.status_code == 200
                assert any("content_block_delta" in line for line in answer.iter_lines())
                together.wait()

    with concurrent.futures.ThreadPoolExecutor(HANGING) as pool:
        list(pool.map(hang_up, range(HANGING)))
    wait_until(lambda: cancelled(server) > before, "the samples were not cancelled")
    wait_until(lambda: gauge(server, "trainyard_active_samples") == 0, "a sample of a client that is gone goes on")
    assert claude.messages.create(model=MODEL, messages=CHAT, max_tokens=4).usage.output_tokens <= 4


def test_errors_are_in_the_form_of_the_api(server, claude):
    def error(call, kind):
        with pytest.raises(kind) as refused:
            call()
        body = refused.value.body
        assert body["type"] == "error" and body["error"]["message"]
        return body["error"]["type"], body["error"]["message"]

    create = claude.messages.create
    common = {"messages": CHAT, "max_tokens": 4}
    kind, text = error(lambda: create(model="none", **common), anthropic.NotFoundError)
    assert kind == "not_found_error" and "none" in text
    kind, text = error(lambda: create(model=MODEL, **common, extra_body={"temperature": 2}), anthropic.BadRequestError)
    assert kind == "invalid_request_error" and text.startswith("temperature: ")
    kind, text = error(lambda: create(model=MODEL, **common, extra_body={"foo": 1}), anthropic.BadRequestError)
    assert "foo" in text
    kind, text = error(lambda: create(model=MODEL, **common, tool_choice={"type": "any"}), anthropic.BadRequestError)
    assert text.startswith("tool_choice: a call is required")
    # Programs of this machine need no key of the service; a page in a browser does.
    stranger = api(server, "sk-ant-wrong").messages
    assert stranger.create(model=MODEL, **common).type == "message"
    with pytest.raises(anthropic.AuthenticationError):
        stranger.create(model=MODEL, **common, extra_headers={"origin": server.url})
    missing = httpx.get(f"{server.url}/anthropic/api/v1/nothing", headers={"x-api-key": KEY})
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")
