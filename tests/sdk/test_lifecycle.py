"""Unloaded runs come back on demand, with the same bits; cancelled samples free their memory."""

import re

import httpx
import pytest

import wire as raw
from deployment import launch
from helpers import (
    ADAM,
    TOKENS,
    WAIT,
    assert_bits_equal,
    client,
    datum,
    forward,
    gauge,
    logprobs,
    lora,
    sample,
    train,
    wait_until,
)

BATCH = [datum(TOKENS), datum(TOKENS[::-1])]
SECONDS = ["--idle-seconds", "2", "--lease-seconds", "2"]

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(300)]


@pytest.fixture
def short_lived(tmp_path, postgres_server):
    """A server that unloads idle runs after seconds."""
    with launch("sqlite", tmp_path, postgres_server, flags=SECONDS) as running:
        yield running
        assert running.stop() == 0, running.tail()


def wait_for_unload(server, run, times: int):
    line = re.compile(rf"idle[^\n]* run={run.model_id}")
    wait_until(lambda: len(line.findall(server.text())) >= times, f"{line.pattern}:\n{server.tail(60)}", limit=60)


def test_an_unloaded_run_comes_back(short_lived):
    """With its optimizer's state, the gradient that it had accumulated, and its snapshots for sampling."""
    with client(short_lived) as service:
        outcomes = []
        for idle in (False, True):
            run = lora(service)
            seen = [train(run, BATCH).metrics["loss:sum"] for _ in range(2)]
            sampler = run.save_weights_and_get_sampling_client().result(WAIT)
            seen.append(run.forward_backward(BATCH, "cross_entropy").result(WAIT).metrics["loss:sum"])
            if idle:
                wait_for_unload(short_lived, run, 1)
            run.optim_step(ADAM).result(WAIT)
            scores = logprobs(forward(run, BATCH))
            if idle:
                wait_for_unload(short_lived, run, 2)
            sampled = [sequence.tokens for sequence in sample(sampler, TOKENS, 4, seed=3).sequences]
            seen.append(train(run, BATCH).metrics["loss:sum"])
            outcomes.append((seen, scores, sampled))
        (calm, calm_scores, calm_sampled), (struck, struck_scores, struck_sampled) = outcomes
        assert struck == calm
        assert_bits_equal(struck_scores, calm_scores)
        assert struck_sampled == calm_sampled


def test_a_cancelled_sample_frees_what_it_held(short_lived):
    """It ends while it is being decoded, long before its last token."""
    wire = raw.Wire(short_lived)
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    answer = wire.asample(sampler, 0, num_samples=512, params={"max_tokens": 500, "stop": []})
    request = answer.json()["request_id"]
    wait_until(lambda: gauge(short_lived, "trainyard_active_samples") > 0, "it does not start", limit=60)
    wait_until(lambda: gauge(short_lived, "trainyard_kv_bytes") > 0, "it holds nothing", limit=60)
    assert wire.post("cancel_future", {"request_id": request}).status_code < 300
    wait_until(lambda: gauge(short_lived, "trainyard_active_samples") == 0, "it goes on", limit=5)
    assert wire.result(request).status_code in (200, 410)
    text = httpx.get(f"{short_lived.url}/metrics").text
    (sampled,) = re.findall(r"^trainyard_sampled_tokens_total (\d+)", text, re.M) or ["0"]
    assert int(sampled) < 512 * 500
