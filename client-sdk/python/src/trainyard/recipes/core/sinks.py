"""Where metrics go: always to a JSONL file, and to the services that the configuration names."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from .config import ConfigError

Metrics = Mapping[str, float]


class Sink(Protocol):
    """Takes the metrics of steps."""

    def write(self, step: int, metrics: Metrics) -> None: ...

    def close(self) -> None: ...


class Jsonl:
    """One line for each record: `step`, `time` (seconds since the epoch) and the metrics."""

    def __init__(self, path: Path, first_step: int) -> None:
        """Lines of `first_step` and later ones are of a run that was interrupted: it is resumed before them."""
        kept = [line for line in lines(path) if line["step"] < first_step]
        temporary = path.with_suffix(".tmp")
        temporary.write_text("".join(json.dumps(line) + "\n" for line in kept))
        temporary.replace(path)
        self._file = path.open("a")

    def write(self, step: int, metrics: Metrics) -> None:
        self._file.write(json.dumps({"step": step, "time": time.time(), **metrics}) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file that this program writes; a line that was cut off by a kill is left out."""
    if not path.exists():
        return []
    text = path.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


class WandB:
    """Weights & Biases; `WANDB_*` variables choose account and mode."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any]) -> None:
        self._run = _module("wandb").init(project=project, name=name, config=dict(config), resume="allow")

    def write(self, step: int, metrics: Metrics) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


class TensorBoard:
    """Event files in `<folder>/tensorboard`, written by `tensorboardX` or `torch.utils.tensorboard`."""

    def __init__(self, folder: Path) -> None:
        try:
            module = _module("tensorboardX")
        except ConfigError:
            module = _module("torch.utils.tensorboard")
        self._writer = module.SummaryWriter(str(folder / "tensorboard"))

    def write(self, step: int, metrics: Metrics) -> None:
        for key, value in metrics.items():
            self._writer.add_scalar(key, value, step)

    def close(self) -> None:
        self._writer.close()


class MLflow:
    """MLflow; `MLFLOW_TRACKING_URI` chooses the server."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any]) -> None:
        self._mlflow = _module("mlflow")
        self._mlflow.set_experiment(project)
        self._mlflow.start_run(run_name=name)
        self._mlflow.log_params(dict(config))

    def write(self, step: int, metrics: Metrics) -> None:
        self._mlflow.log_metrics(dict(metrics), step=step)

    def close(self) -> None:
        self._mlflow.end_run()


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"sinks: the package {name} is not installed") from error


def open_sinks(names: list[str], project: str, folder: Path, first_step: int, config: Mapping[str, Any]) -> list[Sink]:
    """The JSONL file, then those named: `wandb`, `tensorboard`, `mlflow`."""
    known: dict[str, Callable[[], Sink]] = {
        "wandb": lambda: WandB(project, folder.name, config),
        "tensorboard": lambda: TensorBoard(folder),
        "mlflow": lambda: MLflow(project, folder.name, config),
    }
    for name in names:
        if name not in known:
            raise ConfigError(f"sinks: no sink {name!r}; there are {', '.join(known)}")
    return [Jsonl(folder / "metrics.jsonl", first_step), *(known[name]() for name in names)]
