"""Folders that last as long as a run of the tests."""

import os
import pathlib
import tempfile

# The run's folder, which parallel processes share with the one that started them.
RUN = "TRAINYARD_TESTS_FOLDER"


def begin(config) -> None:
    """Makes the run's folder, unless another process has; the end of the run removes it."""
    if RUN in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="trainyard-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    config.add_cleanup(lambda: os.environ.pop(RUN))
    os.environ[RUN] = folder.name


def of_run() -> pathlib.Path:
    return pathlib.Path(os.environ[RUN])


def new() -> pathlib.Path:
    return pathlib.Path(tempfile.mkdtemp(dir=of_run()))
