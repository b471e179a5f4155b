"""A client's samples end with its session, and its backlog does not block the other sessions of its tenant."""

import re
import time

import httpx
import pytest

import wire as raw
from helpers import wait_until
from server import TINY_MODELS

pytestmark = [pytest.mark.deployments("sqlite", "postgres"), pytest.mark.timeout(300)]

SAMPLES, COMPLETIONS, TOKENS = 60, 8, 500
"""The backlog of one client, in a context of 512 tokens."""

SECONDS = 10
"""What takes a second or two, on a machine that does other things too."""


@pytest.fixture
def deployed(tmp_path, deploy):
    with deploy(tmp_path, models=TINY_MODELS) as running:
        yield running
        running.kill()


def gauge(deployment, line) -> int:
    (value,) = re.findall(rf"^trainyard_{re.escape(line)} (\d+)$", httpx.get(f"{deployment.url}/metrics").text, re.M)
    return int(value)


def backlog(wire) -> tuple[str, list[str]]:
    """A session with far more samples than decode together, and their requests."""
    session = wire.session()
    sampler = wire.sampling_session(session).json()["sampling_session_id"]
    long = {"max_tokens": TOKENS, "stop": []}
    requests = [wire.asample(sampler, seq, num_samples=COMPLETIONS, params=long) for seq in range(SAMPLES)]
    return session, [request.json()["request_id"] for request in requests]


def until(condition, seconds=SECONDS):
    wait_until(condition, f"not within {seconds} s", seconds)


def test_a_backlog_does_not_block_another_session_of_the_tenant(deployed):
    busy, other = raw.Wire(deployed), raw.Wire(deployed)
    sampler = other.sampling_session(other.session()).json()["sampling_session_id"]
    backlog(busy)
    until(lambda: gauge(deployed, "active_samples") >= 32)
    start = time.monotonic()
    (sequence,) = other.samples(other.asample(sampler, 0).json()["request_id"]).sequences
    assert time.monotonic() - start < SECONDS
    assert gauge(deployed, 'queued_requests{kind="sample"}') > 0, "the backlog is over"
    assert len(sequence.tokens) // 4 <= 4


@pytest.mark.parametrize("reason", ["interrupted", "errored"])
def test_samples_end_with_their_session(deployed, reason):
    wire = raw.Wire(deployed)
    session, requests = backlog(wire)
    until(lambda: gauge(deployed, "active_samples") >= 32)
    running, queued = (gauge(deployed, f'{state}_requests{{kind="sample"}}') for state in ("running", "queued"))
    assert running <= 40 and queued > 0, f"{running} are running, {queued} wait"
    assert wire.finish(session, reason).status_code == 204
    until(lambda: gauge(deployed, "active_samples") == 0)
    assert gauge(deployed, 'running_requests{kind="sample"}') == gauge(deployed, 'queued_requests{kind="sample"}') == 0
    cancelled, succeeded = (
        gauge(deployed, f'requests_total{{kind="sample",outcome="{outcome}"}}') for outcome in ("cancelled", "succeeded")
    )
    assert cancelled + succeeded == SAMPLES and cancelled >= SAMPLES // 2
    assert wire.poll(requests[-1]).status_code != 408, "it has ended"


def test_the_samples_of_a_client_that_is_gone_end_when_its_session_expires(tmp_path, deploy):
    with deploy(tmp_path, models=TINY_MODELS, flags=["--session-seconds", "2"]) as deployed:
        backlog(raw.Wire(deployed))
        # Expired sessions are looked for every few seconds.
        until(lambda: "session expired" in deployed.text(), 30)
        until(lambda: gauge(deployed, "active_samples") == 0)
        assert gauge(deployed, 'running_requests{kind="sample"}') == 0
        deployed.kill()
