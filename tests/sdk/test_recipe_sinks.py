"""Metrics in TensorBoard, MLflow and Weights & Biases, each where its package is installed, read back by that package."""

import json
import struct
import sys
import time
import types

import pytest

import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes.core.config import ConfigError  # isort: skip
from trainyard.recipes.core.sinks import lines, open_sinks  # isort: skip

PROJECT = "trainyard-tests"
BLOCK = 32 << 10
CONFIG = {"seed": 3, "adam.learning_rate": 1e-3, "load": "", "sinks": ["x", "y"]}


def values(step):
    return {"loss": 4.0 - step, "held_out/reward": step / 4, "optim/grad-norm": 0.5, "eval/a.b/pass@1": step / 8}


def plain(step):
    """The same for services whose names have no @."""
    return {key.replace("@", "_at_"): value for key, value in values(step).items()}


def interrupted(name, folder):
    """A run of three steps whose checkpoint is after the first, and which goes on from there to step 4."""
    for first, last, config in ((0, 3, CONFIG), (1, 4, CONFIG | {"steps": 4})):
        sinks = open_sinks([name], PROJECT, folder, first, config)
        for step in range(first, last):
            for sink in sinks:
                sink.write(step, values(step))
        for sink in sinks:
            sink.close()
    assert [(line["step"], line["loss"]) for line in lines(folder / "metrics.jsonl")] == [(at, 4.0 - at) for at in range(4)]


def test_a_sink_whose_package_is_missing_is_named(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="unknown sink 'paper'; available: wandb, tensorboard, mlflow"):
        open_sinks(["paper"], PROJECT, tmp_path, 0, CONFIG)
    monkeypatch.setitem(sys.modules, "wandb", None)
    for name in ("wandb", "mlflow", "tensorboardX", "torch", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    for name, package in (("wandb", "wandb"), ("mlflow", "mlflow"), ("tensorboard", "tensorboardX")):
        message = f"sinks: the package {package} is not installed; run: pip install {package}$"
        with pytest.raises(ConfigError, match=message):
            open_sinks([name], PROJECT, tmp_path, 0, CONFIG)
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=refuse))
    with pytest.raises(ConfigError, match="wandb: no account here"):
        open_sinks(["wandb"], PROJECT, tmp_path, 0, CONFIG)


def refuse(**_):
    raise RuntimeError("no account here")


def test_tensorboard(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    interrupted("tensorboard", tmp_path)
    events = reader.EventAccumulator(str(tmp_path / "tensorboard"), purge_orphaned_data=True).Reload()
    assert set(events.Tags()["scalars"]) == plain(0).keys()
    for key in plain(0):
        assert [(event.step, event.value) for event in events.Scalars(key)] == [(at, plain(at)[key]) for at in range(4)]


def test_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", exc_type=ImportError)
    # Newer versions want a database, whose packages a small installation lacks.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    interrupted("mlflow", tmp_path)
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name(PROJECT).experiment_id])
    assert run.info.status == "FINISHED" and run.info.run_name == tmp_path.name
    assert run.data.params == {key: str(value) for key, value in CONFIG.items()}
    assert run.data.metrics == plain(3)
    history = {(one.step, one.value) for one in client.get_metric_history(run.info.run_id, "loss")}
    assert history == {(at, 4.0 - at) for at in range(4)}


def test_wandb(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    interrupted("wandb", tmp_path)
    found, runs = {}, []
    for path in sorted(tmp_path.glob("wandb/offline-run-*/*.wandb")):
        for record in complete(path, messages.Record):
            if record.HasField("run"):
                runs.append((record.run.project, record.run.display_name, record.run.run_id))
            if record.HasField("history"):
                row = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
                found.setdefault(row["_step"], {key: row[key] for key in values(0)})
    assert found == {at: values(at) for at in range(4)}
    assert set(runs) == {(PROJECT, tmp_path.name, (tmp_path / "wandb.txt").read_text())}, "one run, not two"


def complete(path, kind):
    """The records of a file, once the process that writes it has written that of its end."""
    for _ in range(300):
        found = [kind.FromString(content) for content in logged(path.read_bytes())]
        if found and found[-1].HasField("exit"):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{path} has no end")


def logged(content):
    """The records of a file of an offline run: after a header of 7 bytes the log format of LevelDB, blocks of 32 KiB
    with pieces that begin with checksum, length and kind (whole, first, middle, last)."""
    at, record = 7, b""
    while at + 7 <= len(content):
        left = BLOCK - at % BLOCK
        _, size, kind = struct.unpack_from("<IHB", content, at) if left >= 7 else (0, 0, 0)
        if kind == 0:
            at += left
            continue
        record += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield record
            record = b""
