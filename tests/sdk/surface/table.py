"""The table: for each name of the surface a driver that calls it and asserts its effect, and what comes of it."""

import dataclasses
import enum
import inspect
from collections.abc import Callable, Iterable


class State(enum.Enum):
    """What comes of calling it here."""

    WORKS = "works"
    CLIENT = "client only"
    """The SDK does it alone; there is nothing that a server could do."""
    REFUSED = "refused"


@dataclasses.dataclass(frozen=True)
class Entry:
    """What drives one name of the surface."""

    name: str
    state: State
    drive: Callable
    note: str
    """Why it is refused; else what a user should know, if anything."""
    unused: frozenset[str]
    """Parameters that the driver need not pass."""

    @property
    def driver(self) -> str:
        """Where the driver is: `training.py: forward`."""
        return f"{inspect.getmodule(self.drive).__name__.rpartition('.')[2]}.py: {self.drive.__name__}"


TABLE: dict[str, Entry] = {}


def works(*names: str | Iterable[str], note="", unused=()):
    """The decorated function drives these names; it gets the world and the call."""
    return _entries(names, State.WORKS, note, unused)


def client_only(*names: str | Iterable[str], note=""):
    """What the SDK does without a server."""
    return _entries(names, State.CLIENT, note)


def refused(*names: str | Iterable[str], reason: str):
    """The decorated function asserts the refusal."""
    return _entries(names, State.REFUSED, reason)


def both(*names: str) -> list[str]:
    """Methods and their twins whose names end in `_async`."""
    return [twin for name in names for twin in (name, f"{name}_async")]


def _entries(names, state, note, unused=()):
    flat = [name for one in names for name in ([one] if isinstance(one, str) else one)]

    def register(drive):
        for name in flat:
            assert name not in TABLE, f"two entries for {name}"
            TABLE[name] = Entry(name, state, drive, note, frozenset(unused))
        return drive

    return register
