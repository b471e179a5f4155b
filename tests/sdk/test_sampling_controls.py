"""Fields of `sampling_params` that the SDK's type does not have: penalties, biases, `min_p` and JSON schemas."""

import json

import httpx
import pytest
import tokenizers

import wire as raw
from server import SMOL, TINY_MODELS, smol_path

pytestmark = pytest.mark.real_device("a model of 135 million parameters takes hours")
MODELS = TINY_MODELS | {SMOL: smol_path()}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "city": {"enum": ["Bern", "Zürich"]},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tiny(server):
    wire = raw.Wire(server)
    return wire, wire.sampling_session(wire.session()).json()["sampling_session_id"]


@pytest.fixture(scope="module")
def smol(server):
    wire = raw.Wire(server)
    return wire, wire.sampling_session(wire.session(), base_model=SMOL).json()["sampling_session_id"]


def sequences(wire, sampler, seq, num_samples=1, tokens=(1, 2, 3), **params):
    submitted = wire.asample(sampler, seq, tokens=tokens, num_samples=num_samples, params=params).json()
    return wire.result(submitted["request_id"]).json()["sequences"]


def test_biases_and_penalties_decide_what_is_sampled(tiny):
    only = sequences(*tiny, 0, temperature=0.0, max_tokens=6, stop=[], logit_bias={"7": 100})
    assert only[0]["tokens"] == [7] * 6
    turns = sequences(
        *tiny, 1, temperature=0.0, max_tokens=40, stop=[], logit_bias={"7": 100, "9": 100}, frequency_penalty=2
    )
    assert set(turns[0]["tokens"]) == {7, 9}
    assert min(turns[0]["tokens"].count(token) for token in (7, 9)) > 4
    greedy = sequences(*tiny, 2, temperature=0.0, max_tokens=8, stop=[])
    assert sequences(*tiny, 3, temperature=1.0, max_tokens=8, stop=[], min_p=1.0)[0]["tokens"] == greedy[0]["tokens"]


def test_log_probabilities_are_the_models(tiny):
    """Those of a penalised sample are what its tokens get as a prompt."""
    found = sequences(*tiny, 10, max_tokens=12, stop=[], repetition_penalty=1.3, presence_penalty=1, min_p=0.01)[0]
    wire, sampler = tiny
    scored = wire.asample(sampler, 11, tokens=[1, 2, 3, *found["tokens"]], params={"max_tokens": 1}, prompt_logprobs=True)
    assert wire.result(scored.json()["request_id"]).json()["prompt_logprobs"][3:] == found["logprobs"]


@pytest.mark.parametrize(
    "params, name",
    [
        ({"min_p": 1.5}, "sampling_params.min_p"),
        ({"presence_penalty": 2.5}, "sampling_params.presence_penalty"),
        ({"repetition_penalty": 0}, "sampling_params.repetition_penalty"),
        ({"logit_bias": {"999999": 1}}, "sampling_params.logit_bias"),
        ({"json_schema": {"enum": ["x"] * 5_000}}, "sampling_params.json_schema"),
        ({"json_schema": {"type": "object", "if": {}}}, "sampling_params.json_schema"),
        ({"json_schema": {"$ref": "http://127.0.0.1/"}}, "sampling_params.json_schema"),
    ],
)
def test_bad_controls_are_refused_by_name(smol, params, name):
    wire, sampler = smol
    seq = 100 + sum(map(ord, json.dumps(params)))
    raw.refused_or_failed(wire, wire.asample(sampler, seq, params=params), name)


def test_texts_follow_a_schema(server, smol):
    """With the tokenizer of a GGUF file, greedy and hot, and where nothing else stops a sample."""
    files = httpx.get(f"{server.url}/hf/{SMOL}/resolve/main/tokenizer.json", follow_redirects=True, timeout=60)
    tokenizer = tokenizers.Tokenizer.from_str(files.text)
    prompt = tokenizer.encode("A person in JSON: ").ids
    for seq, params in enumerate([{"temperature": 0.0}, {"temperature": 1.5}, {"stop": []}]):
        for sequence in sequences(*smol, seq, 2, prompt, max_tokens=120, json_schema=SCHEMA, **params):
            text = tokenizer.decode(sequence["tokens"], skip_special_tokens=True)
            assert sequence["stop_reason"] == "stop", text
            value = json.loads(text)
            assert list(value) == ["name", "age", "city"], text
            assert len(value["name"]) <= 12 and 0 <= value["age"] <= 120 and value["city"] in ("Bern", "Zürich"), text
