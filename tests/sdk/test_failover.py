"""A primary and a standby of PostgreSQL that change places while programs train: clients meet a delay, and no bit differs."""

import contextlib
import threading
import time

import httpx
import pytest

import postgres as pg
from deployment import launch
from helpers import wait_until
from proxy import Proxy
from workload import STEPS, work

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(900)]

SETTINGS = ("wal_level=replica", "wal_keep_size=256MB", "hot_standby=on")
LED_ASTRAY_SECONDS = 4
"""For so long the address leads to the server that was demoted."""


class Pair:
    """Two servers behind one address."""

    def __init__(self):
        self.primary = pg.Cluster(SETTINGS)
        self.standby = None
        self.address = Proxy(self.primary.port)

    def start(self):
        self.primary.start()
        self.standby = pg.Cluster(SETTINGS, copied_from=self.primary).start()
        self.address.start()
        return self

    @property
    def url(self) -> str:
        """Where the primary should be."""
        return f"postgres://{pg.SUPERUSER}@127.0.0.1:{self.address.port}/postgres"

    def switch_over(self, while_astray):
        """Both change places. The address goes on leading to the one that is the standby now, and answers reads."""
        former, self.primary = self.primary, self.standby
        former.stop()
        self.primary.promote()
        former.demote(self.primary)
        self.standby = former.start()
        time.sleep(LED_ASTRAY_SECONDS)
        while_astray()
        # What is connected to the standby stays connected.
        self.address.targets = (self.primary.port,)

    def fail_over(self):
        """The primary loses its power, and the standby takes its place. No commit that it acknowledged is missing there."""
        pg.query(self.primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        pg.query(self.primary.url, "SELECT pg_reload_conf()")
        synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until(lambda: pg.query(self.primary.url, synchronous) == [["1"]], self.primary.process.tail)
        # Commits from before were not waited for.
        sent = "SELECT bool_and(flush_lsn >= pg_current_wal_flush_lsn()) FROM pg_stat_replication"
        wait_until(lambda: pg.query(self.primary.url, sent) == [["t"]], self.primary.process.tail)
        self.primary.kill()
        time.sleep(1)
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        self.address.targets = (self.primary.port,)

    def close(self):
        self.address.stop()
        for cluster in (self.primary, self.standby):
            if cluster is not None:
                cluster.close()


def readiness(url: str) -> tuple[int, str]:
    answer = httpx.get(f"{url}/readyz", timeout=10)
    return answer.status_code, answer.json()["checks"]["store"]


def test_training_goes_on_with_the_same_bits_when_the_primary_changes(tmp_path, undisturbed):
    with contextlib.ExitStack() as stack:
        pair = Pair()
        stack.callback(pair.close)
        pair.start()
        cluster = stack.enter_context(launch("cluster", tmp_path, lambda: pair.url))
        astray = []

        def while_astray():
            astray.extend(readiness(url) for url in cluster.api_urls)

        disturbances = {STEPS // 5: lambda: pair.switch_over(while_astray), STEPS * 3 // 5: pair.fail_over}
        running = []

        def disturb(step):
            if step in disturbances:
                for former in running:
                    former.join()
                # The program goes on meanwhile.
                running.append(Disturbance(disturbances[step]))

        outcome = work(cluster, disturb)
        for disturbance in running:
            disturbance.join()
        outcome.assert_equal(undisturbed)
        # A server that tries to write right then answers that the store does not answer.
        told = {"can't be written", "does not answer"}
        assert len(running) == 2 and len(astray) == 2
        assert all(status == 503 and store in told for status, store in astray), astray
        wait_until(lambda: all(readiness(url) == (200, "ok") for url in cluster.api_urls), cluster.tail, limit=60)
        assert cluster.stop() == 0, cluster.tail()
        assert "panicked at" not in cluster.text()


class Disturbance:
    """Something that happens beside the program; its error is raised where it is joined."""

    def __init__(self, action):
        self._action = action
        self._error = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            self._action()
        except Exception as error:  # noqa: BLE001 - raised where it is joined
            self._error = error

    def join(self):
        self._thread.join()
        if self._error is not None:
            raise self._error
