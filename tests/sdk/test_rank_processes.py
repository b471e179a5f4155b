"""Ranks that are processes: the bits of ranks that are threads, and what happens when one of them is lost."""

import subprocess

import numpy as np
import pytest
from tinker import types

import cuda_device
import postgres
from helpers import ADAM, TOKENS, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, prompt, wait_until
from process import PATIENCE
from rank_processes import RankCluster
from server import BINARY, Server, engine_flags

pytestmark = [
    pytest.mark.deployments("sqlite"),
    pytest.mark.ranks(2),
    pytest.mark.timeout(300),
]
BATCH = [datum(TOKENS * 3), datum(TOKENS[::-1] * 2)]
STEPS, STRUCK = (4, (1, 2)) if cuda_device.is_simulated() else (12, (3, 8))
"""Steps of a program, and those before which a rank is killed."""


@pytest.fixture(params=["tp=2", "dp=2"])
def ranks(request, tmp_path, postgres_server):
    with postgres.database(postgres_server()) as database:
        cluster = RankCluster(tmp_path, database, layout=request.param)
        try:
            yield cluster.start()
        finally:
            cluster.close()


def program(deployment, before_step=lambda step: None):
    """Losses, samples with their log-probabilities and final log-probabilities of a user's program."""
    with client(deployment) as service:
        run = lora(service, rank=4, seed=3)
        losses = []
        for step in range(STEPS):
            before_step(step)
            trained = run.forward_backward(BATCH, "cross_entropy")
            run.optim_step(ADAM)
            losses.append(trained.result(WAIT).metrics["loss:sum"])
        path = run.save_weights_for_sampler("final").result(WAIT).path
        sampler = service.create_sampling_client(model_path=path).result(WAIT)
        params = types.SamplingParams(max_tokens=12, seed=1, stop=[])
        sampled = sampler.sample(prompt(TOKENS), 2, params).result(WAIT).sequences
        bits = [np.asarray(sequence.logprobs, np.float32) for sequence in sampled]
        return losses, [sequence.tokens for sequence in sampled], bits + logprobs(forward(run, BATCH))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The same program on ranks that are threads, by layout."""
    found = {}
    for layout in ("tp=2", "dp=2"):
        server = Server(tmp_path_factory.mktemp("threads"), flags=["--parallel", layout]).start()
        found[layout] = program(server)
        assert server.stop() == 0
    return found


@pytest.fixture
def expected(outcomes, ranks):
    return outcomes[ranks.layout]


def assert_same(outcome, expected):
    assert outcome[:2] == expected[:2]
    assert_bits_equal(outcome[2], expected[2])


def test_processes_compute_what_threads_do(ranks, expected):
    assert_same(program(ranks), expected)
    assert ranks.stop() == 0, ranks.tail()
    assert "panicked at" not in ranks.text()
    assert "shutting down when rank 0 has ended" in ranks.workers[1].text()


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_costs_no_bit(ranks, expected, victim):
    """The other one notices and ends as well; the worker comes back and goes on from what is durable."""
    ranks.supervise()

    def strike(step):
        if step in STRUCK:
            ranks.workers[victim].kill()

    assert_same(program(ranks, strike), expected)
    killed, other = ranks.workers[victim].name, ranks.workers[1 - victim].name
    assert [name for name, code in ranks.ended if code == -9] == [killed] * 2
    assert [code for name, code in ranks.ended if name == other] == [1, 1], ranks.ended
    lost = f"rank {victim} was lost"
    assert lost in ranks.workers[1 - victim].text(), ranks.tail()
    assert ranks.stop() == 0, ranks.tail()


def test_a_rank_is_missed_while_nothing_is_to_be_done(ranks):
    ranks.workers[1].kill()
    wait_until(lambda: not ranks.workers[0].alive(), ranks.tail, limit=60)
    assert "rank 1 was lost: its connection was closed" in ranks.workers[0].text()


def refusal(tmp_path, database, *flags) -> str:
    command = [BINARY, "worker", *engine_flags(None, "f32"), "--database-url", database, "--data-dir", tmp_path / "other"]
    command += ["--storage", tmp_path / "storage", *flags]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60 * PATIENCE, cwd=tmp_path)
    assert done.returncode != 0
    return done.stderr


def test_a_rank_that_does_not_exist_is_refused(tmp_path):
    database = "postgres://nobody@127.0.0.1:1/none"
    meeting = ["--parallel", "tp=2", "--rendezvous", "127.0.0.1:1"]
    assert "--rank: 2, but the ranks of --parallel tp=2 are 0 to 1" in refusal(tmp_path, database, *meeting, "--rank", "2")
    assert "--rendezvous: requires --rank" in refusal(tmp_path, database, *meeting)


def test_ranks_that_compute_differently_are_refused(tmp_path, postgres_server):
    with postgres.database(postgres_server()) as database:
        cluster = RankCluster(tmp_path, database)
        follower = cluster.workers[1]
        follower.command[follower.command.index("f32")] = "bf16"
        try:
            for process in cluster.processes:
                process.start()
            wait_until(lambda: not any(process.alive() for process in cluster.workers), cluster.tail, limit=60)
            for process in cluster.workers:
                assert "rank 1: its weights are bf16, those of rank 0 f32" in process.text()
        finally:
            cluster.close()
