"""Isolation: a run's numbers do not depend on the other runs, with every layout."""

import numpy as np
import pytest
from tinker import types

from cuda_device import is_simulated
from helpers import (
    ADAM,
    TOKENS,
    WAIT,
    assert_bits_equal,
    datum,
    forward,
    full,
    logprobs,
    lora,
    prompt,
    rl_datum,
    sample,
)
from server import GOLDEN, TINY

MODELS = {TINY: GOLDEN / "llama", "tiny-qwen3": GOLDEN / "qwen3"}
LAYOUTS = [None, "tp=2", "dp=2"]
STEPS, LENGTH = (2, 16) if is_simulated() else (6, 64)


def batches(seed):
    rng = np.random.default_rng(seed)
    return [[datum(rng.integers(0, 512, n).tolist()) for n in rng.integers(2, 40, 4)] for _ in range(STEPS)]


def submit(run, seed, loss="cross_entropy"):
    pending = []
    for batch in batches(seed):
        if loss != "cross_entropy":
            batch = [rl_datum([*d.model_input.to_ints(), 1]) for d in batch]
        pending.append(run.forward_backward(batch, loss))
        run.optim_step(ADAM)
    return pending


def finish(run, pending):
    losses = [p.result(WAIT).metrics["loss:sum"] for p in pending]
    return losses, logprobs(forward(run, batches(0)[0]))


@pytest.mark.parametrize("make", [lora, full])
def test_alone_and_beside_three_busy_runs(service, make):
    """Losses and final weights are equal to the bit; the neighbours have other ranks, losses, lengths and bases."""
    alone = make(service)
    expected = finish(alone, submit(alone, seed=5))
    neighbours = [
        (lora(service, rank=32, seed=9, train_attn=False), 6, "ppo"),
        (full(service), 7, "cross_entropy"),
        (lora(service, "tiny-qwen3", rank=2), 8, "importance_sampling"),
    ]
    sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
    noise = [sampler.sample(prompt(TOKENS), 4, types.SamplingParams(max_tokens=LENGTH, stop=[])) for _ in range(4)]
    busy = [submit(run, seed, loss) for run, seed, loss in neighbours]
    beside = make(service)
    mine = submit(beside, seed=5)
    busy += [submit(run, seed, loss) for run, seed, loss in neighbours]
    losses, final = finish(beside, mine)
    assert losses == expected[0]
    assert_bits_equal(final, expected[1])
    for pending in [p for group in busy for p in group] + noise:
        pending.result(WAIT)


def test_one_run_trains_and_its_neighbours_stand_still(service):
    """Steps with decay and a large rate on one run leave another's log-probabilities unchanged."""
    still, moving = lora(service), lora(service)
    before = logprobs(forward(still, batches(1)[0]))
    harsh = types.AdamParams(learning_rate=0.5, weight_decay=0.5, eps=1e-8)
    for batch in batches(2):
        moving.forward_backward(batch, "cross_entropy")
        moving.optim_step(harsh).result(WAIT)
    assert_bits_equal(before, logprobs(forward(still, batches(1)[0])))


def test_samples_do_not_depend_on_company(service):
    sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
    alone = sample(sampler, TOKENS, 3, seed=1, max_tokens=40, stop=[])
    runs = [lora(service, rank=r) for r in (1, 16)]
    busy = [submit(run, 3) for run in runs]
    together = sample(sampler, TOKENS, 3, seed=1, max_tokens=40, stop=[])
    assert [s.tokens for s in alone.sequences] == [s.tokens for s in together.sequences]
    assert_bits_equal([s.logprobs for s in alone.sequences], [s.logprobs for s in together.sequences])
    for pending in [p for group in busy for p in group]:
        pending.result(WAIT)
