"""Tiny models with random weights, each of the family that its name in the cookbook's table belongs to.

  tiny_models.py FAMILY FOLDER  makes the one of a folder of `tests/golden`

Weights are those of `tests/golden`, whose vocabularies have 512 tokens. Their tokenizer has a token for each byte and
one for each special token of any chat format of these families, so that the cookbook's renderers find what they expect.
"""

import json
import pathlib
import shutil
import sys

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"

CONTEXT = 32768
"""Positions. No weight depends on them: all families rotate positions or have none."""
VOCABULARY = 512
LAST_FIXED = 503
"""The first of the ids that configurations of towers name: start and end of an image, and its placeholders."""
FIXED = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
# The configurations end sequences with token 1.
FIRST = ("<|endoftext|>", "<|im_end|>")
SPECIAL = (
    # Qwen and Nemotron.
    "<|im_start|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    # Llama.
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    # gpt-oss.
    "<|start|>", "<|message|>", "<|channel|>", "<|return|>", "<|end|>", "<|call|>", "<|constrain|>",
    # GLM.
    "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
    # DeepSeek.
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜System｜>", "<｜User｜>", "<｜Assistant｜>",
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>",
    "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>",
)  # fmt: skip

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% else %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_characters() -> list[str]:
    """Returns the character that stands for each byte in byte-level vocabularies."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def vocabulary(fixed: tuple[str, ...] = FIXED) -> list[str]:
    """Returns all tokens in the order of their ids; `fixed` are those that configurations of towers name."""
    tokens = [*FIRST, *byte_characters(), *SPECIAL]
    tokens += [f"<|unused_{at}|>" for at in range(len(tokens), LAST_FIXED)]
    tokens += fixed
    return tokens + [f"<|unused_{at}|>" for at in range(len(tokens), VOCABULARY)]


def tokenizer(fixed: tuple[str, ...] = FIXED) -> dict:
    """Returns the content of `tokenizer.json`: tokens of one byte, without merges."""
    tokens = vocabulary(fixed)
    special = [token for token in tokens if token in {*FIRST, *SPECIAL, *fixed}]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": tokens.index(token), "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": token not in ("<think>", "</think>"),
            }
            for token in special
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: at for at, token in enumerate(tokens)}, "merges": [],
        },
    }  # fmt: skip


def tiny(
    family: str, destination: pathlib.Path, fixed: tuple[str, ...] = FIXED, template: str = TEMPLATE
) -> pathlib.Path:
    """Makes the model of a folder of `tests/golden` there, with a long context, a tokenizer and a chat template."""
    source = GOLDEN / family
    destination.mkdir(parents=True, exist_ok=True)
    for name in ("model.safetensors", "preprocessor_config.json"):
        if (source / name).exists():
            shutil.copyfile(source / name, destination / name)
    described = json.loads((source / "config.json").read_text())
    text = described.get("text_config", described)
    text |= {"max_position_embeddings": CONTEXT, "bos_token_id": 0, "eos_token_id": 1}
    files = {
        "config.json": described,
        "tokenizer.json": tokenizer(fixed),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": FIRST[1], "pad_token": FIRST[0],
            "bos_token": FIRST[0], "model_max_length": CONTEXT, "clean_up_tokenization_spaces": False,
            "chat_template": template,
        },
    }  # fmt: skip
    for name, content in files.items():
        (destination / name).write_text(json.dumps(content), encoding="utf-8")
    return destination


# The names of the cookbook's table, and the folder of `tests/golden` that has the family.
MODELS = {
    "Qwen/Qwen3-8B": "qwen3",
    "Qwen/Qwen3.5-4B": "qwen3_5",
    "Qwen/Qwen3.5-9B": "qwen3_5",
    "Qwen/Qwen3.5-9B-Base": "qwen3_5",
    "Qwen/Qwen3.6-27B": "qwen3_5",
    "Qwen/Qwen3.8-27B": "qwen3_5",
    "Qwen/Qwen3.6-35B-A3B": "qwen3_5_moe",
    "Qwen/Qwen3.5-397B-A17B": "qwen3_5_moe",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron_h",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": "nemotron_h_latent",
    "meta-llama/Llama-3.1-8B-Instruct": "llama",
    "meta-llama/Llama-3.2-1B": "llama",
    # From where the cookbook takes the tokenizer of Llama.
    "thinkingmachineslabinc/meta-llama-3-instruct-tokenizer": "llama",
    "deepseek-ai/DeepSeek-V3.1": "deepseek_v3",
    "openai/gpt-oss-20b": "gpt_oss",
    "zai-org/GLM-5.3": "indexed/glm_moe_dsa",
    "Qwen/Qwen3-VL-4B-Instruct": "vision/qwen3_vl",
    "Qwen/Qwen3-VL-30B-A3B-Instruct": "vision/qwen3_vl_moe",
}


def made(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Makes all models; names of one family share a folder, and so the memory of one."""
    folders = {family: tiny(family, folder / family.replace("/", "-")) for family in dict.fromkeys(MODELS.values())}
    return {name: folders[family] for name, family in MODELS.items()}


if __name__ == "__main__":
    tiny(sys.argv[1], pathlib.Path(sys.argv[2]))
