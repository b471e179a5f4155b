"""What the installed SDK offers, found in the package itself."""

import ast
import dataclasses
import inspect
import pathlib
import re
import types as python_types
import typing

import click
import tinker
from tinker import types
from tinker.cli.__main__ import main_cli

VALUE_TYPES = {
    "LossFnType": types.LossFnType,
    "OptimizerConfig": types.OptimizerConfig,
    "OptimParams": types.OptimParams,
    "AdamParams": types.AdamParams,
    "SamplingParams": types.SamplingParams,
    "SamplingClientKind": types.SamplingClientKind,
    "StopReason": types.StopReason,
    "ModelInputChunk": types.ModelInputChunk,
    "TensorDtype": types.TensorDtype,
    "ProvenanceSpans": types.ProvenanceSpans,
    "CustomLossInputRank": types.CustomLossInputRank,
    "CheckpointType": types.CheckpointType,
    "ClientSessionFinishReasonType": types.ClientSessionFinishReasonType,
    "SessionSearchRequest": types.SessionSearchRequest,
    "SearchOwner": types.SearchOwner,
    "SessionStatusQuery": types.SessionStatusQuery,
    "EventType": types.EventType,
}
"""The types whose values or fields a program chooses."""


def exported_classes() -> dict[str, type]:
    """The classes that the package exports, by name."""
    exports = {name: getattr(tinker, name) for name in tinker.__all__}
    exports |= {name: getattr(types, name) for name in vars(types) if not name.startswith("_")}
    return {name: found for name, found in exports.items() if inspect.isclass(found)}


def members(owner: type) -> list[str]:
    """Public methods and properties that the SDK defines, without those that only its models' library calls."""
    decorators = getattr(owner, "__pydantic_decorators__", None)
    hooks = set()
    if decorators is not None:
        hooks = set(decorators.field_validators) | set(decorators.field_serializers)
    found = []
    for name in dir(owner):
        kind = inspect.getattr_static(owner, name)
        function = kind.fget if isinstance(kind, property) else getattr(kind, "__func__", kind)
        if name.startswith("_") or name in hooks or not inspect.isfunction(function):
            continue
        if function.__module__.startswith("tinker.") and not function.__module__.startswith("tinker._models"):
            found.append(name)
    return found


def methods() -> list[str]:
    """`Class.method` of all exported classes, and `auth.function`."""
    found = [f"{name}.{member}" for name, owner in exported_classes().items() for member in members(owner)]
    return found + [f"auth.{name}" for name in tinker.auth.__all__]


def method(name: str):
    """The function, class method or property behind `Class.method`."""
    owner, _, member = name.partition(".")
    if owner == "auth":
        return getattr(tinker.auth, member)
    return getattr(exported_classes()[owner], member)


def signature(name: str) -> inspect.Signature:
    """Of a method; of what it forwards to where it is one of a future that stands for a client."""
    owner, _, member = name.partition(".")
    if owner.startswith("Backcompat") and member not in members(tinker.APIFuture):
        return signature(f"{owner.removeprefix('Backcompat').removesuffix('Future')}.{member}")
    return inspect.signature(method(name))


def literals(name: str) -> dict[str, tuple]:
    """The values that parameters of a method may have, where these are listed and have no entries of their own."""
    found = {}
    for parameter in signature(name).parameters.values():
        annotation = str(parameter.annotation)
        if annotation.startswith("Literal["):
            kind = eval(annotation, {"Literal": typing.Literal})  # noqa: S307: the SDK's own source
            found[parameter.name] = tuple(value for value in typing.get_args(kind) if isinstance(value, str))
    return found


def commands() -> dict[str, click.Command]:
    """The commands of the command line, by their words."""
    found = {}

    def walk(command, words, context):
        if not isinstance(command, click.Group):
            found[" ".join(words)] = command
            return
        for name in command.list_commands(context):
            walk(command.get_command(context, name), [*words, name], context)

    walk(main_cli, ["tinker"], click.Context(main_cli))
    return found


def values() -> list[str]:
    """`Type.value` of what a program chooses from: listed values, alternatives of a union, fields of a model."""
    return [f"{name}.{value}" for name, kind in VALUE_TYPES.items() for value in values_of(kind)]


def values_of(kind) -> list[str]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return values_of(arguments[0])
    if origin is list:
        return values_of(arguments[0])
    if origin is typing.Literal:
        return [str(value) for value in arguments]
    if origin in (typing.Union, python_types.UnionType):
        return sorted({name for argument in arguments for name in alternatives(argument)})
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(kind.model_fields)


def alternatives(kind) -> list[str]:
    """The names of a class and of the exported classes below it."""
    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    return [kind.__name__, *(name for name, found in exported_classes().items() if kind in found.__mro__[1:])]


VERBS = {"get", "post", "put", "delete", "patch"}
PREFIX = "/api/v1/"


def calls() -> set[str]:
    """`POST create_session`, …: every request that the SDK's source makes, with `{}` for what it fills in."""
    folder = pathlib.Path(tinker.__file__).parent
    sources = [path for path in folder.rglob("*.py") if not path.name.endswith("_test.py")]
    return {found for path in sources for found in calls_of(ast.parse(path.read_text()))}


def calls_of(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        verb = node.func.attr.removeprefix("_")
        if verb == "request" and node.args and isinstance(node.args[0], ast.Constant):
            verb, node.args = str(node.args[0].value).lower(), node.args[1:]
        path = text_of(node.args[0]) if verb in VERBS and node.args else ""
        if PREFIX in path:
            found.add(f"{verb.upper()} {path.partition(PREFIX)[2]}")
    return found


def text_of(node: ast.AST) -> str:
    """A text, with `{}` for the parts that are only known when it runs."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "{}"


def is_request(name: str) -> bool:
    """Whether a name is `GET …` or the like."""
    return name.partition(" ")[0].lower() in VERBS


def pattern(path: str) -> str:
    """A path of the server's document as [`calls`] has it: a checkpoint's id is one part there."""
    found = re.sub(r"\{\w+\}", "{}", path.removeprefix(PREFIX))
    return found.replace("/checkpoints/{}/{}", "/checkpoints/{}")
