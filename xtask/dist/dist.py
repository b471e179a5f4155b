"""Makes the packages of a release from the release binary: `make dist`."""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import archive
import crates
import debian
import elf
import licences
import sbom
import wheel
from package import Contents, Refused, Release

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CLIENT = REPOSITORY / "client-sdk" / "python"
CLIENT_NAME = "trainyard_client"
"""The name `trainyard` belongs to another project on the package index."""


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the program, as Cargo built it")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder of packages; it is emptied")
    options = parser.parse_args()
    try:
        make(options.binary, options.out)
    except (Refused, elf.NotDistributable) as error:
        sys.exit(f"dist: {error}")


def make(binary: pathlib.Path, out: pathlib.Path) -> None:
    """Makes all packages, and checks that what they contain can be installed and runs."""
    if not binary.is_file():
        raise Refused(f"{binary} is not there: run `make build` first")
    program = elf.read(binary)
    packages = crates.of_server(REPOSITORY, program.architecture)
    release = Release(packages[0].version, moment())
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    bill = sbom.build(release, packages)
    with tempfile.TemporaryDirectory() as folder:
        stripped = strip(binary, pathlib.Path(folder) / "trainyard")
        contents = Contents(stripped, REPOSITORY, licences.build(packages), bill)
        server = wheel.build(release, program, contents, out)
        made = [server, client(release, out), archive.build(release, program, contents, out)]
        made.append(debian.build(release, program, contents, out))
        bill_path = out / f"trainyard-server-{release.version}.cdx.json"
        bill_path.write_bytes(bill)
        made.append(bill_path)
        check(release, made, stripped)
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(made))
    (out / "SHA256SUMS").write_text(sums)
    print(f"    needs glibc {program.glibc[0]}.{program.glibc[1]}; {len(packages)} packages in the program")
    for file in sorted(made):
        print(f"    {file.stat().st_size / 1e6:8.1f} MB  {file.name}")


def moment() -> int:
    """Returns the time of the commit, or the one that `SOURCE_DATE_EPOCH` sets."""
    if named := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(named)
    command = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused("not a Git checkout: set SOURCE_DATE_EPOCH to the time of the release, in seconds since 1970")
    return int(done.stdout)


def strip(binary: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Returns a copy of the program without symbols and debugging information."""
    done = subprocess.run(["strip", "--strip-all", "-o", str(to), str(binary)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"strip failed: {done.stderr.strip()}")
    to.chmod(0o755)
    return to


def client(release: Release, out: pathlib.Path) -> pathlib.Path:
    """Builds the wheel of the Python client, whose version must be the server's."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(release.moment)}
    before = set(out.iterdir())
    done = subprocess.run(command, cwd=CLIENT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"the Python client can't be built: {done.stderr.strip()}")
    (path,) = set(out.iterdir()) - before
    expected = f"{CLIENT_NAME}-{release.python_version}-py3-none-any.whl"
    if path.name != expected:
        raise Refused(f"client-sdk/python/pyproject.toml: expected name and version of {expected}, found {path.name}")
    return path


def check(release: Release, made: list[pathlib.Path], stripped: pathlib.Path) -> None:
    """Installs both wheels into a new environment, runs the program, and looks into the Debian package."""
    server, python_client, _, package, *_ = made
    with tempfile.TemporaryDirectory() as folder:
        environment = install(pathlib.Path(folder) / "venv", [server, python_client])
        found = run([environment / "bin" / "trainyard", "--version"])
        if found != f"trainyard {release.version}":
            raise Refused(f"{server.name}: expected trainyard {release.version} from --version, found {found!r}")
        unpacked = pathlib.Path(folder) / "package"
        run(["dpkg-deb", "--extract", package, unpacked])
        if (unpacked / "usr" / "bin" / "trainyard").read_bytes() != stripped.read_bytes():
            raise Refused(f"{package.name}: its program is not the one that was built")


def install(environment: pathlib.Path, wheels: list[pathlib.Path]) -> pathlib.Path:
    """A new virtual environment with these wheels and what they depend on."""
    run([sys.executable, "-m", "venv", environment])
    pip = [environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run([*pip, *wheels])
    return environment


def run(command: list) -> str:
    """Runs a command and returns what it printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
