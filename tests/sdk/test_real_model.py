"""The real SmolLM2-135M-Instruct from its GGUF: tokenizer, stop strings, and PyTorch's numbers in f32."""

import json
import os
import subprocess
import sys

import httpx
import numpy as np
import pytest

from helpers import KEY, WAIT, assert_bits_equal, datum, forward, logprobs, lora, prompt, refused, sample
from server import GOLDEN, SMOL, smol_path

MODELS = {SMOL: smol_path()}
REFERENCE = json.loads((GOLDEN / "smollm2.json").read_text())["items"]
CHAT = next(item for item in REFERENCE if item["text"].startswith("<|im_start|>"))
PROSE = next(item for item in REFERENCE if item is not CHAT)

TEXTS = ["  spaces, digits 12345 and\nlines\t", "naïve café — 東京 🙂", ""] + [item["text"] for item in REFERENCE]

TOKENIZE = f"""
import json, tinker
service = tinker.ServiceClient()
run = service.create_lora_training_client({SMOL!r}, rank=1).result()
tokenizer = run.get_tokenizer()
sampler = service.create_sampling_client(base_model={SMOL!r}).result()
assert sampler.get_tokenizer().encode("same") == tokenizer.encode("same")
chat = [{{"role": "user", "content": "Hi there"}}]
texts = {TEXTS!r}
print(json.dumps({{
    "ids": [tokenizer.encode(text) for text in texts],
    "back": [tokenizer.decode(tokenizer.encode(text)) for text in texts],
    "chat": tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False),
    "eos": tokenizer.eos_token_id,
}}))
service.close("success").result()
"""


@pytest.fixture(scope="module")
def smol(service):
    return service.create_sampling_client(base_model=SMOL).result(WAIT)


@pytest.fixture(scope="module")
def tokenized(server, tmp_path_factory):
    """A fresh process with an empty cache, and no way to a hub but the server."""
    home = tmp_path_factory.mktemp("home")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    environment |= {
        "TINKER_BASE_URL": server.url, "TINKER_API_KEY": KEY, "HF_ENDPOINT": f"{server.url}/hf", "HF_HOME": str(home),
        "HOME": str(home), "TRANSFORMERS_VERBOSITY": "error",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", TOKENIZE], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_get_tokenizer_needs_only_the_server(tokenized):
    assert tokenized["back"] == TEXTS
    assert tokenized["eos"] == 2
    assert tokenized["chat"].startswith("<|im_start|>system\n")
    assert tokenized["chat"].endswith("<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n")


def test_the_tokenizer_agrees_with_the_reference(tokenized):
    assert tokenized["ids"][-len(REFERENCE) :] == [item["tokens"] for item in REFERENCE]


@pytest.mark.parametrize(
    "name", ["model.safetensors", "pytorch_model.bin", "SmolLM2-135M-Instruct.Q4_1.gguf", "..%2f..%2fetc%2fpasswd"]
)
def test_weights_are_never_served(server, name):
    answer = httpx.get(f"{server.url}/hf/{SMOL}/resolve/main/{name}")
    assert answer.status_code in (400, 404)
    assert len(answer.content) < 10_000


@pytest.mark.parametrize("item", REFERENCE, ids=range(len(REFERENCE)))
def test_prompt_logprobs_and_greedy_tokens_of_the_reference(smol, item):
    response = sample(smol, item["tokens"], temperature=0.0, max_tokens=32, stop=[], include_prompt_logprobs=True)
    expected = np.asarray(item["prompt_logprobs_f32"][1:])
    np.testing.assert_allclose(response.prompt_logprobs_np[1:], expected, rtol=0, atol=2e-3)
    assert response.sequences[0].tokens == item["greedy_tokens"]


def test_trainer_and_sampler_agree(service, smol):
    run = lora(service, SMOL)
    tokens = PROSE["tokens"]
    response = sample(smol, tokens, max_tokens=1, include_prompt_logprobs=True)
    assert_bits_equal([response.prompt_logprobs_np[1:]], logprobs(forward(run, [datum(tokens)])))


@pytest.mark.parametrize("as_list", [False, True])
def test_stop_strings(smol, as_list):
    """The tokens up to and including the one that completes the string, which may span tokens."""
    words = PROSE["greedy_text"].split()
    stop = " ".join(words[2:4])
    response = sample(
        smol, PROSE["tokens"], temperature=0.0, max_tokens=32, stop=["nowhere-to-be-found", stop] if as_list else stop
    )
    tokens = response.sequences[0].tokens
    assert response.sequences[0].stop_reason == "stop"
    assert tokens == PROSE["greedy_tokens"][: len(tokens)]
    assert 1 < len(tokens) < 32


def test_empty_stop_strings_are_refused(smol):
    refused(lambda: sample(smol, PROSE["tokens"], stop=[""]), "stop")


def test_a_chat_turn_ends_with_its_marker(smol):
    """The turn's end token is returned, once, and is where the free continuation had it."""
    sequence = sample(smol, CHAT["tokens"], temperature=0.0, max_tokens=32).sequences[0]
    free = CHAT["greedy_tokens"]
    expected = free[: free.index(2) + 1] if 2 in free else free
    assert sequence.tokens == expected
    assert sequence.stop_reason == ("stop" if 2 in free else "length")


def test_many_samples_at_once(smol):
    pending = [smol.compute_logprobs(prompt(item["tokens"])) for item in REFERENCE * 4]
    results = [p.result(WAIT) for p in pending]
    for i, item in enumerate(REFERENCE):
        assert all(results[j] == results[i] for j in range(i, len(results), len(REFERENCE))), item["text"]
