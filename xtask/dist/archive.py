"""The archive with the program, templates for deployments and licences, for systems without a package manager."""

import io
import pathlib
import tarfile

from elf import Program
from package import Contents, Release

TEXTS = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md"]
LEVEL = 19


def build(release: Release, program: Program, contents: Contents, out: pathlib.Path) -> pathlib.Path:
    """Writes the archive and returns its path."""
    # The other packages need only the standard library.
    import zstandard

    name = f"trainyard-{release.version}-{program.architecture}"
    path = out / f"{name}.tar.zst"
    path.write_bytes(zstandard.ZstdCompressor(level=LEVEL).compress(tar(release, contents, name)))
    return path


def tar(release: Release, contents: Contents, folder: str) -> bytes:
    """The archive before compression; everything is in one folder."""
    files = [("bin/trainyard", contents.binary.read_bytes(), 0o755)]
    files += [(name, contents.text(name), 0o644) for name in TEXTS]
    files.append(("THIRD-PARTY-LICENSES.txt", contents.licences, 0o644))
    files.append(("trainyard-server.cdx.json", contents.sbom, 0o644))
    units = sorted((contents.repository / "deploy" / "systemd").iterdir())
    files += [(f"systemd/{unit.name}", unit.read_bytes(), 0o644) for unit in units]
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data, mode in files:
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode, entry.mtime = len(data), mode, release.moment
            archive.addfile(entry, io.BytesIO(data))
    return written.getvalue()
