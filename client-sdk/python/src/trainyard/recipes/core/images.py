"""Images in conversations: sources of their files, the positions that they take, and how they are sent.

Sequences stay lists of tokens: each position of an image is a `Position`, which counts as a token, and which
`model_input` replaces by the file.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from tinker import types

from .config import ConfigError
from .image_sizes import Sizes, sizes

Message = dict[str, Any]
Format = Literal["png", "jpeg"]
KINDS = ("image", "image_url")
"""Types of image parts: the file is in `image`, or in `image_url` as in the OpenAI API."""
PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
MARK = "<image>"
"""Placeholder in texts for the next file of a record's `images`."""
PLACEHOLDERS = ("image_token_id", "media_placeholder_token_id")
"""Keys of `config.json` for the token that stands for images."""


@dataclass(frozen=True)
class Picture:
    """A file, its format and the number of positions that it takes."""

    data: bytes = field(repr=False)
    format: Format
    count: int


class Position(int):
    """A position of an image among tokens. No loss predicts it; as a target it is 0."""

    picture: Picture
    first: bool

    def __new__(cls, picture: Picture, first: bool) -> Position:
        self = super().__new__(cls, 0)
        self.picture, self.first = picture, first
        return self


def positions(picture: Picture) -> list[int]:
    """All positions of an image."""
    return [Position(picture, at == 0) for at in range(picture.count)]


def whole(tokens: Sequence[int], length: int) -> int:
    """Returns how many of the first `length` tokens remain without an image that is truncated, or that nothing
    follows."""
    length = min(length, len(tokens))
    while length and isinstance(tokens[length - 1], Position):
        length -= 1
    return length


def model_input(tokens: Iterable[int]) -> types.ModelInput:
    """The input of a model, with the files of images in place of their positions."""
    chunks: list[Any] = []
    run: list[int] = []
    for token in tokens:
        if not isinstance(token, Position):
            run.append(int(token))
        elif token.first:
            if run:
                chunks.append(types.EncodedTextChunk(tokens=run))
            run = []
            picture = token.picture
            chunks.append(types.ImageChunk(data=picture.data, format=picture.format, expected_tokens=picture.count))
    if run or not chunks:
        chunks.append(types.EncodedTextChunk(tokens=run))
    return types.ModelInput(chunks=chunks)


@dataclass(frozen=True)
class Vision:
    """How a model counts and marks images."""

    sizes: Sizes
    placeholder: int
    """The token that stands for an image in texts."""

    @classmethod
    def load(cls, name: str) -> Vision:
        """Reads `preprocessor_config.json` and `config.json` in a folder or at the hub."""
        settings, described = read_json(name, "preprocessor_config.json"), read_json(name, "config.json")
        rule = sizes(settings)
        if rule is None:
            kind = settings.get("image_processor_type")
            raise ConfigError(
                f"tokenizer: images of {name} can't be counted: its processor is {kind}, not that of Qwen or Kimi"
            )
        token = next((described[key] for key in PLACEHOLDERS if described.get(key) is not None), None)
        if token is None:
            raise ConfigError(f"tokenizer: config.json of {name} has none of {', '.join(PLACEHOLDERS)}")
        return cls(rule, int(token))

    def picture(self, data: bytes) -> Picture:
        """A file with its positions."""
        return Picture(data, format_of(data), self.sizes.count(*size_of(data)))

    def placed(self, tokens: Sequence[int], pictures: Iterator[Picture]) -> list[int]:
        """Returns tokens in which the placeholders are replaced by the positions of the next pictures."""
        found: list[int] = []
        for token in tokens:
            picture = next(pictures, None) if token == self.placeholder else None
            if token == self.placeholder and picture is None:
                raise ConfigError("data: a text contains the token reserved for images")
            found += positions(picture) if picture else [token]
        return found


Loader = Callable[[], Vision]


def read_json(name: str, file: str) -> dict[str, Any]:
    """A file of a model in a folder or at the hub."""
    path = Path(name) / file
    if not path.is_file():
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, HFValidationError, RepositoryNotFoundError

        try:
            path = Path(hf_hub_download(name, file))
        except (EntryNotFoundError, HFValidationError, RepositoryNotFoundError) as error:
            raise ConfigError(f"tokenizer: {name} has no {file}, so images are not supported: {error}") from error
    return cast(dict[str, Any], json.loads(path.read_text()))


def format_of(data: bytes) -> Format:
    """The format, told by the first bytes."""
    if data.startswith(PNG):
        return "png"
    if data.startswith(JPEG):
        return "jpeg"
    raise ConfigError("data: an image is neither a PNG nor a JPEG file")


def size_of(data: bytes) -> tuple[int, int]:
    """Returns width and height from the header."""
    found = png_size(data) if data.startswith(PNG) else jpeg_size(data)
    if found is None or 0 in found:
        raise ConfigError("data: an image has no size in its header")
    return found


def png_size(data: bytes) -> tuple[int, int] | None:
    if len(data) < 24 or data[12:16] != b"IHDR":
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        # Frames have these markers, but for those of tables and arithmetic coding.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        # A marker may be preceded by fill bytes.
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def parts_of(message: Message) -> list[dict[str, Any]]:
    """The images of a message."""
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [part for part in content if isinstance(part, dict) and part.get("type") in KINDS]


def plain(message: Message) -> Message:
    """Returns a message for chat templates: images without their files."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = []
    for part in content:
        if part.get("type") not in ("text", *KINDS):
            raise ConfigError(f"data: a part of type {part.get('type')!r} is not supported, only texts and images")
        parts.append({"type": "image"} if part["type"] in KINDS else part)
    if all(part["type"] == "text" for part in parts):
        # Templates of models without images take no parts.
        return {**message, "content": "".join(str(part.get("text", "")) for part in parts)}
    return {**message, "content": parts}


def file_of(part: dict[str, Any]) -> bytes:
    """The content of an image: bytes, a path, a data URI, an image of Pillow, or what `datasets` stores of one."""
    source = part.get("image", part.get("image_url"))
    if isinstance(source, dict):
        source = source.get("url") or source.get("bytes") or source.get("path")
    if isinstance(source, bytes | bytearray):
        return bytes(source)
    if isinstance(source, str | Path):
        return file_at(str(source))
    if callable(save := getattr(source, "save", None)):
        buffer = io.BytesIO()
        save(buffer, "PNG")
        return buffer.getvalue()
    raise ConfigError(f"data: an image is a path, a data URI or bytes, not {type(source).__name__}")


def file_at(source: str) -> bytes:
    """The file at a path or in a data URI."""
    if source.startswith("data:"):
        head, _, body = source.partition(",")
        if not head.endswith(";base64"):
            raise ConfigError(f"data: an image's data URI begins with {head[:40]!r}, expected base64")
        try:
            return base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise ConfigError(f"data: an image's data URI: {error}") from error
    path = source.removeprefix("file://")
    if "://" in path:
        raise ConfigError(f"data: image {source[:80]}: only files and data URIs are supported; URLs are not fetched")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"data: image {source[:80]}: {error}") from error


def anchored(value: Any, folder: Path) -> Any:
    """Returns a record in which relative paths of images start at the folder of the record's file."""
    if isinstance(value, list):
        return [anchored(item, folder) for item in value]
    if not isinstance(value, dict):
        return value
    found = {
        key: [anchored_path(one, folder) for one in item]
        if key == "images" and isinstance(item, list)
        else anchored(item, folder)
        for key, item in value.items()
    }
    if found.get("type") in KINDS:
        found |= {key: anchored_path(found[key], folder) for key in KINDS if key in found}
    return found


def anchored_path(source: Any, folder: Path) -> Any:
    """Returns an absolute path in place of a relative one; other values are unchanged."""
    if isinstance(source, dict):
        return source | {key: anchored_path(source[key], folder) for key in ("url", "path") if key in source}
    if not isinstance(source, str) or source.startswith("data:") or "://" in source:
        return source
    return str(folder / source)


def with_images(messages: list[Message], files: Any) -> list[Message]:
    """Messages in whose texts `<image>` stands for the next of a record's `images`."""
    if not isinstance(files, list) or not files:
        return messages
    left = iter(files)
    found = []
    for message in messages:
        content = message.get("content")
        if not isinstance(content, str) or MARK not in content:
            found.append(message)
            continue
        parts: list[dict[str, Any]] = []
        for at, text in enumerate(content.split(MARK)):
            if at:
                file = next(left, None)
                if file is None:
                    raise ConfigError(f"data: a record has more {MARK} in its texts than images")
                parts.append({"type": "image", "image": file})
            if text:
                parts.append({"type": "text", "text": text})
        found.append({**message, "content": parts})
    if next(left, None) is not None:
        raise ConfigError(f"data: a record has more images than {MARK} marks in its texts")
    return found
