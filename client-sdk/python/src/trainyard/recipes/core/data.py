"""Data sets: JSONL, Parquet, and the Hugging Face hub if `datasets` is installed."""

from __future__ import annotations

import importlib
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .config import ConfigError, missing
from .images import anchored

Record = dict[str, Any]


def read(source: str, key: str = "data") -> list[Record]:
    """The records of `FILE.jsonl`, `FILE.parquet` or `hf:NAME[@SPLIT]`, whose name may be a folder; `key` is the
    setting, for errors."""
    if source.startswith("hf:"):
        return _from_hub(source.removeprefix("hf:"), key)
    path = Path(source)
    readers = {".jsonl": _from_jsonl, ".parquet": _from_parquet}
    if path.suffix not in readers:
        raise ConfigError(f"{key}: {source}: expected a .jsonl or .parquet file, or hf:NAME@SPLIT")
    if not path.is_file():
        raise ConfigError(f"{key}: {source}: file not found")
    records = readers[path.suffix](path, key)
    if not records:
        raise ConfigError(f"{key}: {source}: no records")
    return records


def _from_jsonl(path: Path, key: str) -> list[Record]:
    records = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{key}: {path}:{number}: {error}") from error
        if not isinstance(record, dict):
            raise ConfigError(f"{key}: {path}:{number}: expected an object")
        records.append(anchored(record, path.parent))
    return records


def _from_parquet(path: Path, key: str) -> list[Record]:
    parquet = _module("pyarrow.parquet", "pyarrow", key, "pyarrow")
    records: list[Record] = [anchored(record, path.parent) for record in parquet.read_table(path).to_pylist()]
    return records


def _from_hub(source: str, key: str) -> list[Record]:
    name, _, split = source.partition("@")
    datasets = _module("datasets", "datasets", key, "datasets")
    try:
        records = [dict(record) for record in datasets.load_dataset(name, split=split or "train")]
    except Exception as error:
        # What `datasets` raises for a name, a split or a file that it can't use has no common class.
        raise ConfigError(f"{key}: hf:{source}: {error}") from error
    if not records:
        raise ConfigError(f"{key}: hf:{source}: no records")
    return records


def _module(name: str, package: str, key: str, install: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise missing(key, package, install) from error


def shuffled(count: int, seed: int) -> Iterator[int]:
    """Yields indices without end: each epoch is a permutation that depends only on the seed and the epoch."""
    for epoch in itertools.count():
        order = list(range(count))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        yield from order


class Tasks:
    """Numbers of tasks in the order of `shuffled`; `taken` counts those that were used."""

    def __init__(self, count: int, seed: int, taken: int = 0) -> None:
        self.taken = taken
        self._numbers = itertools.islice(shuffled(count, seed), taken, None)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.taken += 1
        return next(self._numbers)

    def take(self, count: int) -> list[int]:
        """The next `count` numbers."""
        return list(itertools.islice(self, count))


def batches(count: int, size: int, seed: int, first: int = 0) -> Iterator[list[int]]:
    """Yields batches of indices from batch number `first` on, so that a resumed run sees the batches that it has not
    yet seen."""
    indices = itertools.islice(shuffled(count, seed), first * size, None)
    while True:
        yield list(itertools.islice(indices, size))
