"""One memory budget: runs that do not fit together take turns, and what can never fit is refused with the numbers."""

import concurrent.futures
import re
import time

import httpx
import numpy as np
import pytest

from helpers import TOKENS, WAIT, client, datum, forward, full, logprobs, lora, refused, sample, train
from server import TINY, Server

TRAINER, SAMPLER = "tml-trainer-0123456789-0123456789", "tml-sampler-0123456789-0123456789"
CONFIG = f"""
[[keys]]
tenant = "trainer"
key = "{TRAINER}"

[[keys]]
tenant = "sampler"
key = "{SAMPLER}"
"""
BUDGET = ["--activation-memory-mib", "2", "--checkpoint-memory-mib", "1", "--kv-memory-mib", "8"]
# Runs get about ten of them; a run of all parameters takes five.
FLAGS = [*BUDGET, "--memory-mib", "16"]
RUNS, STEPS = 6, 3


def batch(number, step):
    rng = np.random.default_rng([number, step])
    return [datum(rng.integers(0, 512, n).tolist()) for n in rng.integers(4, 32, 2)]


def in_turn(server) -> list:
    """Loss of every step and the last log-probabilities of six runs of all parameters, trained in turn."""
    with client(server, TRAINER) as service:
        runs = [full(service) for _ in range(RUNS)]
        steps = [
            [train(run, batch(number, step)).metrics["loss:sum"] for number, run in enumerate(runs)]
            for step in range(STEPS)
        ]
        return [steps, [logprobs(forward(run, batch(number, STEPS))) for number, run in enumerate(runs)]]


def metrics(server) -> tuple[float, dict[str, float]]:
    """The budget, and what is held of it by kind."""
    text = httpx.get(f"{server.url}/metrics").text
    (budget,) = re.findall(r"^trainyard_memory_budget_bytes (\d+)$", text, re.M)
    held = re.findall(r'^trainyard_memory_bytes{kind="(\w+)"} (\d+)$', text, re.M)
    return int(budget), {kind: int(count) for kind, count in held}


@pytest.fixture(scope="module")
def unbounded(tmp_path_factory):
    """The same on a server with room for all."""
    roomy = Server(tmp_path_factory.mktemp("roomy"), config=CONFIG, flags=[*BUDGET, "--memory-mib", "2048"]).start()
    yield in_turn(roomy)
    assert roomy.stop() == 0


def test_six_runs_in_the_memory_of_two_train_as_if_each_had_its_own(server, unbounded):
    with concurrent.futures.ThreadPoolExecutor(1) as pool, client(server, SAMPLER) as service:
        training = pool.submit(in_turn, server)
        sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
        expected, samples = sample(sampler, TOKENS, seed=5).sequences[0].tokens, 0
        while not training.done():
            assert sample(sampler, TOKENS, seed=5).sequences[0].tokens == expected
            samples += 1
        steps, last = training.result()
    assert samples > 0
    assert "another one waits for its memory" in server.text()
    assert steps == unbounded[0]
    np.testing.assert_equal(last, unbounded[1])


# Workers of their own have metrics of their own.
@pytest.mark.deployments("sqlite", "postgres")
def test_the_metrics_say_what_holds_memory(server):
    with client(server, TRAINER) as service:
        run = full(service)
        train(run, [datum(TOKENS)])
        deadline = time.monotonic() + WAIT
        # The worker reports what the engine holds once in a while.
        while (held := metrics(server))[1]["runs"] <= 2 << 20:
            assert time.monotonic() < deadline, held
            time.sleep(0.05)
        budget, used = held
        assert budget == 16 << 20
        assert used["weights"] > 0 and used["activations"] > 0
        assert sum(used.values()) <= budget


def test_a_run_that_never_fits_is_refused_with_the_numbers(server):
    with client(server, TRAINER) as service:
        text = refused(lambda: lora(service, rank=4096), "MiB of memory", "budget of 16 MiB")
        needed, most = map(int, re.search(r"needs (\d+) MiB of memory; at most (\d+) MiB", text).groups())
        assert needed > 200 and 8 <= most <= 12
        # The next one is none the worse for it.
        assert train(lora(service), [datum(TOKENS)]).metrics
