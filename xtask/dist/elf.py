"""Requirements of a program on the system that runs it, read from its ELF file."""

import dataclasses
import pathlib
import re
import struct

ARCHITECTURES = {62: "x86_64", 183: "aarch64"}
"""By `e_machine`."""

SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libdl|libpthread|librt|libutil|libgcc_s|ld-linux-[\w-]+)\.so\.\d")
"""Libraries of glibc and of the compiler, which every manylinux system has."""

DYNAMIC, NEEDED_VERSIONS = 6, 0x6FFFFFFE
"""Types of sections."""
LIBRARY = 1
"""The tag of a library's name in the dynamic section."""

VERSION = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")
MARKERS = {"GLIBC_ABI_DT_RELR": (2, 36)}
"""Versions that stand for a feature of the loader, with the glibc that introduced it."""


class NotDistributable(Exception):
    """A program that would not run on the systems that its package names."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A dynamically linked program."""

    architecture: str
    libraries: tuple[str, ...]
    glibc: tuple[int, int]
    """The oldest glibc that has all symbols that the program uses."""

    @property
    def platform(self) -> str:
        """The platform tag of a wheel with the program."""
        return f"manylinux_{self.glibc[0]}_{self.glibc[1]}_{self.architecture}"


def read(path: pathlib.Path) -> Program:
    """Reads a program for 64-bit Linux, and refuses one that needs more than glibc."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise NotDistributable(f"{path}: expected a little-endian 64-bit ELF file, found {data[:6]!r}")
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine not in ARCHITECTURES:
        raise NotDistributable(f"{path}: expected a program for {' or '.join(ARCHITECTURES.values())}, found {machine}")
    sections = _sections(data)
    libraries = tuple(_libraries(data, sections))
    foreign = [name for name in libraries if not SYSTEM_LIBRARIES.fullmatch(name)]
    if foreign:
        raise NotDistributable(f"{path} needs {', '.join(foreign)}: only libraries of glibc are on every system")
    versions = [_glibc(path, name) for name in _versions(data, sections) if name.startswith("GLIBC_")]
    if not versions:
        raise NotDistributable(f"{path} names no version of glibc: expected a program that is linked dynamically")
    return Program(ARCHITECTURES[machine], libraries, max(versions))


def _glibc(path: pathlib.Path, name: str) -> tuple[int, int]:
    if found := VERSION.fullmatch(name):
        return int(found[1]), int(found[2])
    if name in MARKERS:
        return MARKERS[name]
    raise NotDistributable(f"{path} needs {name}, which no released glibc promises")


Section = tuple[int, int, int, int, int]
"""Type, offset, size, linked section, information."""


def _sections(data: bytes) -> list[Section]:
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = []
    for at in range(start, start + size * count, size):
        _, kind, _, _, offset, length, link, info = struct.unpack_from("<IIQQQQII", data, at)
        sections.append((kind, offset, length, link, info))
    return sections


def _text(data: bytes, strings: Section, at: int) -> str:
    start = strings[1] + at
    return data[start : data.index(b"\0", start)].decode()


def _libraries(data: bytes, sections: list[Section]):
    for kind, offset, size, link, _ in sections:
        if kind == DYNAMIC:
            for tag, value in struct.iter_unpack("<qQ", data[offset : offset + size]):
                if tag == LIBRARY:
                    yield _text(data, sections[link], value)


def _versions(data: bytes, sections: list[Section]):
    for kind, offset, _, link, count in sections:
        if kind != NEEDED_VERSIONS:
            continue
        file = offset
        for _ in range(count):
            _, names, _, first, following = struct.unpack_from("<HHIII", data, file)
            name = file + first
            for _ in range(names):
                _, _, _, text, further = struct.unpack_from("<IHHII", data, name)
                yield _text(data, sections[link], text)
                name += further
            file += following
