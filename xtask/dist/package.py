"""Common parts of all packages of the server: its files, and the timestamp for them."""

import dataclasses
import pathlib
import re

HOMEPAGE_TEXT = """\
Trainyard is a training service for language models that a team runs on its own machines. Clients speak the Tinker
protocol: they own the data, the loss and the training loop. Trainyard owns the weights, the compute and the scheduling.

This package contains the server as one program, `trainyard`, which needs neither Python nor a CUDA toolkit:

    trainyard serve --model NAME=PATH

The client library is the package `trainyard-client`; the official `tinker` SDK works unmodified.
"""
"""What an index shows about the server's package."""

SUMMARY = "Training service for language models that speaks the Tinker protocol."

PRE_RELEASE = re.compile(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?")


class Refused(Exception):
    """A distribution that must not be published."""


@dataclasses.dataclass(frozen=True)
class Release:
    """The release that is packaged."""

    version: str
    """As Cargo writes it."""
    moment: int
    """Seconds since 1970, in place of the times of files, so that the same commit gives the same bytes."""

    @property
    def python_version(self) -> str:
        """The version as Python packages write it."""
        found = PRE_RELEASE.fullmatch(self.version)
        if not found:
            raise Refused(f"version {self.version}: expected x.y.z or x.y.z-rc.n")
        short = {"alpha": "a", "beta": "b", "rc": "rc"}
        return found[1] + (short[found[2]] + found[3] if found[2] else "")

    @property
    def debian_version(self) -> str:
        """The version as Debian packages write it: a tilde sorts before the release."""
        return self.version.replace("-", "~", 1)


@dataclasses.dataclass(frozen=True)
class Contents:
    """The files that go into each package."""

    binary: pathlib.Path
    """The program, stripped."""
    repository: pathlib.Path
    licences: bytes
    """Licences of the packages that the program contains."""
    sbom: bytes

    def text(self, name: str) -> bytes:
        """A file of the repository."""
        return (self.repository / name).read_bytes()
