"""The wheel `trainyard-server`: the program as a script of the environment that installs it."""

import base64
import hashlib
import pathlib
import time
import zipfile

from elf import Program
from package import HOMEPAGE_TEXT, SUMMARY, Contents, Refused, Release

NAME = "trainyard_server"
MOST_BYTES = 60_000_000
"""What a package index accepts without asking, with room to spare."""


def build(release: Release, program: Program, contents: Contents, out: pathlib.Path) -> pathlib.Path:
    """Writes the wheel and returns its path."""
    version = release.python_version
    tag = f"py3-none-{program.platform}"
    info = f"{NAME}-{version}.dist-info"
    form = f"Wheel-Version: 1.0\nGenerator: trainyard\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = [
        (f"{NAME}-{version}.data/scripts/trainyard", contents.binary.read_bytes(), 0o755),
        (f"{info}/METADATA", metadata(version).encode(), 0o644),
        (f"{info}/WHEEL", form.encode(), 0o644),
        (f"{info}/licenses/LICENSE", contents.text("LICENSE"), 0o644),
        (f"{info}/licenses/THIRD-PARTY-LICENSES.txt", contents.licences, 0o644),
        (f"{info}/sboms/{NAME}.cdx.json", contents.sbom, 0o644),
    ]
    lines = [f"{name},sha256={digest(data)},{len(data)}\n" for name, data, _ in files]
    record = f"{info}/RECORD"
    files.append((record, "".join([*lines, f"{record},,\n"]).encode(), 0o644))
    path = out / f"{NAME}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, time.gmtime(release.moment)[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    ensure_size(path)
    return path


def ensure_size(path: pathlib.Path, most: int = MOST_BYTES) -> None:
    """Refuses a wheel that is too large to publish."""
    size = path.stat().st_size
    if size > most:
        raise Refused(f"{path.name} has {size} bytes, expected at most {most}: look at what the program has gained")


def digest(data: bytes) -> str:
    """The SHA-256 of a file as a wheel's record writes it."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata(version: str) -> str:
    """The description of the package."""
    return f"""\
Metadata-Version: 2.4
Name: trainyard-server
Version: {version}
Summary: {SUMMARY}
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD-PARTY-LICENSES.txt
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Rust
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.9
Description-Content-Type: text/markdown

{HOMEPAGE_TEXT}"""
