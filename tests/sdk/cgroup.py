"""A memory limit that the kernel enforces: a cgroup, version 2 or 1, for one process."""

import contextlib
import os
import pathlib
import uuid

ROOT = pathlib.Path("/sys/fs/cgroup")


class MemoryGroup:
    """Processes that join have so many bytes together, and the kernel kills one of them when they take more."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    def join(self):
        """Puts the calling process in; for `preexec_fn`."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def kills(self) -> int:
        """Processes that the kernel killed for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            path = self.folder / name
            if path.exists():
                counts = dict(line.split() for line in path.read_text().splitlines())
                return int(counts["oom_kill"])
        raise RuntimeError(f"no count of killed processes in {self.folder}")


@contextlib.contextmanager
def memory_group(limit: int):
    """A group of so many bytes; None where this process may not make one."""
    for parent, name in ((ROOT / "memory", "memory.limit_in_bytes"), (ROOT, "memory.max")):
        folder = parent / f"trainyard-{uuid.uuid4().hex}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            # Without the controller the folder has no such file.
            if (folder / name).exists():
                (folder / name).write_text(str(limit))
                yield MemoryGroup(folder)
                return
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()
    yield None
