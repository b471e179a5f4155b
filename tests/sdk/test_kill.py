"""The kill test: training and sampling continue, bit for bit, while server processes are killed at random."""

import os
import random
import threading

import pytest

import postgres as pg
from deployment import KINDS, launch
from faults import Killer, Victim
from helpers import ADAM, TOKENS, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora
from server import SMOL, Server, smol_path
from workload import STEPS, work

STRIKES = STEPS // 2

# Runs are saved and their log is truncated often enough that recoveries both restore and replay.
FLAGS = ["--snapshot-tokens", "200"]
LAYOUTS = ["tp=2", "dp=2"]
SEED = int(os.environ.get("TRAINYARD_KILL_SEED", "20260401"))


@pytest.mark.deployments("sqlite")
@pytest.mark.timeout(900)
@pytest.mark.slow_layout("in the cluster a PostgreSQL server is killed too", "postgres")
@pytest.mark.parametrize("kind", KINDS)
def test_training_survives_kills_at_random_moments(kind, tmp_path, undisturbed):
    """Losses, samples and final weights are equal to the bit; the client meets no error."""
    survive(kind, tmp_path, undisturbed, FLAGS)


@pytest.mark.deployments("sqlite")
@pytest.mark.timeout(900)
@pytest.mark.slow_layout("each layout and each kind of deployment has another one", "tp=2-sqlite", "dp=2-cluster")
@pytest.mark.parametrize("kind", ["sqlite", "cluster"])
def test_workers_of_several_ranks_survive_kills(kind, tmp_path, undisturbed_on, layout):
    """What one layout computes undisturbed."""
    survive(kind, tmp_path, undisturbed_on(layout), [*FLAGS, *layout])


def survive(kind, tmp_path, undisturbed, flags):
    database = pg.Cluster() if kind != "sqlite" else None
    try:
        if database:
            database.start()
        with launch(kind, tmp_path, lambda: database.url, flags=flags) as struck:
            victims = [Victim(p.name, p.kill, p.start) for p in struck.processes]
            if database:
                victims.append(Victim("postgres", database.kill, database.start))
            chosen = set(random.Random(SEED).sample(range(STEPS), STRIKES))
            with Killer(victims, SEED) as killer:
                outcome = work(struck, lambda step: killer.strike(within=0.15) if step in chosen else None)
            assert len(killer.killed) >= STRIKES and set(killer.killed) == {victim.name for victim in victims}
            outcome.assert_equal(undisturbed)
            struck.wait_until_ready()
            assert "run snapshot saved" in struck.text()
            assert struck.stop() == 0, struck.tail()
            assert "panicked at" not in struck.text(), struck.tail(100)
    finally:
        if database:
            database.close()


KILLS = {"few": 8, "many": 40}
KILLED_STEPS = {"few": 40, "many": 100}
"""So many that a fast machine is still training when the first kills come."""
LONGEST_PAUSES = {"few": 2, "many": 4}
"""Seconds between kills, at most."""
BATCH = [datum(TOKENS * 3), datum(TOKENS[::-1] * 3)]


def train_smol(server, steps):
    """Losses and final log-probabilities of a run of the real model; every request is submitted ahead."""
    with client(server) as service:
        run = lora(service, model=SMOL, rank=8, seed=3)
        passes = []
        for _ in range(steps):
            passes.append(run.forward_backward(BATCH, "cross_entropy"))
            run.optim_step(ADAM)
        losses = [output.result(5 * WAIT).metrics["loss:sum"] for output in passes]
        return losses, logprobs(forward(run, BATCH))


@pytest.mark.deployments("sqlite")
@pytest.mark.timeout(900)
@pytest.mark.real_device("a model of 135 million parameters takes hours")
@pytest.mark.slow_layout("a shorter run is killed as often", "many")
@pytest.mark.parametrize("kills_at_most", KILLS)
def test_kills_from_outside_at_any_rate_fail_no_request(tmp_path, kills_at_most):
    """A server that is killed again and again, at random moments, makes progress, and ends with an undisturbed run's numbers."""
    most, steps, pause = (of[kills_at_most] for of in (KILLS, KILLED_STEPS, LONGEST_PAUSES))
    folders = [tmp_path / name for name in ("calm", "struck")]
    for folder in folders:
        folder.mkdir()
    calm, struck = [Server(folder, models={SMOL: smol_path()}, dtype="bf16") for folder in folders]
    expected = train_smol(calm.start(), steps)
    assert calm.stop() == 0
    struck.start()
    done = threading.Event()
    chance = random.Random(SEED)
    kills = 0

    def disturb():
        nonlocal kills
        while kills < most and not done.wait(chance.uniform(0.5, pause)):
            struck.kill()
            kills += 1
            struck.processes[0].start()

    killer = threading.Thread(target=disturb)
    killer.start()
    try:
        losses, final = train_smol(struck, steps)
    finally:
        done.set()
        killer.join()
    assert kills > most / 4
    assert losses == expected[0]
    assert_bits_equal(final, expected[1])
    struck.wait_until_ready()
    assert struck.stop() == 0, struck.tail()
    assert "panicked at" not in struck.text(), struck.tail(100)
