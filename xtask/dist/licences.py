"""Licences of the packages that the program contains: their terms ask that copies carry them."""

import re

from crates import Crate

FILES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-_.].*)?", re.IGNORECASE)
CODE = {".rs", ".py", ".toml", ".json"}
"""Endings of files that only have such a name."""
RULE = "=" * 100


def build(crates: list[Crate]) -> bytes:
    """Returns each licence text once, after the packages that have it."""
    holders: dict[str, list[str]] = {}
    lines = ["The program trainyard contains these packages, under these licences:", ""]
    for crate in crates:
        if crate.checksum is None:
            continue
        name = f"{crate.name} {crate.version}"
        lines.append(f"    {name}: {crate.license or 'see below'}")
        for text in texts(crate):
            holders.setdefault(text, []).append(name)
    for text, names in holders.items():
        lines += ["", RULE, *(f"{name}" for name in names), RULE, "", text]
    return ("\n".join(lines) + "\n").encode()


def texts(crate: Crate) -> list[str]:
    """Contents of the files of a package that state its licence."""
    named = (file for file in crate.folder.iterdir() if FILES.fullmatch(file.name) and file.suffix not in CODE)
    files = sorted(file for file in named if file.is_file())
    return [file.read_text(errors="replace").strip().replace("\r\n", "\n") for file in files]
