"""Pictures of squares to count, drawn from a seed; the first number of the answer counts."""

from __future__ import annotations

import random
import re
import struct
import zlib

from ..core.chat import Message
from ..core.config import check
from .base import Environment, Outcome

NUMBER = re.compile(r"\d+")
HELD_OUT = 0x5EED


class Counting:
    """Draws at most `most` squares on a grid of `cells` by `cells` cells of `side` by `side` pixels.

    `partial` is the largest reward of a wrong number, depending on its distance.
    """

    def __init__(
        self,
        held_out: bool = False,
        tasks: int = 512,
        most: int = 4,
        cells: int = 4,
        side: int = 8,
        partial: float = 0.3,
    ) -> None:
        check(0 < most <= cells * cells, "environment.options.most", "must be from 1 to the number of cells")
        check(side > 0, "environment.options.side", "must be at least 1")
        self.held_out, self.tasks, self.most, self.cells, self.side = held_out, tasks, most, cells, side
        self.partial = partial

    def __len__(self) -> int:
        return self.tasks

    def make(self, index: int) -> Environment:
        random_ = random.Random(f"{HELD_OUT if self.held_out else 0}/{index}")
        count = random_.randint(1, self.most)
        marked = set(random_.sample(range(self.cells**2), count))
        return Episode(png(marked, self.cells, self.side), count, self.partial)


class Episode(Environment):
    def __init__(self, picture: bytes, count: int, partial: float) -> None:
        self.picture, self.count, self.partial = picture, count, partial

    def reset(self) -> list[Message]:
        question = {"type": "text", "text": "How many squares?"}
        return [{"role": "user", "content": [{"type": "image", "image": self.picture}, question]}]

    def step(self, reply: str) -> Outcome:
        number = NUMBER.search(reply)
        if number is None:
            return Outcome(0.0, metrics={"correct": 0.0, "number": 0.0})
        # A number with many digits is not a near miss, however it goes on.
        found = int(number[0][:12])
        correct = found == self.count
        near = self.partial / (1 + abs(found - self.count))
        return Outcome(1.0 if correct else near, metrics={"correct": float(correct), "number": 1.0})


def png(marked: set[int], cells: int, side: int) -> bytes:
    """A grey file with white cells."""
    width = cells * side
    lines = []
    for row in range(width):
        shades = (255 if row // side * cells + column // side in marked else 0 for column in range(width))
        lines.append(bytes([0, *shades]))
    header = struct.pack(">IIBBBBB", width, width, 8, 0, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(block(name, content) for name, content in parts)


def block(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
