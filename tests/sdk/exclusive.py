"""Turns of parallel test processes: tests run beside those of another process, except the ones that need the machine
for themselves."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

import folders

# What all processes of one parallel run have in common; absent when the tests run in one process.
RUN = "PYTEST_XDIST_TESTRUNUID"


@contextlib.contextmanager
def turn(alone: bool) -> Iterator[None]:
    """Waits until the test may run; with `alone`, no other runs meanwhile. The processes' ends release their locks."""
    if RUN not in os.environ:
        yield
        return
    folder = folders.of_run()
    with (folder / "gate").open("w") as gate, (folder / "lock").open("w") as lock:
        # Who waits for the lock holds the gate, so that a test that needs it alone is not passed for ever.
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
