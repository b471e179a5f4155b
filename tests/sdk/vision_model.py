"""A tiny model with a vision tower, a tokenizer and a chat template that shows images."""

import pathlib
import sys

from server import REPOSITORY

# At the end: its modules have common names.
sys.path.append(str(REPOSITORY / "tests" / "cookbook"))

import tiny_models  # isort: skip

NAME = "tiny-vision"
UNIT = 16
"""Side of the square of pixels that one position covers."""


def write(folder: pathlib.Path) -> pathlib.Path:
    """Makes the model in a folder."""
    return tiny_models.tiny("vision/qwen3_vl", folder)
