"""Requests that are refused whole: small to send, and large for a server that does not count before it reads.

Beside each is the status that it must get, and a word of the reason. All come from one tenant.
"""

import io
import json
import struct
import zlib

import httpx
import zstandard

import wire as raw
from programs import prompt
from tinker import types

ENTRIES, ENTRY = 240, 16_000
"""Entries of metadata, and the bytes of one: each is permitted, and so is their body, but not all of them together."""

IDS, ID_BYTES = 16_384, 64
"""Bounds on ids of acknowledged results."""

SESSION = {"tags": [], "user_metadata": {}, "sdk_version": "0.38.0", "type": "create_session"}


class Refusals:
    """Acts by name with the status of their refusal."""

    def __init__(self, server, key: str, model: str, sees=True):
        """`sees`: whether the model takes images; the others refuse all of them."""
        self.server, self.key, self.model = server, key, model
        seen = lambda word: word if sees else "does not take images"  # noqa: E731
        everything = [
            ("megabytes of metadata in a small body", self._metadata, 400, "user_metadata"),
            ("24 million ids", lambda: self._ids(b'"a",' * 24_000_000 + b'"a"'), 413, "larger than"),
            ("one id too many", lambda: self._ids(b",".join([b'"a"'] * (IDS + 1))), 400, "16385 ids"),
            ("an id that is too long", lambda: self._ids(b'"' + b"a" * (ID_BYTES + 1) + b'"'), 400, "65 bytes"),
            ("too many candidates", self._candidates, 400, "more than 4194304"),
            ("PNG with 16,385 columns", lambda: self._image(png(16_385, 1, b""), "png"), 400, seen("16385")),
            ("PNG with 268 million pixels", lambda: self._image(png(16_384, 16_384, b""), "png"), 400, seen("16384")),
            ("PNG with a long side", lambda: self._image(png(201, 1, b""), "png"), 400, seen("201")),
            ("JPEG with 65,535 rows", lambda: self._image(jpeg(65_535, 65_535), "jpeg"), 400, seen("65535")),
            ("an image of another kind", lambda: self._image(b"GIF89a" + bytes(100), "png"), 400, seen("GIF")),
        ]  # fmt: skip
        self.acts = [(name, lambda a=act, w=word: outcome(a(), w), status) for name, act, status, word in everything]
        """Acts that return their status, or what they got instead of a reason."""

    def _metadata(self) -> httpx.Response:
        metadata = {f"{at}": "a" * ENTRY for at in range(ENTRIES)}
        return self._packed("create_session", json.dumps(SESSION | {"user_metadata": metadata}).encode())

    def _ids(self, ids: bytes) -> httpx.Response:
        def ask(wire, sampler):
            target = {"type": "sampling_session", "sampling_session_id": sampler, "cloned_sampler_id": 0}
            start = json.dumps({"target": target, "prev_cursor": 0, "timeout": 0.0}).encode()[:-1]
            return self._packed("retrieve_futures", start + b', "retrieved_request_ids": [' + ids + b"]}")

        return self._sampling(ask)

    def _candidates(self) -> httpx.Response:
        wanted = {"num_samples": 1024, "params": {"max_tokens": 16}, "topk_sample_logprobs": 512}
        return self._sampling(lambda wire, sampler: wire.asample(sampler, 0, **wanted))

    def _image(self, file: bytes, kind: str) -> httpx.Response:
        return self._sampling(lambda wire, sampler: sample_of_image(wire, sampler, 0, file, kind))

    def _sampling(self, ask) -> httpx.Response:
        """Asks in a session of its own; the answer is the first refusal."""
        wire = raw.Wire(self.server, self.key, timeout=60)
        opened = wire.post("create_session", SESSION)
        if opened.status_code != 200:
            return opened
        session = opened.json()["session_id"]
        answer = wire.sampling_session(session, base_model=self.model)
        if answer.status_code == 200:
            answer = ask(wire, answer.json()["sampling_session_id"])
        wire.finish(session, "success")
        return answer

    def _packed(self, path: str, body: bytes) -> httpx.Response:
        headers = {"x-api-key": self.key, "content-type": raw.JSON, "content-encoding": "zstd"}
        url = f"{self.server.url}/api/v1/{path}"
        return httpx.post(url, content=zstandard.compress(body), headers=headers, timeout=60)


def outcome(answer: httpx.Response, word: str) -> int | str:
    """The status; with the text, if that is a refusal for another reason."""
    if answer.status_code in (400, 413) and word not in answer.text:
        return f"{answer.status_code} {answer.text[:200]}"
    return answer.status_code


def sample_of_image(wire, sampler: str, seq: int, file: bytes, kind: str, expected=1) -> httpx.Response:
    image = types.ImageChunk(data=file, format=kind, expected_tokens=expected)
    chunks = types.ModelInput(chunks=[*prompt([5]).chunks, image, *prompt([7]).chunks])
    return wire.asample(sampler, seq, prompt=json.loads(chunks.model_dump_json()))


def png(width: int, height: int, packed: bytes) -> bytes:
    """A file of colours with these sides, whose rows are `packed` by zlib, truthfully or not."""

    def chunk(name, content):
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def packed_zeros(size: int) -> bytes:
    """Zlib's form of so many zeros, about a thousandth of them."""
    packer, packed = zlib.compressobj(9), io.BytesIO()
    for at in range(0, size, 1 << 20):
        packed.write(packer.compress(bytes(min(1 << 20, size - at))))
    packed.write(packer.flush())
    return packed.getvalue()


def jpeg(width: int, height: int) -> bytes:
    """The header of a file with these sides, and nothing behind it."""
    components = b"".join(bytes([number, 0x11, 0]) for number in (1, 2, 3))
    frame = struct.pack(">BHHB", 8, height, width, 3) + components
    return b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xd9"
