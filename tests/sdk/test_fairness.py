"""Nobody starves: capacity is shared between tenants by tokens, whatever the shape and the number of their requests."""

import itertools
import os
import re

import httpx
import numpy as np
import pytest

import wire as raw
from helpers import WAIT, client, datum, lora, wait_until
from server import SMOL, TINY_MODELS, smol_path

TENANTS = 8
MICROBATCH = 256
"""Tokens that the engine takes into one pass."""

REQUEST = 2048
"""Tokens of a request."""

REQUESTS = int(os.environ.get("TRAINYARD_FAIRNESS_REQUESTS", "8"))
"""Of each tenant, on average, between the two readings."""

QUEUED = 5 * REQUESTS
"""Requests of each tenant. Some are served while others are queued, and no queue may run empty."""

MODELS = TINY_MODELS | {SMOL: smol_path()}
DTYPE = "bf16"
CONFIG = "metrics_per_tenant = true\n" + "\n".join(
    f'[[keys]]\ntenant = "team-{i}"\nkey = "tml-team-{i}-0123456789-0123456789"' for i in range(TENANTS)
)


def key(tenant: int) -> str:
    return f"tml-team-{tenant}-0123456789-0123456789"


pytestmark = [
    pytest.mark.alone,
    pytest.mark.deployments("sqlite", "postgres"),
    pytest.mark.timeout(300),
    pytest.mark.real_device("a model of 135 million parameters takes hours"),
]


@pytest.fixture
def deployed(tmp_path, deploy):
    """Left with a queue that nobody waits for, so it is killed and not stopped."""
    with deploy(tmp_path, models=MODELS, dtype=DTYPE, config=CONFIG) as running:
        yield running
        running.kill()


def rows(rng, count, length) -> list[list[int]]:
    return rng.integers(0, 512, (count, length + 1)).tolist()


def test_a_short_request_waits_for_microbatches_not_for_a_queue(deployed):
    """A million tokens of another tenant, in sixteen runs, delay 256 tokens by no more than three microbatches."""
    rng = np.random.default_rng(0)
    with client(deployed, key(1)) as service:
        mine = lora(service, SMOL)
        short = [datum(tokens) for tokens in rows(rng, 8, MICROBATCH // 8)]
        queue_tokens(raw.Wire(deployed, key(0)), rng, runs=16, requests=4, datums=62)
        for _ in range(3):
            before = microbatches(deployed)
            mine.forward_backward(short, "cross_entropy").result(WAIT)
            assert 1 <= microbatches(deployed) - before <= 3
        assert microbatches(deployed) < 1_000_000 // MICROBATCH // 2, "the queue is almost empty"


def microbatches(deployment) -> int:
    """Passes so far. The real model takes long for each, so none is missed or counted twice for the reading."""
    (line,) = re.findall(r"^trainyard_microbatches_total (\d+)$", httpx.get(f"{deployment.url}/metrics").text, re.M)
    return int(line)


def queue_tokens(wire, rng, runs, requests, datums):
    """At least a million tokens; long datums, so that each is a microbatch."""
    assert runs * requests * datums * MICROBATCH >= 1_000_000
    session = wire.session()
    data = rows(rng, datums, MICROBATCH)
    created = [wire.create_model(session, number, SMOL).json()["request_id"] for number in range(runs)]
    models = [wire.result(request).json()["model_id"] for request in created]
    for seq in range(1, requests + 1):
        for model in models:
            assert wire.forward_backward(model, seq, data).status_code == 200


def test_passes_are_narrow_beside_a_short_sample(deployed):
    """Another tenant's 2,048 sequences do not decide how wide the passes of a sample of four tokens are."""
    wide, short = (raw.Wire(deployed, key(tenant)) for tenant in (0, 1))
    sampler, own = (wire.sampling_session(wire.session(), base_model=SMOL).json() for wire in (wide, short))
    for seq in range(32):
        answer = wide.asample(sampler["sampling_session_id"], seq, num_samples=64, params={"max_tokens": 2000})
        assert answer.status_code == 200
    before = sampled(deployed)
    wait_until(lambda: width(before, sampled(deployed)) >= 128, "the passes do not become wide", 120)
    for seq in range(4):
        before = sampled(deployed)
        request = short.asample(own["sampling_session_id"], seq).json()["request_id"]
        assert len(short.samples(request).sequences) == 1
        after = sampled(deployed)
        # The first one meets a wide pass. A tenant's part is 32 rows, with tiles 128.
        assert seq == 0 or width(before, after) <= 132, (before, after)


def sampled(deployment) -> tuple[int, int]:
    """Sampling passes, and tokens that were sampled in them, so far."""
    text = httpx.get(f"{deployment.url}/metrics").text
    names = ("sampling_passes", "sampled_tokens")
    passes, tokens = (re.findall(rf"^trainyard_{name}_total (\d+)$", text, re.M)[0] for name in names)
    return int(passes), int(tokens)


def width(before, after) -> float:
    """Tokens that a pass sampled on average."""
    return (after[1] - before[1]) / max(after[0] - before[0], 1)


def test_equal_tenants_get_equal_shares(deployed):
    """Tenant k has k + 1 runs and datums of its own length; all always have work. Jain's index of what they get."""
    tenants = range(TENANTS)
    queues = [requests(raw.Wire(deployed, key(at)), np.random.default_rng(at), at + 1, 16 << at % 4) for at in tenants]
    # In turn, so that none has worked off its queue before the last one has queued its own.
    for _ in range(QUEUED):
        for queue in queues:
            next(queue)
    before = served(deployed)
    wait_until(lambda: (served(deployed) - before).sum() >= TENANTS * REQUESTS * REQUEST, "the queues stand still", 120)
    after = served(deployed)
    assert after.max() < QUEUED * REQUEST, "a queue is empty"
    assert jain(after - before) >= 0.98, after - before


def requests(wire, rng, runs, length):
    """Queues requests of the same size, one at each step, in turn over its runs."""
    session = wire.session()
    data = rows(rng, REQUEST // length, length)
    created = [wire.create_model(session, number, rank=4).json()["request_id"] for number in range(runs)]
    models = [wire.result(request).json()["model_id"] for request in created]
    for number in itertools.count():
        assert wire.forward_backward(models[number % runs], number // runs + 1, data).status_code == 200
        yield


def served(deployment) -> np.ndarray:
    """Tokens of each tenant's requests that have succeeded, by the server's own count."""
    text = httpx.get(f"{deployment.url}/metrics").text
    line = r'^trainyard_request_tokens_total{kind="forward_backward",tenant="team-(\d)"} (\d+)$'
    counts = dict(re.findall(line, text, re.M))
    return np.array([int(counts.get(str(tenant), 0)) for tenant in range(TENANTS)])


def jain(shares) -> float:
    """1 when all are equal, 1/n when one has everything."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))
