"""The real SmolLM2-135M-Instruct from its GGUF: tokenizer, stop strings, and PyTorch's numbers in f32."""

import json
import os
import subprocess
import sys

import anthropic
import httpx
import numpy as np
import openai
import pytest

from helpers import KEY, WAIT, assert_bits_equal, datum, forward, logprobs, lora, prompt, refused, sample
from process import PATIENCE
from server import GOLDEN, SMOL, smol_path

pytestmark = pytest.mark.real_device("a model of 135 million parameters takes hours")
MODELS = {SMOL: smol_path()}
REFERENCE = json.loads((GOLDEN / "smollm2.json").read_text())["items"]
CHAT = next(item for item in REFERENCE if item["text"].startswith("<|im_start|>"))
PROSE = next(item for item in REFERENCE if item is not CHAT)

TEXTS = ["  spaces, digits 12345 and\nlines\t", "naïve café — 東京 🙂", ""] + [item["text"] for item in REFERENCE]

QUESTION = "What is the capital of France? Answer in two sentences, with café and 東京 in the second."
REPLY_TOKENS = 48

TOKENIZE = f"""
import json, tinker
service = tinker.ServiceClient()
run = service.create_lora_training_client({SMOL!r}, rank=1).result()
tokenizer = run.get_tokenizer()
sampler = service.create_sampling_client(base_model={SMOL!r}).result()
assert sampler.get_tokenizer().encode("same") == tokenizer.encode("same")
chat = [{{"role": "user", "content": {QUESTION!r}}}]
rendered = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
prompt = tinker.ModelInput.from_ints(tokenizer.encode(rendered, add_special_tokens=False))
greedy = sampler.sample(prompt, 1, tinker.SamplingParams(max_tokens={REPLY_TOKENS}, temperature=0.0)).result().sequences[0]
texts = {TEXTS!r}
print(json.dumps({{
    "ids": [tokenizer.encode(text) for text in texts],
    "back": [tokenizer.decode(tokenizer.encode(text)) for text in texts],
    "chat": rendered,
    "prompt_tokens": prompt.length,
    "reply": tokenizer.decode(greedy.tokens, skip_special_tokens=True),
    "reply_tokens": len(greedy.tokens),
    "stop_reason": greedy.stop_reason,
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
        [sys.executable, "-c", TOKENIZE], env=environment, capture_output=True, text=True, timeout=200 * PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_get_tokenizer_needs_only_the_server(tokenized):
    assert tokenized["back"] == TEXTS
    assert tokenized["eos"] == 2
    assert tokenized["chat"].startswith("<|im_start|>system\n")
    assert tokenized["chat"].endswith("<|im_start|>user\n" + QUESTION + "<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize("base", ["oai/api/v1", "v1"])
def test_a_chat_is_the_greedy_sample_of_the_rendered_prompt(server, tokenized, base):
    """What the SDK samples from the tokens of the rendered conversation is what the compatible APIs reply."""
    messages = [{"role": "user", "content": QUESTION}]
    request = {"model": SMOL, "messages": messages, "temperature": 0, "max_tokens": REPLY_TOKENS}
    with openai.OpenAI(base_url=f"{server.url}/{base}", api_key=KEY, max_retries=0) as client:
        whole = client.chat.completions.create(**request)
        chunks = list(client.chat.completions.create(**request, stream=True))
    assert whole.choices[0].message.content == tokenized["reply"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == tokenized["reply"]
    assert whole.choices[0].finish_reason == chunks[-1].choices[0].finish_reason == tokenized["stop_reason"]
    assert whole.usage.prompt_tokens == tokenized["prompt_tokens"]
    assert whole.usage.completion_tokens == tokenized["reply_tokens"] > 10
    base = f"{server.url}/anthropic/api" if base != "v1" else server.url
    with anthropic.Anthropic(base_url=base, api_key=KEY, max_retries=0) as client:
        message = client.messages.create(model=SMOL, messages=messages, max_tokens=REPLY_TOKENS, extra_body={"temperature": 0})
    assert (message.content[0].text, message.usage.output_tokens) == (tokenized["reply"], tokenized["reply_tokens"])


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
