"""Many at once: each gets the numbers that it would get alone, nobody an error, and the memory comes back."""

import json
import subprocess
import time

import numpy as np
import pytest
from tinker import types

import wire as raw
from cuda_device import is_simulated
from helpers import ADAM, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, prompt
from process import PATIENCE
from server import BENCH, KEY

RUNS = 16 if is_simulated() else 64
RANKS = (1, 2, 4, 8, 16, 32)
STEPS = 3

pytestmark = pytest.mark.alone


def batch(number, step):
    rng = np.random.default_rng([number, step])
    return [datum(rng.integers(0, 512, n).tolist()) for n in rng.integers(2, 32, 2)]


def create(service, number):
    return lora(service, rank=RANKS[number % len(RANKS)], seed=number)


def submit(run, number):
    passes = []
    for step in range(STEPS):
        passes.append(run.forward_backward(batch(number, step), "cross_entropy"))
        run.optim_step(ADAM)
    return passes, run.forward(batch(number, STEPS), "cross_entropy")


def finish(submitted):
    passes, last = submitted
    return [p.result(WAIT).metrics["loss:sum"] for p in passes], logprobs(last.result(WAIT))


def test_64_runs_at_once_are_each_as_alone(service):
    alone = [finish(submit(create(service, number), number)) for number in range(RUNS)]
    together = [create(service, number) for number in range(RUNS)]
    submitted = [submit(run, number) for number, run in enumerate(together)]
    for number, (expected, found) in enumerate(zip(alone, map(finish, submitted), strict=True)):
        assert found[0] == expected[0], f"run {number}"
        assert_bits_equal(found[1], expected[1])


def test_2000_samples_outstanding(service, sampler):
    """From one client, with the SDK's own queue; each answer belongs to its request."""
    params = types.SamplingParams(max_tokens=1, temperature=0.0)
    prompts = [[5, 17, number % 50] for number in range(2000)]
    expected = [sampler.sample(prompt(tokens), 1, params).result(WAIT).sequences[0].tokens for tokens in prompts[:50]]
    pending = [sampler.sample(prompt(tokens), 1, params) for tokens in prompts]
    for number, future in enumerate(pending):
        assert future.result(WAIT).sequences[0].tokens == expected[number % 50]


def load(url):
    """500 one-token samples per second and 2,000 at once, by the program's own client; nothing is left behind."""
    command = [BENCH, "--http", "--url", url, "--api-key", KEY, "--json", "--reps", "1", "--clients", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 * PATIENCE)
    assert done.returncode == 0, done.stderr
    assert [rate["errors"] for rate in json.loads(done.stdout)["rates"]] == [0, 0, 0], done.stdout


def end_sessions(server):
    wire = raw.Wire(server)
    for session in wire.http.get("sessions", params={"limit": 100}).json()["sessions"]:
        wire.finish(session, "success")


@pytest.mark.real_device("2,500 requests take an hour")
@pytest.mark.deployments("sqlite", "postgres")
def test_memory_comes_back(own):
    """When the load is over, a server holds what it held when it was idle before, within 10 %."""
    load(own.url)
    end_sessions(own)
    idle = settled(own, lambda now, before: now >= before)
    load(own.url)
    end_sessions(own)
    after = settled(own, lambda now, _: now <= idle * 1.1)
    assert after <= idle * 1.1, f"{after >> 20} MiB, {idle >> 20} MiB before"


def settled(server, enough, limit=15.0) -> int:
    """Resident memory once `enough` says so of two looks a second apart, or in the end."""
    deadline = time.monotonic() + limit
    before = resident(server)
    while True:
        time.sleep(1)
        now = resident(server)
        if enough(now, before) or time.monotonic() > deadline:
            return now
        before = now


def resident(server) -> int:
    return sum(process.resident_bytes() for process in server.processes)
