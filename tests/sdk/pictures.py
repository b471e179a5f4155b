"""Images for tests, and examples and prompts with them."""

import struct
import zlib

import numpy as np
from tinker import types

from helpers import TOKENS, WAIT

SIDE = 16
"""Pixels of a token's side."""


def png(columns, rows, seed=0) -> bytes:
    """A file of noise that takes `columns * rows` tokens."""
    width, height = columns * SIDE, rows * SIDE
    pixels = np.random.default_rng(seed).integers(0, 256, (height, 1 + 3 * width), np.uint8)
    pixels[:, 0] = 0

    def chunk(name, content):
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def image(columns=3, rows=2, seed=0, **fields) -> types.ImageChunk:
    expected = {"expected_tokens": columns * rows} | fields
    return types.ImageChunk(data=png(columns, rows, seed), format="png", **expected)


def text(tokens) -> types.EncodedTextChunk:
    return types.EncodedTextChunk(tokens=tokens)


def example(*chunks) -> types.Datum:
    """Every position predicts token 1."""
    length = sum(chunk.length for chunk in chunks)
    return types.Datum(types.ModelInput(chunks=list(chunks)), {"target_tokens": [1] * length})


def with_image(seed=0) -> types.Datum:
    return example(text(TOKENS[:3]), image(seed=seed), text(TOKENS[3:]))


def scored(sampler, chunks):
    return sampler.compute_logprobs(types.ModelInput(chunks=chunks)).result(WAIT)
