"""The Debian package: the program, systemd units that are not enabled, and documentation."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from elf import Program
from package import SUMMARY, Contents, Refused, Release

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
DOCUMENTS = ["CHANGELOG.md", "README.md", "SECURITY.md"]

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: trainyard

Files: *
Copyright: The Trainyard authors
License: Apache-2.0

License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
 .
 The program contains the packages that THIRD-PARTY-LICENSES.txt in this folder lists, with their licences.
"""


def build(release: Release, program: Program, contents: Contents, out: pathlib.Path) -> pathlib.Path:
    """Writes the package and returns its path."""
    if shutil.which("dpkg-deb") is None:
        raise Refused("dpkg-deb is missing: install the package dpkg")
    architecture = ARCHITECTURES[program.architecture]
    path = out / f"trainyard_{release.debian_version}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "package"
        files = tree(contents)
        files["DEBIAN/control"] = (control(release, program, architecture, installed_kib(files)), 0o644)
        for name, (data, mode) in files.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(mode)
        for directory in [root, *(entry for entry in root.rglob("*") if entry.is_dir())]:
            directory.chmod(0o755)
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(path)]
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(release.moment)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise Refused(f"dpkg-deb failed: {done.stderr.strip()}")
    return path


def tree(contents: Contents) -> dict[str, tuple[bytes, int]]:
    """Returns the files of the package by path, each with its mode."""
    documents = "usr/share/doc/trainyard"
    files = {"usr/bin/trainyard": (contents.binary.read_bytes(), 0o755)}
    for unit in sorted((contents.repository / "deploy" / "systemd").iterdir()):
        folder = "usr/lib/systemd/system" if unit.suffix == ".service" else f"{documents}/examples"
        files[f"{folder}/{unit.name}"] = (unit.read_bytes(), 0o644)
    files |= {f"{documents}/{name}": (contents.text(name), 0o644) for name in DOCUMENTS}
    files[f"{documents}/copyright"] = (COPYRIGHT.encode(), 0o644)
    files[f"{documents}/THIRD-PARTY-LICENSES.txt"] = (contents.licences, 0o644)
    files[f"{documents}/trainyard-server.cdx.json"] = (contents.sbom, 0o644)
    return files


def installed_kib(files: dict[str, tuple[bytes, int]]) -> int:
    """Size of the installed files, as Debian estimates it."""
    return sum(-(-len(data) // 1024) for data, _ in files.values())


def control(release: Release, program: Program, architecture: str, kib: int) -> bytes:
    """The description of the package."""
    glibc = ".".join(map(str, program.glibc))
    libraries = [f"libc6 (>= {glibc})", *(["libgcc-s1"] if "libgcc_s.so.1" in program.libraries else [])]
    return f"""\
Package: trainyard
Version: {release.debian_version}
Architecture: {architecture}
Maintainer: The Trainyard authors
Installed-Size: {kib}
Depends: {", ".join(libraries)}
Recommends: ca-certificates
Section: science
Priority: optional
Description: {SUMMARY.rstrip(".")}
 Clients own the data, the loss and the training loop; Trainyard owns the weights,
 the compute and the scheduling. The program needs neither Python nor CUDA.
""".encode()
