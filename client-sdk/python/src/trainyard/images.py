"""Images among the tokens of prompts and examples."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

_SIGNATURES: tuple[tuple[bytes, Literal["png", "jpeg"]], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
)


@dataclass(frozen=True)
class Image:
    """A PNG or JPEG file among tokens. The model decides how many positions it takes."""

    data: bytes = field(repr=False)
    expected_tokens: int | None = None
    """Number of positions that the image takes, if known; the server refuses any other number."""

    @classmethod
    def open(cls, path: str | pathlib.Path, expected_tokens: int | None = None) -> Image:
        """Reads a file."""
        return cls(pathlib.Path(path).read_bytes(), expected_tokens)

    @property
    def format(self) -> Literal["png", "jpeg"]:
        """Returns the format of a file, determined by its first bytes."""
        for signature, name in _SIGNATURES:
            if self.data.startswith(signature):
                return name
        raise ValueError("image: expected a PNG or JPEG file")


Part = int | Image
"""A token id, or an image."""


def chunks(parts: Sequence[Part]) -> Iterable[list[int] | Image]:
    """Returns runs of tokens, and the images between them. There is at least one run."""
    run: list[int] = []
    sent = False
    for part in parts:
        if isinstance(part, Image):
            if run:
                yield run
            run, sent = [], True
            yield part
        else:
            run.append(int(part))
    if run or not sent:
        yield run


def positions(parts: Sequence[Part]) -> list[int | None]:
    """Returns the token at each position of a model's input; `None` at positions of images, which need
    `expected_tokens`."""
    found: list[int | None] = []
    for part in parts:
        if not isinstance(part, Image):
            found.append(int(part))
        elif part.expected_tokens is None:
            raise ValueError("image: `expected_tokens` is required to know the positions of the tokens after it")
        else:
            found += [None] * part.expected_tokens
    return found
