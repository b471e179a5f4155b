"""What leaves memory comes back on demand, with the same bits; what is given up frees what it held."""

import re
import time

import httpx
import pytest

import wire as raw
from deployment import launch
from helpers import ADAM, TOKENS, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, sample, train

BATCH = [datum(TOKENS), datum(TOKENS[::-1])]
SECONDS = ["--idle-seconds", "2", "--lease-seconds", "2"]

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(300)]


@pytest.fixture
def forgetful(tmp_path, postgres_server):
    """A server that lets go of runs soon."""
    with launch("sqlite", tmp_path, postgres_server, flags=SECONDS) as running:
        yield running
        assert running.stop() == 0, running.tail()


def until(condition, what: str, limit=60.0):
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def let_go(server, run, times: int):
    text = f"an idle run is let go of run={run.model_id}"
    until(lambda: server.text().count(text) >= times, f"{text}:\n{server.tail(60)}")


def gauge(server, name: str) -> float:
    (value,) = re.findall(rf"^{name} (\S+)$", httpx.get(f"{server.url}/metrics").text, re.M)
    return float(value)


def test_a_run_that_was_let_go_of_comes_back(forgetful):
    """With its optimizer's state, the gradient that it had accumulated, and its snapshots for sampling."""
    with client(forgetful) as service:
        outcomes = []
        for idle in (False, True):
            run = lora(service)
            seen = [train(run, BATCH).metrics["loss:sum"] for _ in range(2)]
            sampler = run.save_weights_and_get_sampling_client().result(WAIT)
            seen.append(run.forward_backward(BATCH, "cross_entropy").result(WAIT).metrics["loss:sum"])
            if idle:
                let_go(forgetful, run, 1)
            run.optim_step(ADAM).result(WAIT)
            scores = logprobs(forward(run, BATCH))
            if idle:
                let_go(forgetful, run, 2)
            drawn = [sequence.tokens for sequence in sample(sampler, TOKENS, 4, seed=3).sequences]
            seen.append(train(run, BATCH).metrics["loss:sum"])
            outcomes.append((seen, scores, drawn))
        (calm, calm_scores, calm_drawn), (struck, struck_scores, struck_drawn) = outcomes
        assert struck == calm
        assert_bits_equal(struck_scores, calm_scores)
        assert struck_drawn == calm_drawn


def test_a_cancelled_sample_frees_what_it_held(forgetful):
    """It ends in the midst of its decoding, long before its last token."""
    wire = raw.Wire(forgetful)
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    answer = wire.asample(sampler, 0, num_samples=256, params={"max_tokens": 500, "stop": []})
    request = answer.json()["request_id"]
    until(lambda: gauge(forgetful, "trainyard_active_samples") > 0, "it does not start")
    until(lambda: gauge(forgetful, "trainyard_kv_bytes") > 0, "it holds nothing")
    assert wire.post("cancel_future", {"request_id": request}).status_code < 300
    until(lambda: gauge(forgetful, "trainyard_active_samples") == 0, "it goes on", limit=5)
    assert wire.result(request).status_code in (200, 410)
    text = httpx.get(f"{forgetful.url}/metrics").text
    (drawn,) = re.findall(r"^trainyard_sampled_tokens_total (\d+)", text, re.M) or ["0"]
    assert int(drawn) < 256 * 500
