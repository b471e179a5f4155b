"""Tiny models with vision towers, tokenizers and chat templates that show images."""

import json
import pathlib
import sys

from server import REPOSITORY

# At the end: its modules have common names.
sys.path.append(str(REPOSITORY / "tests" / "cookbook"))

import tiny_models  # isort: skip

NAME = "tiny-vision"
KIMI = "tiny-kimi"
UNIT = 16
"""Side of the square of pixels that one position covers."""

KIMI_TOKENS = ("<|media_begin|>", "<|media_end|>", "<|media_pad|>", "<|media_content|>")
"""Tokens from 503 on: the third one stands for images."""
KIMI_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% else %}"
    "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>\n{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write(folder: pathlib.Path) -> pathlib.Path:
    """Makes the model in a folder."""
    return tiny_models.tiny("vision/qwen3_vl", folder)


def write_kimi(folder: pathlib.Path) -> pathlib.Path:
    """Makes a Kimi-K2.5 in a folder, whose configuration has the keys of released files."""
    tiny_models.tiny("vision/kimi_k25", folder, KIMI_TOKENS, KIMI_TEMPLATE)
    described = json.loads((folder / "config.json").read_text())
    vision = described["vision_config"]
    released = {
        "vt_hidden_size": vision["hidden_size"],
        "vt_intermediate_size": vision["intermediate_size"],
        "vt_num_attention_heads": vision["num_attention_heads"],
        "vt_num_hidden_layers": vision["num_hidden_layers"],
        "init_pos_emb_height": vision["pos_emb_height"],
        "init_pos_emb_width": vision["pos_emb_width"],
        "merge_kernel_size": vision["merge_kernel_size"],
        "patch_size": vision["patch_size"],
        "mm_hidden_size": vision["hidden_size"],
        "text_hidden_size": described["text_config"]["hidden_size"],
        "merge_type": "sd2_tpool",
        "mm_projector_type": "patchmerger",
        "projector_ln_eps": described["projection_layer_norm_eps"],
    }
    token = described["image_token_id"]
    for key in ("image_token_id", "video_token_id", "projection_hidden_size", "projection_layer_norm_eps"):
        del described[key]
    described |= {"vision_config": released, "media_placeholder_token_id": token}
    (folder / "config.json").write_text(json.dumps(described))
    return folder
