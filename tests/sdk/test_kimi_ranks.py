"""Kimi's tokenizer as it is released: a `tiktoken.model`, whose class and special tokens are in `tokenizer_config.json`."""

import base64
import json
import pathlib
import urllib.request

import openai
import pytest
from tinker import types

import folders
from chat_model import stand_in
from helpers import KEY, WAIT
from server import GOLDEN, TINY_MODELS

RANKED, PLAIN, UNREADABLE, OTHER = "kimi-ranked", "kimi-plain", "kimi-unreadable", "kimi-other"
SPECIAL = {"[BOS]": True, "[EOS]": True, "<|im_end|>": True, "<|im_user|>": True, "<|im_assistant|>": True, "<think>": False}
VOCABULARY = 512
TEMPLATE = (
    "{% for message in messages %}<|im_user|>{{ message.role }}: {{ message.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_assistant|>{% endif %}"
)
QUESTION = [{"role": "user", "content": "the theatre there, then 中文字 und größer 12345?\n\n<think>no"}]

JOINS = [
    ("t", "h"), ("th", "e"), (" ", "the"), ("e", "r"), ("the", "n"), ("r", "e"), ("the", "re"), (" ", "t"), ("1", "2"),
    ("12", "3"), ("\xe4", "\xb8"), ("\xe4\xb8", "\xad"), ("\xe6", "\x96"), ("\xe6\x96", "\x87"),
    ("\xe4\xb8\xad", "\xe6\x96\x87"), ("\xc3", "\xb6"), (" ", "u"), ("n", "d"), (" u", "nd"), ("\n", "\n"),
]  # fmt: skip
"""Pairs of bytes, as Latin-1, that were joined in this order."""

TOKENS = [bytes([byte]) for byte in range(256)] + [(left + right).encode("latin-1") for left, right in JOINS]
BASE = len(TOKENS)

# As the released `tokenization_kimi.py` has it.
CASES = r"\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]"
PATTERN = "|".join(
    [
        r"[\p{Han}]+",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}{CASES}]*[\p{{Ll}}{CASES}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}{CASES}]+[\p{{Ll}}{CASES}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def text_of(token: bytes) -> str:
    return "".join(stand_in(byte) for byte in token)


def ranked(folder: pathlib.Path, ranks: str, code: str) -> pathlib.Path:
    """The golden Kimi-K2.5 with a released model's files of the tokenizer."""
    folder.mkdir(parents=True)
    (folder / "model.safetensors").symlink_to(GOLDEN / "kimi_k25" / "model.safetensors")
    described = json.loads((GOLDEN / "kimi_k25" / "config.json").read_text())
    described["text_config"]["eos_token_id"] = BASE + 1
    (folder / "config.json").write_text(json.dumps(described))
    named = {
        str(BASE + at): {"content": text, "lstrip": False, "normalized": False, "rstrip": False,
                         "single_word": False, "special": special}
        for at, (text, special) in enumerate(SPECIAL.items())
    }  # fmt: skip
    config = {
        "tokenizer_class": "TikTokenTokenizer", "auto_map": {"AutoTokenizer": [f"{code}.TikTokenTokenizer", None]},
        "added_tokens_decoder": named, "bos_token": "[BOS]", "eos_token": "[EOS]", "chat_template": TEMPLATE,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "tiktoken.model").write_text(ranks)
    (folder / f"{code}.py").write_text("class TikTokenTokenizer: ...\n")
    return folder


def plain(folder: pathlib.Path) -> pathlib.Path:
    """The same model with a `tokenizer.json` that was made by hand: its merges are those of training."""
    ranked(folder, "", "tokenization_kimi")
    (folder / "tiktoken.model").unlink()
    names = [*SPECIAL, *(f"<|reserved_token_{id}|>" for id in range(BASE + len(SPECIAL), VOCABULARY))]
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    latin = [(text_of(left.encode("latin-1")), text_of(right.encode("latin-1"))) for left, right in JOINS]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [
            {"id": BASE + at, "content": text, "special": SPECIAL.get(text, True), "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False} for at, text in enumerate(names)
        ],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, step]}, "decoder": step,
        "model": {"type": "BPE", "vocab": {text_of(token): rank for rank, token in enumerate(TOKENS)},
                  "merges": [list(pair) for pair in latin], "ignore_merges": True},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


ROOT = folders.new()
RANKS = "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(TOKENS))
MODELS = TINY_MODELS | {
    RANKED: ranked(ROOT / RANKED, RANKS, "tokenization_kimi"),
    PLAIN: plain(ROOT / PLAIN),
    UNREADABLE: ranked(ROOT / UNREADABLE, RANKS.replace(" 9\n", " 8\n", 1), "tokenization_kimi"),
    OTHER: ranked(ROOT / OTHER, RANKS, "tokenization_other"),
}


@pytest.fixture(scope="module")
def oai(server):
    return openai.OpenAI(base_url=f"{server.url}/oai/api/v1", api_key=KEY, max_retries=0)


def test_conversations_are_those_of_the_same_model_with_a_tokenizer_json(oai):
    def reply(model):
        return oai.chat.completions.create(
            model=model, messages=QUESTION, temperature=0, max_tokens=24, extra_body={"return_token_ids": True}
        )

    ranks, json_ = reply(RANKED), reply(PLAIN)
    names = [token.decode("latin-1") for token in TOKENS] + list(SPECIAL)
    prompt = [names[id] for id in ranks.prompt_token_ids]
    assert prompt[:6] == ["<|im_user|>", "u", "s", "er", ":", " the"]
    assert "中文".encode().decode("latin-1") in prompt and "123" in prompt and "<think>" in prompt
    assert prompt[-2:] == ["<|im_end|>", "<|im_assistant|>"]
    assert ranks.prompt_token_ids == json_.prompt_token_ids
    assert ranks.choices[0].token_ids == json_.choices[0].token_ids
    assert ranks.choices[0].message.content == json_.choices[0].message.content


@pytest.mark.parametrize("prompt", ["then there\n\n", " 中文中1234", "größer<|im_end|>", "\x00\u200d🙂 x's"])
def test_texts_are_those_of_the_same_model_with_a_tokenizer_json(oai, service, prompt):
    def completion(model):
        reply = oai.completions.create(
            model=model, prompt=prompt, temperature=0, max_tokens=12, extra_body={"return_token_ids": True}
        )
        return reply.choices[0].prompt_token_ids, reply.choices[0].token_ids, reply.choices[0].text

    ranks = completion(RANKED)
    assert ranks == completion(PLAIN)
    sampler = service.create_sampling_client(base_model=RANKED).result(WAIT)
    params = types.SamplingParams(max_tokens=12, temperature=0.0, stop=["\x01never"])
    sampled = sampler.sample(types.ModelInput.from_ints(ranks[0]), 1, params).result(WAIT).sequences[0]
    assert sampled.tokens == ranks[1]


def fetched(server, model, name):
    request = urllib.request.Request(f"{server.url}/hf/{model}/resolve/main/{name}", headers={"X-API-Key": KEY})
    with urllib.request.urlopen(request) as answer:
        return answer.read()


def test_clients_get_the_files_and_a_tokenizer_json_made_of_them(server):
    from tokenizers import Tokenizer

    folder = MODELS[RANKED]
    for name in ("tiktoken.model", "tokenization_kimi.py", "tokenizer_config.json"):
        assert fetched(server, RANKED, name) == (folder / name).read_bytes(), name
    made = Tokenizer.from_str(fetched(server, RANKED, "tokenizer.json").decode())
    by_hand = Tokenizer.from_file(str(MODELS[PLAIN] / "tokenizer.json"))
    text = QUESTION[0]["content"] + "<|reserved_token_300|> Ünïcödé \r\n\t '90s THE THEN’S"
    assert made.encode(text).ids == by_hand.encode(text).ids
    assert made.get_vocab(with_added_tokens=True) == by_hand.get_vocab(with_added_tokens=True)


def test_without_a_known_form_only_tokens_are_accepted(server, service, oai):
    for model, reason in (
        (UNREADABLE, "tiktoken.model: line 10: rank 8 is in line 9 already"),
        (OTHER, 'tiktoken.model with the class "tokenization_other.TikTokenTokenizer"'),
    ):
        assert reason in server.text().replace("\\", "")
        with pytest.raises(openai.BadRequestError, match=f'tiktoken.model of .?"{model}.*only tokens'):
            oai.completions.create(model=model, prompt="a", max_tokens=1)
        sampler = service.create_sampling_client(base_model=model).result(WAIT)
        params = types.SamplingParams(max_tokens=2, temperature=0.0)
        assert sampler.sample(types.ModelInput.from_ints([1, 2]), 1, params).result(WAIT).sequences[0].tokens
