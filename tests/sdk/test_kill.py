"""The kill test: training and sampling continue, bit for bit, while server processes are killed at random."""

import os
import random

import pytest

import postgres as pg
from deployment import KINDS, launch
from faults import Killer, Victim
from workload import STEPS, work

STRIKES = 20

# Runs are saved and their log is truncated often enough that recoveries both restore and replay.
FLAGS = ["--snapshot-tokens", "200"]
SEED = int(os.environ.get("TRAINYARD_KILL_SEED", "20260401"))


@pytest.mark.deployments("sqlite")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_training_survives_kills_at_random_moments(kind, tmp_path, undisturbed):
    """Losses, samples and final weights are equal to the bit; the client meets no error."""
    database = pg.Cluster() if kind != "sqlite" else None
    try:
        if database:
            database.start()
        with launch(kind, tmp_path, lambda: database.url, flags=FLAGS) as struck:
            victims = [Victim(p.name, p.kill, p.start) for p in struck.processes]
            if database:
                victims.append(Victim("postgres", database.kill, database.start))
            chosen = set(random.Random(SEED).sample(range(STEPS), STRIKES))
            with Killer(victims, SEED) as killer:
                outcome = work(struck, lambda step: killer.strike(within=0.15) if step in chosen else None)
            assert len(killer.killed) >= STRIKES and set(killer.killed) == {victim.name for victim in victims}
            outcome.assert_equal(undisturbed)
            struck.wait_until_ready()
            assert "run saved" in struck.text()
            assert struck.stop() == 0, struck.tail()
            assert "panicked at" not in struck.text(), struck.tail(100)
    finally:
        if database:
            database.close()
