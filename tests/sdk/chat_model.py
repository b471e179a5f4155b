"""A tiny model with a tokenizer and a chat template: random weights, so that any text may come."""

import json
import pathlib

from server import GOLDEN

NAME = "tiny-chat"
EOS = 2

TEMPLATE = """\
{%- if tools %}{{ '<|sys|>' + (tools | tojson) + '\\n' }}{% endif %}
{%- for message in messages %}
    {{- '<|' + message.role + '|>' + message.content + '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
{#- <tool_call> #}"""


ENDLESS = "tiny-endless"
CONTEXT = 200_000
"""Tokens that the endless model samples: minutes of work on any processor."""


def write_endless(folder: pathlib.Path) -> pathlib.Path:
    """The chat model without an end token and with a context so long that a request lasts until it is cancelled."""
    write(folder)
    config = json.loads((GOLDEN / "llama" / "config.json").read_text())
    (folder / "config.json").unlink()
    changed = {"eos_token_id": None, "max_position_embeddings": CONTEXT + 1_000}
    (folder / "config.json").write_text(json.dumps(config | changed))
    tokenizer_config = json.loads((folder / "tokenizer_config.json").read_text())
    # A conversation would also end at this token.
    del tokenizer_config["eos_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return folder


def write(folder: pathlib.Path) -> pathlib.Path:
    """The golden Llama with a byte-level vocabulary: ids from 3 to 258 are bytes, the rest are pairs of letters."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        target = folder / name
        if not target.exists():
            target.symlink_to(GOLDEN / "llama" / name)
    special = ["<|unk|>", "<|begin|>", "<|end|>"]
    vocabulary = {text: at for at, text in enumerate(special)}
    vocabulary |= {stand_in(byte): 3 + byte for byte in range(256)}
    letters = "abcdefghijklmnopqrstuvwxyz"
    merges = [(a, b) for a in letters for b in letters][: 512 - len(vocabulary)]
    vocabulary |= {a + b: 259 + at for at, (a, b) in enumerate(merges)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [
        {"id": at, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False} for at, text in enumerate(special)
    ]  # fmt: skip
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary,
        "merges": [list(pair) for pair in merges],
    }  # fmt: skip
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level, "model": model,
    }  # fmt: skip
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "chat_template": TEMPLATE}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def write_bytes(folder: pathlib.Path) -> pathlib.Path:
    """Another tokenizer for the same model: its tokens are bytes, and its template writes roles in brackets."""
    write(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = {text: at for text, at in tokenizer["model"]["vocab"].items() if at < 259}
    tokenizer["model"] |= {"vocab": vocabulary, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = TEMPLATE.replace("'<|' + message.role + '|>'", "'[' + message.role + ']'")
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def stand_in(byte: int) -> str:
    """How byte-level vocabularies write a byte: printable Latin-1 as it is, others from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in printable:
        return chr(byte)
    return chr(256 + [other for other in range(256) if other not in printable].index(byte))


def tokenizer(folder: pathlib.Path):
    """As clients load it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(folder)
