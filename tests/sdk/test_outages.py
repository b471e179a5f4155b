"""A PostgreSQL server that answers nothing, and connections to it that were lost without a word."""

import contextlib
import time

import pytest

import postgres as pg
from deployment import launch
from helpers import client, datum, lora, train, wait_until
from server import Server
from wire import Wire
from workload import STEPS, work

BATCH = [datum([5, 17, 250, 3, 44, 101, 7, 499])]
CALL_SECONDS = 20
"""What is promised for a call; a busy machine gets half of it more."""
FORGET_SECONDS = 1
"""After so long a server asks its database again whether there are keys."""

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(600)]


@pytest.fixture
def own_postgres():
    cluster = pg.Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.close()


def test_a_silent_database_is_answered_with_503_and_work_goes_on_once_it_answers(tmp_path, own_postgres):
    database = contextlib.ExitStack()
    server = Server(tmp_path, database=database.enter_context(pg.database(own_postgres.url)))
    try:
        server.start()
        with client(server) as service:
            run = lora(service)
            before = train(run, BATCH).metrics["loss:sum"]
            wire = Wire(server, timeout=CALL_SECONDS * 1.5)
            body = {"tags": [], "user_metadata": {}, "sdk_version": "0.38.0", "type": "create_session"}
            for _ in range(2):
                time.sleep(FORGET_SECONDS)
                own_postgres.freeze()
                try:
                    assert wire.post("create_session", body).status_code == 503
                    assert wire.http.get("training_runs").status_code == 503
                finally:
                    own_postgres.thaw()
                wait_until(lambda: wire.post("create_session", body).status_code == 200, server.tail, limit=60)
            assert train(run, BATCH).metrics["loss:sum"] < before
        assert server.stop() == 0
    finally:
        server.close()
        database.close()


def test_work_goes_on_when_connections_are_lost_without_a_word(tmp_path, postgres_server, undisturbed):
    """Those of both workers, between two steps: new ones can be made, and no bit differs."""

    with launch("cluster", tmp_path, postgres_server) as cluster:

        def disturb(step):
            if step in (STEPS // 5, STEPS // 2):
                for network in cluster.networks:
                    network.lose()

        undisturbed.assert_equal(work(cluster, disturb))
        assert cluster.stop() == 0, cluster.tail()
