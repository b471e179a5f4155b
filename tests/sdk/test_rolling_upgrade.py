"""Databases that a newer release has migrated."""


import httpx
import pytest

import postgres as pg
from deployment import launch
from helpers import TOKENS, client, datum, lora, train, wait_until

pytestmark = pytest.mark.deployments("sqlite")

FUTURE = (
    "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)"
    " VALUES (99, 'future', TRUE, '', 0)"
)


def test_processes_work_on_after_a_migration_that_only_adds_and_end_after_another(tmp_path, postgres_server):
    """After the first, running and new processes work; after the second each ends by itself and says why."""
    with launch("cluster", tmp_path, postgres_server) as cluster:
        with client(cluster) as service:
            run = lora(service)
            train(run, [datum(TOKENS)])
            pg.query(cluster.database, FUTURE)
            for process in [cluster.workers[0], cluster.apis[0]]:
                assert process.stop() == 0
                process.start()
                train(run, [datum(TOKENS)])
            cluster.wait_until_ready()
            assert httpx.get(f"{cluster.api_urls[0]}/readyz").json()["checks"]["schema"] == "ok"
        pg.query(cluster.database, "UPDATE schema_compatibility SET oldest_program = 99")
        wait_until(lambda: not any(process.alive() for process in cluster.processes), cluster.tail, limit=60)
        for process in cluster.processes:
            assert process.child.returncode == 1, process.tail()
            assert "use a newer program" in process.text(), process.tail()
