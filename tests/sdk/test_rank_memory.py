"""What each rank of the real model holds, beside what `trainyard plan` predicts."""

import json
import pathlib
import subprocess
import time

import pytest

import postgres
from helpers import WAIT, client, datum, lora, train
from rank_processes import RankCluster
from server import BINARY, SMOL, TINY, TINY_MODELS, smol_path

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(400)]
LORA = 32
BATCH = [datum(list(range(17)))]
IDLE_SECONDS = 12
"""Until a process without work has returned what it does not use."""


def planned(layout) -> float:
    """MiB of each rank, but what a pass takes while it runs."""
    command = [BINARY, "plan", "--model", smol_path(), "--parallel", layout, "--rank", LORA, "--json"]
    # Which only decide times.
    command += ["--device", "cpu", "--flops", "1e11", "--bandwidth", "1e10", "--memory-mib", "65536"]
    found = subprocess.run([str(word) for word in command], check=True, capture_output=True)
    memory = json.loads(found.stdout)["plan"]["memory"]
    # Of two gradients one is that of a request in progress.
    lasting = [memory[kind] for kind in ("base_weights", "run_weights", "masters", "moments")]
    return (sum(lasting) + memory["gradients"] / 2) / 2**20


def held(process) -> float:
    """MiB of its own, those of files apart."""
    status = pathlib.Path(f"/proc/{process.child.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 2**10


def measured(folder, database, layout, model, path) -> list[float]:
    """Of each rank that has the model, and a run with moments and a gradient that waits for its step."""
    folder.mkdir()
    cluster = RankCluster(folder, database, models={model: path}, dtype="bf16", layout=layout)
    try:
        with client(cluster.start()) as service:
            run = lora(service, model=model, rank=LORA)
            train(run, BATCH)
            run.forward_backward(BATCH, "cross_entropy").result(WAIT)
            time.sleep(IDLE_SECONDS)
            return [held(process) for process in cluster.workers]
    finally:
        cluster.close()


@pytest.mark.parametrize("layout", ["tp=3", "dp=2"])
def test_a_rank_holds_what_is_planned(tmp_path, postgres_server, layout):
    """Within 10 %, beyond what its process takes for a model that is next to nothing."""
    plan = planned(layout)
    with postgres.database(postgres_server()) as database:
        empty = measured(tmp_path / "tiny", database, "dp=2", TINY, TINY_MODELS[TINY])
    with postgres.database(postgres_server()) as database:
        found = measured(tmp_path / "smol", database, layout, SMOL, smol_path())
    print(f"{layout}: {plan:.0f} MiB planned, {[round(mib) for mib in found]} held, {[round(mib) for mib in empty]} without")
    for rank, mib in enumerate(found):
        # The first rank has what talks to the database, too.
        of_model = mib - empty[min(rank, 1)]
        assert abs(of_model / plan - 1) < 0.1, f"rank {rank}: {of_model:.0f} MiB held, {plan:.0f} planned"
