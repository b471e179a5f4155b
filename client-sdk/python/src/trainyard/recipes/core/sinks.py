"""Sinks of metrics: always a JSONL file, and the services that the configuration names."""

from __future__ import annotations

import contextlib
import importlib
import json
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from .config import ConfigError, missing

Metrics = Mapping[str, float]


class Sink(Protocol):
    """Receives the metrics of steps."""

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
    """Weights & Biases; `WANDB_*` variables choose account and mode.

    A resumed run continues under the identifier in its folder. For steps that it repeats, W&B keeps the first values.
    """

    def __init__(self, project: str, folder: Path, first_step: int, config: Mapping[str, Any]) -> None:
        module = _module("wandb", "wandb")
        run_id = _remembered(folder / "wandb.txt", first_step) or secrets.token_hex(8)
        self._run = module.init(
            project=project, name=folder.name, id=run_id, resume="allow", dir=str(folder), config=dict(config)
        )
        (folder / "wandb.txt").write_text(run_id)

    def write(self, step: int, metrics: Metrics) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


class TensorBoard:
    """Event files in `<folder>/tensorboard`, written by `tensorboardX` or `torch.utils.tensorboard`.

    A resumed run adds a file, whose values replace those of the steps that it repeats.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        module = _tensorboard()
        # Names of files contain only the second: without a suffix a quick restart would replace the file. Readers take
        # files in the order of their names.
        suffix = f".{first_step:012d}.{secrets.token_hex(4)}"
        self._writer = module.SummaryWriter(
            str(folder / "tensorboard"), purge_step=first_step or None, filename_suffix=suffix
        )

    def write(self, step: int, metrics: Metrics) -> None:
        for key, value in _plain(metrics).items():
            self._writer.add_scalar(key, value, step)

    def close(self) -> None:
        self._writer.close()


def _tensorboard() -> Any:
    """`tensorboardX`, or the writer of PyTorch where that is not installed."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("tensorboardX")
    with contextlib.suppress(ImportError):
        return importlib.import_module("torch.utils.tensorboard")
    raise missing("sinks", "tensorboardX", "tensorboardX")


class MLflow:
    """MLflow; `MLFLOW_TRACKING_URI` chooses the server.

    A resumed run continues under the identifier in its folder. For steps that it repeats, MLflow has both values.
    """

    def __init__(self, project: str, folder: Path, first_step: int, config: Mapping[str, Any]) -> None:
        self._mlflow = _module("mlflow", "mlflow")
        self._mlflow.set_experiment(project)
        run_id = _remembered(folder / "mlflow.txt", first_step)
        run = self._mlflow.start_run(run_id=run_id, run_name=folder.name)
        (folder / "mlflow.txt").write_text(run.info.run_id)
        # Parameters of a run can't change, and a resumed run may have more steps.
        if run_id is None:
            self._mlflow.log_params(dict(config))

    def write(self, step: int, metrics: Metrics) -> None:
        self._mlflow.log_metrics(_plain(metrics), step=step)

    def close(self) -> None:
        self._mlflow.end_run()


def _plain(metrics: Metrics) -> dict[str, float]:
    """Metrics under names that a service takes which has no @: `pass@1` is `pass_at_1`."""
    return {key.replace("@", "_at_"): value for key, value in metrics.items()}


def _remembered(path: Path, first_step: int) -> str | None:
    """The identifier that an earlier part of a resumed run has with a service."""
    return path.read_text().strip() if first_step and path.exists() else None


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise ConfigError(f"sinks: the package {package} can't be imported: {error}") from error
        raise missing("sinks", package, package) from error
    except ImportError as error:
        raise ConfigError(f"sinks: the package {package} can't be imported: {error}") from error


def open_sinks(names: list[str], project: str, folder: Path, first_step: int, config: Mapping[str, Any]) -> list[Sink]:
    """Opens the JSONL file, then the sinks that are named: `wandb`, `tensorboard`, `mlflow`."""
    known: dict[str, Callable[[], Sink]] = {
        "wandb": lambda: WandB(project, folder, first_step, config),
        "tensorboard": lambda: TensorBoard(folder, first_step),
        "mlflow": lambda: MLflow(project, folder, first_step, config),
    }
    for name in names:
        if name not in known:
            raise ConfigError(f"sinks: unknown sink {name!r}; available: {', '.join(known)}")
    return [Jsonl(folder / "metrics.jsonl", first_step), *(_opened(name, known[name]) for name in names)]


def _opened(name: str, sink: Callable[[], Sink]) -> Sink:
    """A sink whose service refuses the run, for want of an account or of a store, ends it before its first step."""
    try:
        return sink()
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"sinks: {name}: {error}") from error
