"""The kill test: training and sampling go on, bit for bit, while everything that serves them is killed at random."""

import dataclasses
import random

import numpy as np
import pytest
from safetensors.numpy import load_file

import postgres as pg
from deployment import LANDED, launch
from faults import Killer, Victim
from helpers import ADAM, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, prompt
from server import Server
from tinker import types

STEPS = 40
STRIKES = 20
RANKS = (4, 16)
SEED = 20_260_401


@dataclasses.dataclass
class Outcome:
    """Everything that the client was told, and the weights at the end."""

    losses: list[float]
    logprobs: list[np.ndarray]
    samples: list[list[int]]
    sample_logprobs: list[np.ndarray]
    weights: list[dict[str, np.ndarray]]

    def assert_equal(self, other: "Outcome"):
        assert self.losses == other.losses
        assert self.samples == other.samples
        assert_bits_equal(self.logprobs, other.logprobs)
        assert_bits_equal(self.sample_logprobs, other.sample_logprobs)
        for mine, theirs in zip(self.weights, other.weights, strict=True):
            assert mine.keys() == theirs.keys()
            assert_bits_equal([mine[name] for name in mine], [theirs[name] for name in mine])


def batch(number: int, step: int) -> list[types.Datum]:
    rng = np.random.default_rng([number, step])
    return [datum(rng.integers(0, 512, n).tolist()) for n in rng.integers(2, 40, 4)]


def work(deployment, before_step) -> Outcome:
    """What a user's program does: two runs side by side, a new sampler every ten steps, samples from the last ones."""
    outcome = Outcome([], [], [], [], [])
    with client(deployment) as service:
        runs = [lora(service, rank=rank, seed=rank) for rank in RANKS]
        for step in range(STEPS):
            before_step(step)
            if step % 10 == 0:
                samplers = [run.save_weights_and_get_sampling_client() for run in runs]
                samplers = [sampler.result(WAIT) for sampler in samplers]
            passes = []
            for number, run in enumerate(runs):
                passes.append(run.forward_backward(batch(number, step), "cross_entropy"))
                run.optim_step(ADAM)
            params = types.SamplingParams(max_tokens=12, seed=step, stop=[])
            answers = [sampler.sample(prompt([5, 17, step]), 2, params) for sampler in samplers]
            for output in (future.result(WAIT) for future in passes):
                outcome.losses.append(output.metrics["loss:sum"])
                outcome.logprobs += logprobs(output)
            for sequence in (s for answer in answers for s in answer.result(WAIT).sequences):
                outcome.samples.append(sequence.tokens)
                outcome.sample_logprobs.append(np.asarray(sequence.logprobs, np.float32))
        for number, run in enumerate(runs):
            outcome.logprobs += logprobs(forward(run, batch(9, 9)))
            path = run.save_weights_for_sampler(f"final-{number}").result(WAIT).path
            outcome.weights.append(saved(deployment, path))
    return outcome


def saved(deployment, path) -> dict[str, np.ndarray]:
    """The tensors that a sampler checkpoint consists of."""
    (file,) = deployment.storage.rglob(f"{path.rsplit('/', 1)[1]}/adapter_model.safetensors")
    return load_file(file)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Outcome:
    """All in one, on SQLite, with nobody else there."""
    calm = Server(tmp_path_factory.mktemp("calm")).start()
    outcome = work(calm, lambda step: None)
    assert calm.stop() == 0
    return outcome


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", LANDED)
def test_training_survives_kills_at_random_moments(kind, tmp_path, undisturbed):
    """Losses, samples and final weights are equal to the bit; the client meets no error."""
    database = pg.Cluster() if kind != "sqlite" else None
    try:
        if database:
            database.start()
        with launch(kind, tmp_path, lambda: database.url) as struck:
            victims = [Victim(p.name, p.kill, p.start) for p in struck.processes]
            if database:
                victims.append(Victim("postgres", database.kill, database.start))
            chosen = set(random.Random(SEED).sample(range(STEPS), STRIKES))
            with Killer(victims, SEED) as killer:
                outcome = work(struck, lambda step: killer.strike(within=0.15) if step in chosen else None)
            print(f"killed: {' '.join(killer.killed)}")
            assert len(killer.killed) >= STRIKES and set(killer.killed) == {victim.name for victim in victims}
            outcome.assert_equal(undisturbed)
            struck.wait_until_ready()
            assert struck.stop() == 0, struck.tail()
            assert "panicked at" not in struck.text(), struck.tail(100)
    finally:
        if database:
            database.close()
