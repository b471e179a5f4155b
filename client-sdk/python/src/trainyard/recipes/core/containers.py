"""Machines in which a model works: containers of podman or docker, and sandboxes of bubblewrap."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .config import ConfigError
from .sandbox import kill_group

FOLDERS = ("/logs/agent", "/logs/verifier", "/tests")
"""Folders that each machine has."""
OWN = ("logs", "root", "tests", "tmp")
"""Folders at the root of a sandbox that commands can change, beside that of the working directory."""
SYSTEM = ("dev", "proc")
DEFAULT_WORKDIR = "/app"
"""Working directory of a sandbox."""
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ROOT = ("", "0", "root")
"""Names of the only user of a sandbox."""
PROCESSES = 512
GRACE_SECONDS = 30.0
"""Seconds for the engine itself, beyond those of a command."""


class EngineError(OSError):
    """What the program that runs containers reports; `limits.retry_on` may name it."""


@dataclass(frozen=True)
class Machine:
    """What a machine is made of."""

    image: str
    """Name of an image, unless `build` is set."""
    build: Path | None = None
    """Folder with a Dockerfile."""
    build_seconds: float = 600.0
    workdir: str = ""
    """Folder in which commands start: that of the image if it is empty."""
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    memory_mib: int | None = None
    network: bool = True


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    output: str
    """Standard output and standard error together, up to the limit."""
    timed_out: bool = False


class Container(ABC):
    """A running machine. Files last as long as it does."""

    @abstractmethod
    def run(self, command: str, seconds: float, limit: int, env: Mapping[str, str] = {}, user: str = "") -> Ended:
        """Runs a command of bash, and returns at most `limit` bytes of its output."""

    @abstractmethod
    def put(self, folder: Path, into: str) -> None:
        """Copies the content of a folder."""

    @abstractmethod
    def close(self) -> None:
        """Ends what runs, and deletes the machine."""


class Engine(ABC):
    """A program that runs machines."""

    @abstractmethod
    def start(self, machine: Machine) -> Container:
        """Starts a machine."""

    @abstractmethod
    def refused(self, machine: Machine, users: Sequence[str]) -> str:
        """Why a machine with commands of these users is not possible here; empty if it is."""


def engine(backend: str, rootfs: str, key: str) -> Engine:
    """The engine of that name; `key` is the prefix of the settings, for errors."""
    names = {"podman": "podman", "docker": "docker", "bubblewrap": "bwrap"}
    if backend not in names:
        raise ConfigError(f"{key}.backend: {backend!r} is unknown: expected one of {', '.join(names)}")
    program = shutil.which(names[backend])
    if program is None:
        raise ConfigError(f"{key}.backend: the program {names[backend]} was not found")
    if backend != "bubblewrap":
        if rootfs:
            raise ConfigError(f"{key}.rootfs: only for bubblewrap; {backend} uses the images of tasks")
        return Containers(program)
    if not rootfs or not Path(rootfs).is_dir():
        raise ConfigError(
            f"{key}.rootfs: bubblewrap needs a folder with a root file system, such as /; found {rootfs!r}"
        )
    return Sandboxes(program, Path(rootfs))


class Containers(Engine):
    """Podman or docker, whose command lines agree in what is used here."""

    def __init__(self, program: str) -> None:
        self.program = program
        self._lock = threading.Lock()

    def refused(self, machine: Machine, users: Sequence[str]) -> str:
        return "" if machine.image or machine.build else "the task has neither a Dockerfile nor docker_image"

    def start(self, machine: Machine) -> Container:
        image = machine.image if machine.build is None else self._built(machine.build, machine.build_seconds)
        name = f"trainyard-{uuid.uuid4().hex}"
        options = ["--detach", "--rm", "--name", name, "--pids-limit", str(PROCESSES), *_variables(machine.env)]
        if not machine.network:
            options += ["--network", "none"]
        if machine.cpus is not None:
            options += ["--cpus", f"{machine.cpus:g}"]
        if machine.memory_mib is not None:
            options += ["--memory", f"{machine.memory_mib}m"]
        # Images that are not here are pulled.
        self.call(["run", *options, "--entrypoint", "sleep", image, "infinity"], machine.build_seconds, machine.env)
        container = OciContainer(self, name, machine)
        container.setup()
        return container

    def _built(self, folder: Path, seconds: float) -> str:
        image = f"trainyard-harbor:{_digest(folder)}"
        with self._lock:
            if _ended([self.program, "image", "inspect", image], GRACE_SECONDS, 0).code != 0:
                self.call(["build", "--quiet", "--tag", image, str(folder)], seconds)
        return image

    def call(self, arguments: Sequence[str], seconds: float, env: Mapping[str, str] = {}) -> str:
        """Runs the engine's program, which must succeed."""
        ended = _ended([self.program, *arguments], seconds, 64 << 10, {**os.environ, **env})
        if ended.code != 0 or ended.timed_out:
            why = f"not finished after {seconds:g} s" if ended.timed_out else ended.output.strip()[-400:]
            raise EngineError(f"{Path(self.program).name} {arguments[0]}: {why}")
        return ended.output


class OciContainer(Container):
    """A container, in which each command is a process of its own."""

    def __init__(self, engine: Containers, name: str, machine: Machine) -> None:
        self.engine, self.name, self.machine = engine, name, machine

    def setup(self) -> None:
        """Makes the folders that every task expects."""
        try:
            self.engine.call(["exec", "--user", "0", self.name, "mkdir", "-p", *FOLDERS], GRACE_SECONDS)
        except EngineError:
            self.close()
            raise

    def run(self, command: str, seconds: float, limit: int, env: Mapping[str, str] = {}, user: str = "") -> Ended:
        options = [*_variables(env)]
        if user:
            options += ["--user", user]
        if self.machine.workdir:
            options += ["--workdir", self.machine.workdir]
        # The engine's own process may end without the command's, so the limit is inside.
        limited = ["timeout", "-s", "KILL", str(max(round(seconds), 1)), "bash", "-c", command]
        arguments = [self.engine.program, "exec", *options, self.name, *limited]
        ended = _ended(arguments, seconds + GRACE_SECONDS, limit, {**os.environ, **env})
        if ended.timed_out:
            raise EngineError(f"{Path(self.engine.program).name} exec: no answer {GRACE_SECONDS:g} s after the limit")
        return Ended(ended.code, ended.output, ended.code in (124, 137))

    def put(self, folder: Path, into: str) -> None:
        self.engine.call(["cp", f"{folder}/.", f"{self.name}:{into}"], GRACE_SECONDS)

    def close(self) -> None:
        with contextlib.suppress(EngineError):
            self.engine.call(["rm", "--force", self.name], GRACE_SECONDS)


class Sandboxes(Engine):
    """Bubblewrap: the root file system is read-only and shared, and no image is built."""

    def __init__(self, program: str, rootfs: Path) -> None:
        self.program, self.rootfs = program, rootfs

    def refused(self, machine: Machine, users: Sequence[str]) -> str:
        if unknown := [user for user in users if user not in ROOT]:
            return f"bubblewrap has no user {unknown[0]!r}: only root"
        workdir = PurePosixPath(machine.workdir or DEFAULT_WORKDIR)
        if not workdir.is_absolute():
            return f"workdir {machine.workdir!r} is not absolute"
        top = workdir.parts[1:2]
        if not top or top[0] in SYSTEM or (top[0] not in OWN and (self.rootfs / top[0]).exists()):
            return f"workdir {machine.workdir!r} is within the root file system, which bubblewrap can't change"
        if machine.cpus is not None and machine.cpus < 1:
            return "bubblewrap can't limit a task to a part of a processor"
        return ""

    def start(self, machine: Machine) -> Container:
        return Sandboxed(self, machine)


class Sandboxed(Container):
    """Folders on this machine, which each command sees in a sandbox of its own. What a command starts ends with it."""

    def __init__(self, engine: Sandboxes, machine: Machine) -> None:
        self.engine, self.machine = engine, machine
        self.workdir = machine.workdir or DEFAULT_WORKDIR
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.root = Path(self.folder.name)
        for path in (*FOLDERS, "/tmp", "/root", self.workdir):
            (self.root / path[1:]).mkdir(parents=True, exist_ok=True)
        self.mounts = self._mounts()
        if machine.build is not None:
            # As with an image that is not built from it.
            self.put(machine.build, self.workdir)

    def run(self, command: str, seconds: float, limit: int, env: Mapping[str, str] = {}, user: str = "") -> Ended:
        variables = {"PATH": SEARCHED, "HOME": "/root", "LANG": "C.UTF-8", **self.machine.env, **env}
        options = ["--unshare-all", "--die-with-parent", "--new-session", "--dev", "/dev", "--proc", "/proc"]
        options += ["--uid", "0", "--gid", "0", "--chdir", self.workdir]
        if self.machine.network:
            options.append("--share-net")
        limits = f"ulimit -c 0; ulimit -u {PROCESSES} 2>/dev/null; "
        if self.machine.memory_mib is not None:
            limits += f"ulimit -v {self.machine.memory_mib << 10}; "
        return _ended(
            [self.engine.program, *options, *self.mounts, "bash", "-c", limits + command], seconds, limit, variables
        )

    def put(self, folder: Path, into: str) -> None:
        shutil.copytree(folder, self.root / into[1:], dirs_exist_ok=True, symlinks=True)

    def close(self) -> None:
        self.folder.cleanup()

    def _mounts(self) -> list[str]:
        """The root file system, and the folders of this sandbox in it."""
        own = sorted({*OWN, PurePosixPath(self.workdir).parts[1]})
        options = []
        for entry in sorted(self.engine.rootfs.iterdir()):
            if entry.name in SYSTEM or entry.name in own:
                continue
            if entry.is_symlink():
                options += ["--symlink", os.readlink(entry), f"/{entry.name}"]
            elif entry.is_dir():
                options += ["--ro-bind", str(entry), f"/{entry.name}"]
        for name in own:
            options += ["--bind", str(self.root / name), f"/{name}"]
        return options


def _variables(env: Mapping[str, str]) -> list[str]:
    """Options by name alone: values, which may be secrets, are in the environment of the engine's program."""
    return [word for name in env for word in ("--env", name)]


def _digest(folder: Path) -> str:
    """A name for what an image is built from."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        for part in (name.encode(), f"{path.lstat().st_mode:o}".encode(), content):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:32]


def _ended(command: Sequence[str], seconds: float, limit: int, env: Mapping[str, str] | None = None) -> Ended:
    """Runs a program to its end, or kills its process group after `seconds`. Output beyond `limit` bytes is dropped."""
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise EngineError(f"{command[0]}: {error}") from error
    kept = bytearray()

    def read() -> None:
        assert child.stdout is not None
        while piece := os.read(child.stdout.fileno(), 1 << 16):
            kept.extend(piece[: limit - len(kept)])

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    timed_out = False
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        kill_group(child)
    # A process that left the group may hold the pipe open.
    reader.join(1.0)
    return Ended(child.returncode, bytes(kept).decode(errors="replace"), timed_out)
