"""Workers that are partitioned or paused lose their leases to others, and their late writes change nothing."""

import os
import time

import pytest

import postgres as pg
from deployment import LEASE_SECONDS, launch
from helpers import ADAM, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora
from process import PATIENCE
from workload import STEPS, work

CUT_SECONDS = float(os.environ.get("TRAINYARD_PARTITION_SECONDS", str(3 * LEASE_SECONDS)))

BATCHES = [[datum([5 + n, 17, 250, 3 * i, 44, 101, 7, 499]) for i in range(32)] for n in range(8)]

# What a client can see of runs, their requests and their checkpoints.
CATALOGUE = {
    "runs": "SELECT id, tenant, session_id, spec, state, failure, corrupted, user_metadata, created_at, last_request_at"
    " FROM runs ORDER BY id",
    "requests": "SELECT id, run_id, seq_id, kind, state, encoding, result, result_file, error, finished_at"
    " FROM requests ORDER BY id",
    "checkpoints": "SELECT * FROM checkpoints ORDER BY 1, 2, 3",
}

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(600)]


@pytest.fixture
def cluster(tmp_path, postgres_server):
    with launch("cluster", tmp_path, postgres_server) as running:
        yield running
        assert running.stop() == 0, running.tail()
        assert "panicked at" not in running.text(), running.tail(100)


def holder(cluster, run) -> int:
    """The number of the worker that has the run."""
    ((worker,),) = pg.query(cluster.database, f"SELECT worker_id FROM runs WHERE id = '{run.model_id}'")
    ids = [(cluster.folder / process.name / "worker-id").read_text().strip() for process in cluster.workers]
    return ids.index(worker)


def catalogue(cluster) -> dict:
    return {name: pg.query(cluster.database, sql) for name, sql in CATALOGUE.items()}


def files(cluster) -> dict:
    """Contents of the checkpoints, as far as they are complete."""
    found = [path for path in cluster.storage.rglob("*") if path.is_file() and "checkpoints" in path.parts]
    return {path: path.read_bytes() for path in found}


def submit(run, batches) -> list:
    """A step over several batches."""
    passes = [run.forward_backward(batch, "cross_entropy") for batch in batches]
    run.optim_step(ADAM)
    return passes


def losses(passes) -> list[float]:
    return [future.result(WAIT).metrics["loss:sum"] for future in passes]


def test_a_worker_that_slept_beyond_its_lease_changes_nothing(cluster):
    """It is paused in the middle of its work, and another takes over; resumed, it neither completes nor writes."""
    steps = BATCHES[:1], BATCHES[1:6], BATCHES[6:]
    with client(cluster) as service:
        calm, struck = lora(service), lora(service)
        expected = [losses(submit(calm, step)) for step in steps]
        found = [losses(submit(struck, steps[0]))]
        sleeper = holder(cluster, struck)
        queue = submit(struck, steps[1])
        cluster.workers[sleeper].freeze()
        found.append(losses(queue))
        assert holder(cluster, struck) != sleeper
        struck.save_state("retained").result(WAIT)
        before = catalogue(cluster), files(cluster)
        cluster.workers[sleeper].thaw()
        wait_for_lease(cluster, sleeper)
        assert catalogue(cluster) == before[0]
        assert files(cluster) == before[1]
        # It has re-registered, and acquires the run in its recovered state, not in its own.
        cluster.workers[1 - sleeper].kill()
        found.append(losses(submit(struck, steps[2])))
        assert found == expected
        assert_bits_equal(logprobs(forward(struck, BATCHES[0])), logprobs(forward(calm, BATCHES[0])))
        # A signal to stop would find a process that can't take it yet.
        cluster.workers[1 - sleeper].start()
        wait_for_lease(cluster, 1 - sleeper)


def wait_for_lease(cluster, number, limit=60.0):
    """Until the worker has sent a heartbeat, and for one lease more, in which a stale write would arrive."""
    identity = (cluster.folder / cluster.workers[number].name / "worker-id").read_text().strip()
    sql = f"SELECT expires_at FROM workers WHERE id = '{identity}'"
    first, deadline = pg.query(cluster.database, sql), time.monotonic() + limit * PATIENCE
    while pg.query(cluster.database, sql) == first:
        assert time.monotonic() < deadline, f"{identity} does not come back:\n{cluster.tail()}"
        time.sleep(0.1)
    time.sleep(LEASE_SECONDS)


def test_work_goes_on_while_a_worker_is_cut_off(cluster, undisturbed):
    """Between two steps one of the workers loses its connection to the database for long: no bit differs."""
    events = {}

    def disturb(step):
        if step == STEPS // 5:
            cluster.networks[0].cut()
            events["cut"] = time.monotonic()
        if step == STEPS * 3 // 5:
            time.sleep(max(0.0, events["cut"] + CUT_SECONDS - time.monotonic()))
            cluster.networks[0].heal()

    undisturbed.assert_equal(work(cluster, disturb))
