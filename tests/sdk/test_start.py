"""The start of a server whose database is away, or goes away meanwhile."""

import time

import pytest

import postgres as pg
from deployment import launch
from helpers import client, datum, lora, train
from server import healthy


@pytest.fixture
def cluster():
    cluster = pg.Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.mark.deployments("sqlite")
@pytest.mark.parametrize("kind", ["postgres", "cluster"])
def test_a_start_waits_for_the_database(kind, tmp_path, cluster):
    """Servers and workers that start before their database become ready when it does."""
    with launch(kind, tmp_path, lambda: cluster.url) as deployment:
        assert deployment.stop() == 0
        cluster.kill()
        for process in deployment.processes:
            process.start()
        time.sleep(2)
        assert all(process.alive() for process in deployment.processes), deployment.tail()
        assert not healthy(deployment.url)
        cluster.start()
        deployment.wait_until_ready()
        with client(deployment) as service:
            train(lora(service), [datum([1, 2, 3])])


@pytest.mark.deployments("sqlite")
def test_a_start_survives_a_database_that_restarts(tmp_path, cluster):
    """At whatever step of the start the database is killed."""
    with launch("postgres", tmp_path, lambda: cluster.url) as deployment:
        for moment in range(12):
            deployment.kill()
            deployment.processes[0].start()
            time.sleep(0.04 * moment)
            cluster.kill()
            cluster.start()
            deployment.wait_until_ready()


@pytest.mark.deployments("sqlite")
def test_a_signal_ends_the_wait_for_the_database(tmp_path, cluster):
    with launch("postgres", tmp_path, lambda: cluster.url) as deployment:
        deployment.kill()
        cluster.kill()
        deployment.processes[0].start()
        time.sleep(2)
        code = deployment.stop(limit=5)
        cluster.start()
        assert code == 0, deployment.tail()
