"""Workers that are restarted one after the other under load: clients notice nothing, and next to nothing is repeated."""

import re

import pytest

from deployment import launch
from workload import work

# What a worker logs before it restores a run: how many operations that takes, the reading of the snapshot included.
RESTORES = re.compile(r"restoring run from its snapshot and log.*operations=(\d+)")


# Where a worker gets no processor for longer than its lease, another one repeats what it had.
@pytest.mark.alone
@pytest.mark.deployments("sqlite")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sqlite", "cluster"])
def test_a_rolling_restart_repeats_nothing(kind, tmp_path, postgres_server, undisturbed):
    """Every eight steps another worker is stopped in order and started again, between the requests that it has."""
    with launch(kind, tmp_path, postgres_server) as deployment:
        workers = deployment.workers if kind == "cluster" else deployment.processes

        def restart(step):
            if step % 8 == 5:
                worker = workers[step // 8 % len(workers)]
                assert worker.stop() == 0, worker.tail()
                worker.start()

        undisturbed.assert_equal(work(deployment, restart))
        deployment.wait_until_ready()
        assert deployment.stop() == 0, deployment.tail()
        restores = [int(operations) for operations in RESTORES.findall(deployment.text())]
        assert restores and max(restores) == 1, restores
