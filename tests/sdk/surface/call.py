"""One name of the surface being driven: how it is called, and what of it was not."""

import asyncio
import inspect

import tinker

from helpers import WAIT
from surface import reflection


def resolve(value, seconds=WAIT):
    """The final result of what a method returned: waits for futures, also for a future of a client."""
    while isinstance(value, tinker.APIFuture):
        value = value.result(seconds)
    return value


async def resolve_async(value):
    """The same by awaiting."""
    while inspect.isawaitable(value):
        value = await value
    return value


class Call:
    """A method of a client, on a client of its own unless another is given."""

    def __init__(self, world, name: str):
        self.world = world
        self.name = name
        self.owner, _, self.member = name.partition(".")
        self._subject = None
        self._passed: set[tuple[str, object]] = set()

    @property
    def subject(self):
        if self._subject is None:
            self._subject = self.world.make(self.owner)
        return self._subject

    def __call__(self, *args, **kwargs):
        return self.on(self.subject, *args, **kwargs)

    def on(self, subject, *args, **kwargs):
        """Calls it on a subject and waits for what it returns, in an event loop where it is a coroutine."""
        function = getattr(subject, self.member)
        self._note(args, kwargs)
        if not inspect.iscoroutinefunction(inspect.unwrap(function)) and not self.member.endswith("_async"):
            return resolve(function(*args, **kwargs))

        async def run():
            return await resolve_async(function(*args, **kwargs))

        return asyncio.run(run())

    def get(self, subject=None):
        """The value of a property."""
        return getattr(self.subject if subject is None else subject, self.member)

    def _note(self, args, kwargs):
        signature = reflection.signature(self.name)
        parameters = [p for p in signature.parameters.values() if p.name != "self"]
        bound = signature.replace(parameters=parameters).bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            self._passed |= {(name, None), (name, value if isinstance(value, str) else None)}

    def left_out(self) -> set[str]:
        """Parameters that were never passed, and listed values that a parameter never had."""
        if isinstance(reflection.method(self.name), property):
            return set()
        names = {name for name in reflection.signature(self.name).parameters if name != "self"}
        wanted = {(name, None) for name in names}
        wanted |= {(name, value) for name, values in reflection.literals(self.name).items() for value in values}
        return {name if value is None else f"{name}={value}" for name, value in wanted - self._passed}


class Command:
    """A command of the official command line, in a process of its own."""

    def __init__(self, world, name: str):
        self.world = world
        self.name = name
        self._passed: set[str] = set()

    def __call__(self, *words, key=None, fails=False, form="json", **options) -> str:
        """What it prints; as a table, or as JSON where `form` says so."""
        self._passed |= {str(word) for word in words}
        start = [] if form == "table" else ["--format", form]
        given = [*start, *self.name.split()[1:], *map(str, words)]
        return self.world.command_line(*given, key=key or self.world.member, fails=fails, **options)

    def left_out(self) -> set[str]:
        """Options that were never given."""
        options = [one for one in reflection.commands()[self.name].params if one.param_type_name == "option"]
        return {one.opts[0] for one in options if not set(one.opts) & self._passed}


class Value:
    """A value of a type; its driver sends it to the server."""

    def __init__(self, world, name: str):
        self.world = world
        self.type, _, self.value = name.partition(".")

    def left_out(self) -> set[str]:
        return set()


class Request:
    """A request that the SDK's source makes."""

    def __init__(self, world, name: str):
        self.world = world
        self.verb, _, self.path = name.partition(" ")

    def left_out(self) -> set[str]:
        return set()


def of(world, name: str):
    """How a name of the table is driven."""
    if name.startswith("tinker "):
        return Command(world, name)
    if " " in name:
        return Request(world, name)
    return Value(world, name) if name.partition(".")[0] in reflection.VALUE_TYPES else Call(world, name)
