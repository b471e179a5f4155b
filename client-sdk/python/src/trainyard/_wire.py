"""Fields of protobuf messages, as far as `openapi/tinker_public.proto` uses them.

The package of Google registers every message type for the whole process, where another client of the same protocol
may have registered its own; this module registers nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .errors import ProtocolError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """A number in groups of seven bits; a negative one as its 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """A field of an integer type, `bool` or an enumeration."""
    return varint(number << 3 | _VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field of `bytes`, `string`, a message or a packed list."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """A field of `string`."""
    return bytes_field(number, value.encode())


def double_field(number: int, value: float) -> bytes:
    """A field of `double`."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Returns the fields of a message in order: numbers as integers, all others as bytes."""
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        kind = key & 7
        if kind == _VARINT:
            value, position = _read_varint(message, position)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, position = _read_varint(message, position)
        elif kind == _FIXED64:
            length = 8
        elif kind == _FIXED32:
            length = 4
        else:
            raise ProtocolError(f"protobuf: unknown wire type {kind}")
        end = position + length
        if end > len(message):
            raise ProtocolError("protobuf: a field extends beyond its message")
        yield key >> 3, message[position:end]
        position = end


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(message) or shift > 63:
            raise ProtocolError("protobuf: a number is truncated")
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, position
        shift += 7


def as_bytes(value: int | bytes) -> bytes:
    """Returns the value of a field that is not a number."""
    if isinstance(value, int):
        raise ProtocolError("protobuf: expected bytes, found a number")
    return value


def as_int(value: int | bytes) -> int:
    """Returns the value of a field that is a signed number."""
    if isinstance(value, bytes):
        raise ProtocolError("protobuf: expected a number, found bytes")
    return value - (1 << 64) if value >> 63 else value


def as_text(value: int | bytes) -> str:
    """Returns the value of a field of `string`."""
    try:
        return as_bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(f"protobuf: {error}") from error


def as_double(value: int | bytes) -> float:
    """Returns the value of a field of `double`."""
    data = as_bytes(value)
    if len(data) != 8:
        raise ProtocolError(f"protobuf: a double of {len(data)} bytes")
    return float(struct.unpack("<d", data)[0])


def as_integers(value: int | bytes) -> list[int]:
    """A repeated field of integers, packed, or one element of it that is not."""
    if isinstance(value, int):
        return [as_int(value)]
    found, position = [], 0
    while position < len(value):
        element, position = _read_varint(value, position)
        found.append(as_int(element))
    return found
