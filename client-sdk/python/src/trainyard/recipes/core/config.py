"""Configuration: the defaults of a dataclass, overridden by a TOML file, the environment and flags, in this order."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import sys
import tomllib
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

T = TypeVar("T")
ENVIRONMENT_PREFIX = "RECIPE_"


class ConfigError(ValueError):
    """A setting that can't be used; the text names the setting, its source and what is allowed."""


class RecipeError(RuntimeError):
    """An error that ends a run after it has begun; the text names its cause."""


def described(error: BaseException | None) -> str:
    """Returns an error with the name of its class."""
    return f"{type(error).__name__}: {error}"


def opt(default: T, help: str) -> T:
    """Declares a field of a configuration with its default and its help text."""
    if isinstance(default, (list, dict)) or dataclasses.is_dataclass(default):
        return dataclasses.field(default_factory=lambda: copy.deepcopy(default), metadata={"help": help})
    return dataclasses.field(default=default, metadata={"help": help})


def missing(key: str, name: str, install: str) -> ConfigError:
    """Returns the error for a setting whose package is not installed."""
    return ConfigError(f"{key}: the package {name} is not installed; run: pip install {install}")


def check(condition: bool, key: str, message: str) -> None:
    """Raises a `ConfigError` unless a condition holds; for `__post_init__` of configurations."""
    if not condition:
        raise ConfigError(f"{key}: {message}")


def check_keys(given: Mapping[str, Any], known: set[str], key: str) -> None:
    """Raises a `ConfigError` for the first key of a table that is not known; `key` is the table's."""
    if unknown := sorted(given.keys() - known):
        raise ConfigError(f"{key}.{unknown[0]}: unknown; expected {', '.join(sorted(known))}")


@dataclasses.dataclass(frozen=True)
class Given:
    """A value and its source."""

    value: object
    where: str
    text: bool = False
    """Whether the value is text that has yet to be parsed as its field's type."""


Tree = dict[str, "Given | Tree"]


def load(kind: type[T], argv: Sequence[str], environ: Mapping[str, str], program: str) -> T:
    """Reads `--config FILE`, `RECIPE_*` and the flags. `--help` prints every key and exits."""
    if "--help" in argv or "-h" in argv:
        print(usage(kind, program))
        raise SystemExit(0)
    flags = list(_flags(kind, argv))
    tree: Tree = {}
    for key, given in flags:
        if key == "config":
            _merge(tree, _from_file(Path(str(given.value))))
    for name, value in environ.items():
        if name.startswith(ENVIRONMENT_PREFIX):
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            _put(tree, key, Given(value, name, text=True))
    for key, given in flags:
        if key != "config":
            _put(tree, key, given)
    return _build(kind, tree, "")


def run_main(kind: type[T], main: Callable[[T], object], argv: Sequence[str] | None, program: str) -> int:
    """Runs a recipe. A wrong setting prints one line and exits with code 2; an error that ends the run, with code 1."""
    import os

    import tinker

    from .server import in_one_line

    try:
        config = load(kind, sys.argv[1:] if argv is None else argv, os.environ, program)
        try:
            main(config)
        except tinker.TinkerError as error:
            raise in_one_line(error) from error
    except ConfigError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except RecipeError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    return 0


def as_dict(config: object) -> dict[str, Any]:
    """Returns a configuration as plain values."""
    assert dataclasses.is_dataclass(config) and not isinstance(config, type)
    return dataclasses.asdict(config)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values under dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _default_of(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def defaults(kind: type[Any]) -> dict[str, Any]:
    """The default of every setting, under dotted keys."""
    values = {}
    for field in dataclasses.fields(kind):
        value = _default_of(field)
        values[field.name] = as_dict(value) if dataclasses.is_dataclass(value) else value
    return flatten(values)


def usage(kind: type[Any], program: str) -> str:
    """Returns every key with its type, default and meaning."""
    lines = [f"usage: python -m {program} [--config FILE.toml] [--key value] …", ""]
    lines += [f"  {f'--{key}':<28} {text}" for key, text in _described(kind, "")]
    lines += ["", f"A key a.b is also read from the environment: {ENVIRONMENT_PREFIX}A__B."]
    return "\n".join(lines)


def _described(kind: type[Any], prefix: str) -> Iterator[tuple[str, str]]:
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(hints[field.name]):
            yield from _described(typing.cast(type[Any], hints[field.name]), f"{prefix}{field.name}.")
            continue
        items = [one for one in get_args(hints[field.name]) if dataclasses.is_dataclass(one)]
        yield prefix + field.name, f"{field.metadata.get('help', '')} [{_default_of(field)!r}]"
        for item in items:
            yield from _described(typing.cast(type[Any], item), f"{prefix}{field.name}[].")


def _flags(kind: type[Any], argv: Sequence[str]) -> Iterator[tuple[str, Given]]:
    words = list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            raise ConfigError(f"{word}: expected a flag --key")
        key, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            if words and not words[0].startswith("--"):
                value = words.pop(0)
            elif _kind_of(kind, key) is bool:
                value = "true"
            else:
                raise ConfigError(f"--{key}: a value is missing")
        yield key.replace("-", "_"), Given(value, f"--{key}", text=True)


def _kind_of(kind: type[Any], key: str) -> object:
    for part in key.replace("-", "_").split("."):
        if not dataclasses.is_dataclass(kind):
            return None
        kind = typing.get_type_hints(kind).get(part, object)
    return kind


def _from_file(path: Path) -> Tree:
    try:
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"--config: {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--config: {path}: {error}") from error
    return _marked(values, str(path))


def _marked(values: Mapping[str, Any], where: str) -> Tree:
    return {key: _marked(v, where) if isinstance(v, dict) else Given(v, where) for key, v in values.items()}


def _merge(tree: Tree, other: Tree) -> None:
    for key, value in other.items():
        mine = tree.get(key)
        if isinstance(value, dict) and isinstance(mine, dict):
            _merge(mine, value)
        else:
            tree[key] = value


def _put(tree: Tree, key: str, given: Given) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        below = tree.setdefault(parent, {})
        if isinstance(below, Given):
            raise ConfigError(f"{given.where}: {parent} is not a table in {below.where}")
        tree = below
    tree[last] = given


def _build(kind: type[T], tree: Tree, prefix: str, base: T | None = None) -> T:
    """A configuration from what was given; the rest is as in `base`, or as the class has it."""
    hints = typing.get_type_hints(kind)
    for key, value in tree.items():
        if key not in hints:
            near = difflib.get_close_matches(key, hints, 1)
            hint = f"; did you mean {prefix}{near[0]}?" if near else f"; the keys are {', '.join(hints)}"
            raise ConfigError(f"{_where(value)}: no such key: {prefix}{key}{hint}")
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if dataclasses.is_dataclass(hints[key]):
            below = getattr(base, key) if base is not None else _default(kind, key)
            values[key] = _table(typing.cast(type[Any], hints[key]), value, prefix + key, below)
        else:
            values[key] = _value(hints[key], value, prefix + key)
    return kind(**values) if base is None else typing.cast(T, dataclasses.replace(typing.cast(Any, base), **values))


def _default(kind: type[Any], key: str) -> Any:
    """The default of a field that is a table."""
    (field,) = (one for one in dataclasses.fields(kind) if one.name == key)
    assert field.default_factory is not dataclasses.MISSING, "`opt` makes tables anew"
    return field.default_factory()


def _table(kind: type[Any], value: Given | Tree, key: str, base: object) -> object:
    if isinstance(value, Given):
        raise ConfigError(f"{value.where}: {key}: expected a table")
    return _build(kind, value, f"{key}.", base)


def _where(value: Given | Tree) -> str:
    if isinstance(value, Given):
        return value.where
    return next((_where(below) for below in value.values()), "configuration")


def _value(hint: Any, value: Given | Tree, key: str) -> object:
    if isinstance(value, dict):
        if get_origin(hint) is dict:
            return {name: _loose(below) for name, below in value.items()}
        raise ConfigError(f"{_where(value)}: {key}: expected {_name(hint)}, found a table")
    return _leaf(hint, value, key)


def _loose(value: Given | Tree) -> object:
    """A value of a free table: text is read as TOML where it is TOML."""
    if isinstance(value, dict):
        return {name: _loose(below) for name, below in value.items()}
    return _parsed(str(value.value)) if value.text else value.value


def _parsed(text: str) -> object:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _leaf(hint: Any, given: Given, key: str) -> object:
    value = given.value
    origin = get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        inner = [one for one in get_args(hint) if one is not type(None)]
        return None if value in (None, "none") else _leaf(inner[0], given, key)
    if origin is Literal:
        if value in get_args(hint):
            return value
    elif origin is list:
        (item,) = get_args(hint)
        if dataclasses.is_dataclass(item):
            return _tables(typing.cast(type[Any], item), given, key)
        if given.text:
            value = _parsed(str(value)) if str(value).startswith("[") else [one for one in str(value).split(",") if one]
        if isinstance(value, list):
            return [_leaf(item, Given(one, given.where, isinstance(one, str) and given.text), key) for one in value]
    elif origin is dict:
        parsed = _parsed(str(value)) if given.text else value
        if isinstance(parsed, dict):
            return parsed
    elif hint is str and isinstance(value, str):
        return value
    else:
        parsed = _parsed(str(value)) if given.text else value
        if hint is float and isinstance(parsed, (int, float)) and not isinstance(parsed, bool):
            return float(parsed)
        if hint in (int, bool) and type(parsed) is hint:
            return parsed
    raise ConfigError(f"{given.where}: {key}: expected {_name(hint)}, found {given.value!r}")


def _tables(kind: type[Any], given: Given, key: str) -> list[object]:
    """A list of tables, as `[[key]]` of a file or as TOML."""
    value = _parsed(str(given.value)) if given.text else given.value
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ConfigError(f"{given.where}: {key}: expected a list of tables, found {given.value!r}")
    found = []
    for at, one in enumerate(value):
        try:
            found.append(_build(kind, _marked(one, given.where), ""))
        except ConfigError as error:
            raise ConfigError(f"{key}[{at}]: {error}") from error
    return found


def _name(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    names: dict[Any, str] = {
        str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table",
    }  # fmt: skip
    return names.get(get_origin(hint) or hint, str(hint))
