"""The OpenAI API, driven by the official `openai` package."""

import concurrent.futures
import json

import httpx
import openai
import pytest
from tinker import types

import chat_model
import folders
from helpers import KEY, WAIT, cancelled, client, lora, sample, wait_until
from process import PATIENCE
from server import GOLDEN, TINY, TINY_MODELS
from tenancy import trainyard

FOLDER = chat_model.write(folders.new() / "tiny-chat")
MODEL = chat_model.NAME
SAME, UNLIKE = f"{MODEL}-again", "tiny-unlike"
ENDLESS = chat_model.ENDLESS
MODELS = TINY_MODELS | {MODEL: FOLDER, SAME: FOLDER, UNLIKE: GOLDEN / "qwen2"}
MODELS |= {ENDLESS: chat_model.write_endless(folders.new() / ENDLESS)}
# Two tenants, each with a key; the second may use few tokens.
OTHER, POOR = "tml-other-0123456789-0123456789", "tml-poor-0123456789-0123456789"
CONFIG = f"""
[[tenants]]
name = "main"
keys = [{{ key = "{KEY}" }}]

[[tenants]]
name = "other"
keys = [{{ key = "{OTHER}" }}]

[[tenants]]
name = "poor"
keys = [{{ key = "{POOR}" }}]
tokens_per_minute = 60
"""

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi there, naïve café?"}]
STREAMS = 64

pytestmark = pytest.mark.timeout(240)


def api(server, key=KEY, base="oai/api/v1", **options):
    return openai.OpenAI(base_url=f"{server.url}/{base}", api_key=key, max_retries=0, **options)


SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": ["small", "large"]}, "count": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["size", "count"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def oai(server):
    with api(server) as connected:
        yield connected


@pytest.fixture(scope="module")
def tokenizer():
    return chat_model.tokenizer(FOLDER)


@pytest.fixture(scope="module")
def chat_sampler(service):
    return service.create_sampling_client(base_model=MODEL).result(WAIT)


def greedy(sampler, tokenizer, prompt, max_tokens):
    """The text and the stop reason that the SDK's greedy sample of a prompt has."""
    tokens = tokenizer.encode(prompt, add_special_tokens=False)
    sequence = sample(sampler, tokens, max_tokens=max_tokens, temperature=0.0).sequences[0]
    return tokenizer.decode(sequence.tokens, skip_special_tokens=True), sequence


def test_models_are_listed_with_own_checkpoints(server, oai, service):
    path = lora(service, MODEL).save_weights_for_sampler("listed").result(WAIT).path
    listed = {model.id: model for model in oai.models.list()}
    assert {MODEL, TINY, path} <= listed.keys()
    assert (listed[path].owned_by, listed[path].root, listed[MODEL].object) == ("user", MODEL, "model")
    assert path not in {model.id for model in api(server, OTHER).models.list()}
    assert {model.id for model in api(server, base="v1").models.list()} == listed.keys()


def test_a_chat_is_the_greedy_sample_of_the_rendered_prompt(oai, chat_sampler, tokenizer):
    prompt = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    text, sequence = greedy(chat_sampler, tokenizer, prompt, 24)
    reply = oai.chat.completions.create(model=MODEL, messages=CHAT, temperature=0, max_completion_tokens=24)
    choice = reply.choices[0]
    assert choice.message.content == text
    assert choice.finish_reason == sequence.stop_reason
    assert reply.usage.prompt_tokens == len(tokenizer.encode(prompt, add_special_tokens=False))
    assert reply.usage.completion_tokens == len(sequence.tokens)
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert (reply.object, reply.model) == ("chat.completion", MODEL)


def test_tools_are_rendered_as_the_template_has_them(oai, chat_sampler, tokenizer):
    parameters = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "look", "description": "Löök <up>", "parameters": parameters}}]
    prompt = tokenizer.apply_chat_template(CHAT, tools=tools, add_generation_prompt=True, tokenize=False)
    text, _ = greedy(chat_sampler, tokenizer, prompt, 8)
    reply = oai.chat.completions.create(model=MODEL, messages=CHAT, tools=tools, temperature=0, max_tokens=8)
    assert reply.usage.prompt_tokens == len(tokenizer.encode(prompt, add_special_tokens=False))
    assert reply.choices[0].message.content == text
    without = oai.chat.completions.create(
        model=MODEL, messages=CHAT, tools=tools, tool_choice="none", temperature=0, max_tokens=8
    )
    assert without.usage.prompt_tokens < reply.usage.prompt_tokens


def test_a_checkpoint_is_sampled_by_path_and_by_base_and_path(server, service, oai, tokenizer):
    run = lora(service, MODEL)
    path = run.save_weights_for_sampler("chat").result(WAIT).path
    prompt = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    text, _ = greedy(service.create_sampling_client(model_path=path).result(WAIT), tokenizer, prompt, 8)
    for name in (path, f"{MODEL};{path}", f"{MODEL}:peft:512;{path}", f"{SAME};{path}"):
        reply = oai.chat.completions.create(model=name, messages=CHAT, temperature=0, max_tokens=8)
        assert (reply.choices[0].message.content, reply.model) == (text, name)
    with pytest.raises(openai.BadRequestError, match="base model"):
        oai.chat.completions.create(model=f"{UNLIKE};{path}", messages=CHAT)
    # Another tenant's checkpoint is one that does not exist.
    missing = path.replace("chat", "none")
    refusals = []
    for key, name in ((OTHER, path), (KEY, missing)):
        with pytest.raises(openai.NotFoundError) as refused:
            api(server, key).chat.completions.create(model=name, messages=CHAT)
        refusals.append(str(refused.value.body).replace(name, "X"))
    assert refusals[0] == refusals[1] and "model_not_found" in refusals[0]


def test_streams_say_what_whole_answers_say(oai):
    request = {"model": MODEL, "messages": CHAT, "seed": 5, "max_tokens": 24, "n": 3, "logprobs": True, "top_logprobs": 2}
    whole = oai.chat.completions.create(**request)
    texts, ends, logprobs = [""] * 3, [None] * 3, [[], [], []]
    usage = None
    for chunk in oai.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        assert chunk.object == "chat.completion.chunk"
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            ends[choice.index] = choice.finish_reason or ends[choice.index]
            if choice.logprobs:
                logprobs[choice.index] += choice.logprobs.content
    assert texts == [choice.message.content for choice in whole.choices]
    assert ends == [choice.finish_reason for choice in whole.choices]
    assert logprobs == [choice.logprobs.content for choice in whole.choices]
    assert all(len(token.top_logprobs) == 2 for token in logprobs[0])
    assert (usage.completion_tokens, usage.prompt_tokens) == (whole.usage.completion_tokens, whole.usage.prompt_tokens)
    assert len(set(texts)) > 1


def test_completions_take_texts_and_tokens(oai, chat_sampler, tokenizer):
    text, sequence = greedy(chat_sampler, tokenizer, "some words", 6)
    tokens = tokenizer.encode("some words")
    for prompt in ("some words", tokens):
        done = oai.completions.create(model=MODEL, prompt=prompt, max_tokens=6, temperature=0, logprobs=2)
        assert (done.choices[0].text, done.usage.completion_tokens) == (text, len(sequence.tokens))
        assert done.choices[0].logprobs.token_logprobs == pytest.approx(sequence.logprobs, abs=1e-6)
        assert all(len(top) <= 2 for top in done.choices[0].logprobs.top_logprobs)
    several = oai.completions.create(model=MODEL, prompt=["some words", "others"], n=2, max_tokens=6, temperature=0)
    assert [choice.index for choice in several.choices] == [0, 1, 2, 3]
    assert several.choices[0].text == several.choices[1].text == text != several.choices[2].text
    assert len(oai.completions.create(model=MODEL, prompt="a").choices[0].text) > 0


def test_token_ids_are_those_that_were_sampled(oai, chat_sampler):
    request = {"model": MODEL, "messages": CHAT, "seed": 5, "max_tokens": 24, "n": 3, "logprobs": True, "stop": ["e"]}
    plain = oai.chat.completions.create(**request)
    assert "prompt_token_ids" not in plain.model_extra and "token_ids" not in plain.choices[0].model_extra
    request["extra_body"] = {"return_token_ids": True}
    whole = oai.chat.completions.create(**request)
    prompt = whole.prompt_token_ids
    assert len(prompt) == whole.usage.prompt_tokens
    assert sum(len(choice.token_ids) for choice in whole.choices) == whole.usage.completion_tokens
    for choice, without in zip(whole.choices, plain.choices, strict=True):
        assert choice.message == without.message
        # Each token has its log-probability, which the trainer's forward pass repeats to the bit.
        scored = [token.logprob for token in choice.logprobs.content]
        every = types.ModelInput.from_ints(prompt + choice.token_ids)
        assert chat_sampler.compute_logprobs(every).result(WAIT)[len(prompt) :] == scored
    prompts, ids, scores = [], [[], [], []], [[], [], []]
    for chunk in oai.chat.completions.create(**request, stream=True):
        prompts.append(chunk.model_extra.get("prompt_token_ids"))
        for choice in chunk.choices:
            ids[choice.index] += choice.token_ids
            scores[choice.index] += choice.logprobs.content if choice.logprobs else []
    assert prompts[0] == prompt and not any(prompts[1:])
    assert ids == [choice.token_ids for choice in whole.choices]
    assert scores == [choice.logprobs.content for choice in whole.choices]


def test_completions_return_the_ids_of_each_prompt(oai, tokenizer):
    prompts = ["some words", "others"]
    request = {"model": MODEL, "prompt": prompts, "n": 2, "max_tokens": 6, "seed": 3}
    request["extra_body"] = {"return_token_ids": True}
    whole = oai.completions.create(**request)
    assert [choice.prompt_token_ids for choice in whole.choices] == [
        tokenizer.encode(prompt) for prompt in prompts for _ in range(2)
    ]
    assert sum(len(choice.token_ids) for choice in whole.choices) == whole.usage.completion_tokens
    begun, ids = {}, [[] for _ in whole.choices]
    for chunk in oai.completions.create(**request, stream=True):
        for choice in chunk.choices:
            if given := choice.model_extra.get("prompt_token_ids"):
                assert begun.setdefault(choice.index, given) is given
            ids[choice.index] += choice.model_extra.get("token_ids") or []
    assert begun == {choice.index: choice.prompt_token_ids for choice in whole.choices}
    assert ids == [choice.token_ids for choice in whole.choices]
    again = oai.completions.create(**request | {"prompt": whole.choices[0].prompt_token_ids, "n": 1})
    assert again.choices[0].text == whole.choices[0].text
    scored = oai.completions.create(
        model=MODEL, prompt="some words", max_tokens=0, echo=True, extra_body={"return_token_ids": True}
    )
    assert (scored.choices[0].prompt_token_ids, scored.choices[0].token_ids) == (tokenizer.encode("some words"), [])


def test_echo_scores_the_prompt(oai, chat_sampler, tokenizer):
    tokens = tokenizer.encode("some words")
    expected = sample(chat_sampler, tokens, max_tokens=1, include_prompt_logprobs=True).prompt_logprobs
    done = oai.completions.create(model=MODEL, prompt="some words", max_tokens=0, echo=True, logprobs=1)
    choice = done.choices[0]
    assert (choice.text, choice.finish_reason) == ("some words", "length")
    assert choice.logprobs.token_logprobs[0] is None
    assert choice.logprobs.token_logprobs[1:] == pytest.approx(expected[1:], abs=1e-6)
    assert "".join(choice.logprobs.tokens) == "some words"
    assert choice.logprobs.text_offset[0] == 0 and choice.logprobs.text_offset == sorted(choice.logprobs.text_offset)


def test_a_reply_follows_a_json_schema(oai):
    form = {"type": "json_schema", "json_schema": {"name": "item", "strict": True, "schema": SCHEMA}}
    request = {"model": MODEL, "messages": CHAT, "seed": 1, "max_tokens": 200, "response_format": form}
    choice = oai.chat.completions.create(**request).choices[0]
    item = json.loads(choice.message.content)
    assert list(item) == ["size", "count"] and choice.finish_reason == "stop"
    assert item["size"] in ("small", "large") and type(item["count"]) is int and 0 <= item["count"] <= 99
    chunks = oai.chat.completions.create(**request, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == choice.message.content
    unfit = {"type": "json_schema", "json_schema": {"name": "item", "schema": {"not": {"type": "string"}}}}
    with pytest.raises(openai.BadRequestError) as refused:
        oai.chat.completions.create(**request | {"response_format": unfit})
    assert refused.value.param == "response_format.json_schema.schema"


def test_calls_are_forced(oai):
    size = {"$defs": {"size": {"enum": ["small", "large"]}}}
    box = size | {"type": "object", "properties": {"size": {"$ref": "#/$defs/size"}}, "required": ["size"]}
    parameters = {"box": box | {"additionalProperties": False}, "wait": None}
    tools = [
        {"type": "function", "function": {"name": name, **({"parameters": schema} if schema else {})}}
        for name, schema in parameters.items()
    ]
    request = {"model": ENDLESS, "messages": CHAT, "seed": 1, "max_tokens": 400, "tools": tools}
    named = {"type": "function", "function": {"name": "box"}}
    choice = oai.chat.completions.create(**request, tool_choice=named).choices[0]
    (call,) = choice.message.tool_calls
    assert (call.function.name, choice.finish_reason, choice.message.content) == ("box", "tool_calls", None)
    assert json.loads(call.function.arguments)["size"] in ("small", "large")
    chunks = list(oai.chat.completions.create(**request, tool_choice=named, stream=True))
    (streamed,) = (call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or [])
    assert streamed.function.arguments == call.function.arguments
    for single in (False, True):
        options = {"parallel_tool_calls": False} if single else {}
        replies = oai.chat.completions.create(**request, **options, tool_choice="required", n=8).choices
        calls = [call for reply in replies for call in reply.message.tool_calls]
        assert {call.function.name for call in calls} <= {"box", "wait"} and len(calls) >= 8
        if single:
            assert len(calls) == 8
        for call in calls:
            arguments = json.loads(call.function.arguments)
            assert arguments == {} if call.function.name == "wait" else arguments["size"] in ("small", "large")
    for choice in ("some", {"type": "function", "function": {"name": "none"}}):
        with pytest.raises(openai.BadRequestError) as refused:
            oai.chat.completions.create(**request, tool_choice=choice)
        assert refused.value.param == "tool_choice"
    tools[1]["function"]["parameters"] = {"type": "object", "properties": {"x": {"not": {"type": "string"}}}}
    with pytest.raises(openai.BadRequestError) as refused:
        oai.chat.completions.create(**request, tool_choice="required")
    assert refused.value.param == "tools"


def test_biases_and_penalties_change_what_is_sampled(oai, tokenizer):
    request = {"model": MODEL, "prompt": "some words", "temperature": 0, "max_tokens": 6}
    (letter,) = tokenizer.encode("e", add_special_tokens=False)
    biased = oai.completions.create(**request, logit_bias={letter: 100}).choices[0].text
    assert biased == "e" * 6
    other = oai.completions.create(**request, logit_bias={letter: 90}, presence_penalty=2, frequency_penalty=2)
    assert other.choices[0].text == biased
    held = oai.completions.create(**request, logit_bias={letter: 50}, extra_body={"repetition_penalty": 100})
    assert held.choices[0].text != biased
    likely = oai.completions.create(**request | {"temperature": 2, "seed": 9}, extra_body={"min_p": 1}).choices[0].text
    assert likely == oai.completions.create(**request).choices[0].text
    with pytest.raises(openai.BadRequestError) as refused:
        oai.completions.create(**request, extra_body={"min_p": 2})
    assert refused.value.param == "min_p"


def test_stop_strings_are_no_part_of_the_text(oai):
    request = {"model": MODEL, "prompt": "some words", "temperature": 0, "max_tokens": 40}
    whole = oai.completions.create(**request).choices[0].text
    stop = whole[5:8]
    for given in (stop, ["never there", stop]):
        cut = oai.completions.create(**request, stop=given).choices[0]
        assert (cut.text, cut.finish_reason) == (whole[: whole.index(stop)], "stop")
        chunks = list(oai.completions.create(**request, stop=given, stream=True))
        assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == cut.text


def test_streams_arrive_in_pieces_and_never_in_half_characters(oai):
    request = {"model": MODEL, "messages": CHAT, "seed": 3, "max_tokens": 200, "temperature": 1.5}
    pieces = [
        chunk.choices[0].delta.content or "" for chunk in oai.chat.completions.create(**request, stream=True)
    ]
    whole = oai.chat.completions.create(**request).choices[0].message.content
    assert "".join(pieces) == whole
    assert len([piece for piece in pieces if piece]) > 3


def test_64_streams_at_once(server, oai):
    def run(seed, stream):
        request = {"model": MODEL, "messages": CHAT, "seed": seed, "max_tokens": 12}
        with api(server) as own:
            if not stream:
                return own.chat.completions.create(**request).choices[0].message.content
            chunks = list(own.chat.completions.create(**request, stream=True))
            assert chunks[-1].choices[0].finish_reason in ("stop", "length")
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        together = list(pool.map(lambda seed: run(seed, True), range(STREAMS)))
    assert together[::16] == [run(seed, False) for seed in range(0, STREAMS, 16)]
    assert len(set(together)) > STREAMS // 2


@pytest.mark.deployments("sqlite")
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_cancels(server, stream):
    before = cancelled(server)
    body = {"model": ENDLESS, "messages": CHAT, "max_tokens": chat_model.CONTEXT, "stream": stream}
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60 * PATIENCE) as http:
        if stream:
            with http.stream("POST", "/v1/chat/completions", json=body) as answer:
                assert answer.status_code == 200
                next(answer.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                http.post("/v1/chat/completions", json=body, timeout=0.3)
    wait_until(lambda: cancelled(server) == before + 1, "the sample was not cancelled")


def test_a_stream_ends_when_its_organisation_is_disabled(server):
    body = {"model": ENDLESS, "messages": CHAT, "max_tokens": chat_model.CONTEXT, "stream": True}
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {OTHER}"}, timeout=60 * PATIENCE) as http:
        with http.stream("POST", "/v1/chat/completions", json=body) as answer:
            lines = answer.iter_lines()
            next(lines)
            trainyard(server, "tenants", "change", "other", "--disable")
            try:
                told = [line for line in lines if line.startswith("data: ")]
                # Maintenance may end the sample before the server has heard why, a moment later.
                wait_until(lambda: http.get("/v1/models").status_code == 401, "the key is still accepted")
                refused = http.get("/v1/models")
            finally:
                trainyard(server, "tenants", "change", "other", "--enable")
        # With several servers another one may have cancelled the sample before this one refuses its key, or not yet.
        reasons = ["the sample was cancelled", "the organisation of the API key is disabled"]
        assert any(reason in line for line in told[-2:] for reason in reasons), told[-2:]
        assert (refused.status_code, "is disabled" in refused.text) == (401, True)
        wait_until(lambda: http.get("/v1/models").status_code == 200, "it is not accepted again")


def test_errors_are_in_the_form_of_the_api(server, oai):
    def error(call, kind):
        with pytest.raises(kind) as refused:
            call()
        return refused.value

    create = oai.chat.completions.create
    missing = error(lambda: create(model="none", messages=CHAT), openai.NotFoundError)
    assert (missing.code, missing.param, missing.type) == ("model_not_found", "model", "invalid_request_error")
    hot = error(lambda: create(model=MODEL, messages=CHAT, temperature=9), openai.BadRequestError)
    assert (hot.param, hot.type) == ("temperature", "invalid_request_error")
    unknown = error(lambda: create(model=MODEL, messages=CHAT, extra_body={"foo": 1}), openai.BadRequestError)
    assert unknown.param == "foo"
    long = error(lambda: create(model=MODEL, messages=CHAT, max_tokens=4_000), openai.BadRequestError)
    assert long.code == "context_length_exceeded"
    plain = error(lambda: create(model=TINY, messages=CHAT), openai.BadRequestError)
    assert "no tokenizer.json" in plain.message
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]
    assert "image_url" in error(lambda: create(model=MODEL, messages=image), openai.BadRequestError).message
    key = error(lambda: api(server, "tml-unknown").models.list(), openai.AuthenticationError)
    assert key.code == "invalid_api_key"
    assert error(lambda: oai.embeddings.create(model=MODEL, input="a"), openai.NotFoundError).code == "unknown_url"


def test_a_used_up_rate_limit_is_429_with_a_time(server):
    poor = api(server, POOR).with_options(timeout=60 * PATIENCE)
    with pytest.raises(openai.RateLimitError) as refused:
        for _ in range(5):
            poor.completions.create(model=MODEL, prompt="some words", max_tokens=50, extra_body={"top_k": 1})
    assert refused.value.code == "rate_limit_exceeded"
    assert int(refused.value.response.headers["retry-after"]) >= 1
