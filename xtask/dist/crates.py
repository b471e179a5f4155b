"""The packages that the server's program contains, from `cargo metadata` and `Cargo.lock`."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tomllib

from package import Refused

SERVER = "trainyard-server"
RUST_TARGETS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}


@dataclasses.dataclass(frozen=True)
class Crate:
    """A package that is compiled into the program."""

    name: str
    version: str
    license: str
    description: str
    checksum: str | None
    """SHA-256 of its archive; none for a package of the repository."""
    folder: pathlib.Path
    uses: tuple[str, ...]
    """References of the packages that it depends on."""

    @property
    def reference(self) -> str:
        """Returns the package URL."""
        return f"pkg:cargo/{self.name}@{self.version}"


def of_server(repository: pathlib.Path, architecture: str) -> list[Crate]:
    """Packages of the server, itself first, the others by name and version."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", RUST_TARGETS[architecture]]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"cargo metadata failed: {done.stderr.strip()}")
    lock = tomllib.loads((repository / "Cargo.lock").read_text())
    return select(json.loads(done.stdout), lock)


def select(metadata: dict, lock: dict) -> list[Crate]:
    """Returns the packages that the server links, without dependencies of builds and tests."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    server = next((id for id in metadata["workspace_members"] if packages[id]["name"] == SERVER), None)
    if server is None:
        raise Refused(f"the workspace has no package {SERVER}")
    reached, open_ids = {server}, [server]
    while open_ids:
        for id in linked(nodes[open_ids.pop()], packages):
            if id not in reached:
                reached.add(id)
                open_ids.append(id)

    def crate(id: str) -> Crate:
        package = packages[id]
        used = (packages[id] for id in linked(nodes[id], packages))
        uses = sorted(f"pkg:cargo/{package['name']}@{package['version']}" for package in used)
        return Crate(
            name=package["name"],
            version=package["version"],
            license=(package["license"] or "").replace("/", " OR "),
            description=" ".join((package["description"] or "").split()),
            checksum=checksums.get((package["name"], package["version"])),
            folder=pathlib.Path(package["manifest_path"]).parent,
            uses=tuple(uses),
        )

    others = sorted((crate(id) for id in reached - {server}), key=lambda crate: (crate.name, crate.version))
    return [crate(server), *others]


def linked(node: dict, packages: dict) -> list[str]:
    """Packages that a package links: normal dependencies that are not macros, which run at build time only."""

    def is_linked(dependency: dict) -> bool:
        normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
        targets = packages[dependency["pkg"]]["targets"]
        return normal and not any("proc-macro" in target["kind"] for target in targets)

    return [dependency["pkg"] for dependency in node["deps"] if is_linked(dependency)]
