"""Metrics of runs: what the SDK was told can be read afterwards, as curves and as files, beside what is recorded for comparisons."""

import io
import json

import httpx
import pyarrow.parquet
import pytest

from helpers import ADAM, ALICE, BOB, TWO_TENANTS, WAIT, client, datum, lora
from helpers import TOKENS as TEXT

CONFIG = TWO_TENANTS
STEPS = 6
WEIGHTS = [0.0, 0.5] + [1.0] * (len(TEXT) - 3)
PER_TOKEN = "loss:per_weighted_token"


def recorded(told) -> dict:
    """The metrics of a request, with what only the server records."""
    if "loss:sum" in told:
        return told | {PER_TOKEN: pytest.approx(told["loss:sum"] / sum(WEIGHTS))}
    return told | {"learning_rate": ADAM.learning_rate}


def example():
    return datum(TEXT[:-1], target_tokens=TEXT[1:], weights=WEIGHTS)


@pytest.fixture(scope="module")
def trained(server):
    """A run, and what its requests returned."""
    with client(server, ALICE) as service:
        run = lora(service)
        passes, steps = [], []
        for _ in range(STEPS):
            forward, step = run.forward_backward([example()], "cross_entropy"), run.optim_step(ADAM)
            passes.append(forward.result(WAIT).metrics)
            steps.append(step.result(WAIT).metrics)
        evaluated = run.forward([example()], "cross_entropy").result(WAIT).metrics
        yield run.model_id, passes, steps, evaluated


def read(server, run, key=ALICE, path="metrics", **query) -> httpx.Response:
    url = f"{server.url}/api/v1/training_runs/{run}/{path}"
    return httpx.get(url, params=query, headers={"x-api-key": key}, timeout=30)


def curve(answer, kind, metric) -> dict:
    (found,) = [s for s in answer.json()["series"] if (s["kind"], s["metric"]) == (kind, metric)]
    return found


def test_curves_have_what_the_client_was_told(server, trained):
    run, passes, steps, evaluated = trained
    answer = read(server, run)
    assert answer.json()["requests"] == 2 * STEPS + 1
    for name in passes[0]:
        found = curve(answer, "forward_backward", name)
        assert found["values"] == [metrics[name] for metrics in passes]
        assert found["steps"] == list(range(STEPS)) and found["recorded"] == STEPS
        assert found["times"] == sorted(found["times"])
    for name in steps[0]:
        found = curve(answer, "optim_step", name)
        assert (found["steps"], found["values"]) == (list(range(STEPS)), [metrics[name] for metrics in steps])
    assert curve(answer, "forward", "loss:sum")["values"] == [evaluated["loss:sum"]]
    per_token = [metrics["loss:sum"] / sum(WEIGHTS) for metrics in passes]
    assert PER_TOKEN not in passes[0] and curve(answer, "forward_backward", PER_TOKEN)["values"] == pytest.approx(per_token)
    assert curve(answer, "optim_step", "learning_rate")["values"] == [ADAM.learning_rate] * STEPS
    assert curve(answer, "forward", "loss:sum")["steps"] == [STEPS]


def test_a_range_and_some_metrics(server, trained):
    run, passes, *_ = trained
    answer = read(server, run, metrics="loss:sum", kind="forward_backward", from_step=2, to_step=3)
    (only,) = answer.json()["series"]
    assert only["values"] == [metrics["loss:sum"] for metrics in passes[2:4]]
    for query, field in [
        ({"points": 9}, "points"), ({"by": "size"}, "by"), ({"kind": "sample"}, "kind"), ({"from_step": "x"}, "from_step"),
        ({"to_time": "soon"}, "to_time"),
    ]:  # fmt: skip
        refused = read(server, run, **query)
        assert refused.status_code == 400 and field in refused.json()["detail"], refused.text


def test_exports_are_the_same_rows(server, trained):
    run, passes, steps, evaluated = trained
    lines = [json.loads(line) for line in read(server, run, path="metrics/export").text.splitlines()]
    expected = [metrics for pair in zip(passes, steps, strict=True) for metrics in pair] + [evaluated]
    assert [line["metrics"] for line in lines] == [recorded(told) for told in expected]
    assert [line["step"] for line in lines] == [step for step in range(STEPS) for _ in "ab"] + [STEPS]
    exported = read(server, run, path="metrics/export", format="parquet")
    assert exported.headers["content-type"] == "application/vnd.apache.parquet"
    table = pyarrow.parquet.read_table(io.BytesIO(exported.content))
    assert table.column_names[:4] == ["step", "seq_id", "kind", "time"]
    for row, line in zip(table.to_pylist(), lines, strict=True):
        assert (row["step"], row["seq_id"], row["kind"]) == (line["step"], line["seq_id"], line["kind"])
        assert row["time"].isoformat()[:19] == line["time"][:19] and row["time"].utcoffset().total_seconds() == 0
        assert {name: row[name] for name in table.column_names[4:] if row[name] is not None} == line["metrics"]
    empty = read(server, run, path="metrics/export", format="parquet", from_step=1000)
    assert pyarrow.parquet.read_table(io.BytesIO(empty.content)).num_rows == 0


def test_another_tenant_reads_nothing(server, trained):
    run, *_ = trained
    for path in ("metrics", "metrics/export"):
        foreign, missing = read(server, run, BOB, path), read(server, "none:train:0", BOB, path)
        assert foreign.status_code == missing.status_code == 404
        assert foreign.json()["detail"].replace(run, "X") == missing.json()["detail"].replace("none:train:0", "X")


@pytest.mark.deployments("sqlite")
def test_metrics_survive_a_restart(own):
    with client(own) as service:
        run = lora(service)
        told = run.forward_backward([datum(TEXT)], "cross_entropy").result(WAIT).metrics
        assert own.stop() == 0
        own.start()
        answer = httpx.get(
            f"{own.url}/api/v1/training_runs/{run.model_id}/metrics", headers={"x-api-key": "tml-x"}, timeout=30
        )
        assert curve(answer, "forward_backward", "loss:sum")["values"] == [told["loss:sum"]]
