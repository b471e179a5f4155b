"""Tenants' quotas: which requests get 429, which wait and report why, and that other tenants are unaffected."""

import re
import threading
import time

import httpx
import pytest
import tinker

from helpers import TOKENS, WAIT, client, datum, lora, train
from process import PATIENCE
from server import REPOSITORY
from wire import Wire

RUNS, QUEUE, FEW, RATE, STORE, FREE = (
    f"tml-{name}-0123456789-0123456789" for name in ("runs", "queue", "few", "rate", "store", "free")
)
CONFIG = f"""
[[tenants]]
name = "runs"
keys = [{{ key = "{RUNS}" }}]
max_runs = 1

[[tenants]]
name = "queue"
keys = [{{ key = "{QUEUE}" }}]
max_queued_tokens = 200

[[tenants]]
name = "few"
keys = [{{ key = "{FEW}" }}]
max_queued_samples = 1

[[tenants]]
name = "rate"
keys = [{{ key = "{RATE}" }}]
tokens_per_minute = 600

[[tenants]]
name = "store"
keys = [{{ key = "{STORE}" }}]
max_storage_bytes = 1

[[tenants]]
name = "free"
weight = 3
keys = [{{ key = "{FREE}" }}]
"""


def refused(response, quota, limit):
    assert response.status_code == 429, response.text
    body = response.json()
    assert (body["quota"], body["limit"]) == (quota, limit)
    assert str(limit) in body["detail"] and quota in body["detail"]
    assert int(response.headers["retry-after"]) >= 1
    return body["used"]


def finish(wire, session, reason="success"):
    response = wire.post(f"sessions/{session}/finish", {"reason": {"type": reason}, "detail": None})
    assert response.status_code == 204, response.text


def test_a_run_beyond_the_quota_is_put_off_until_a_session_ends(server):
    wire = Wire(server, RUNS)
    first = wire.session()
    wire.run(first)
    second = wire.session()
    assert refused(wire.create_model(second), "max_runs", 1) == 1
    # A repetition of what was accepted is no new run.
    assert wire.create_model(first).status_code == 200
    Wire(server, FREE).run()
    finish(wire, first)
    assert wire.create_model(second).status_code == 200


def test_the_sdk_waits_for_a_run_by_itself(server):
    """It retries a 429 after the time in `Retry-After`."""
    wire = Wire(server, RUNS)
    for session in wire.http.get("sessions?limit=100").json()["sessions"]:
        finish(wire, session)
    taken = wire.session()
    wire.run(taken)
    freed = threading.Timer(2, finish, (wire, taken))
    freed.start()
    with client(server, RUNS) as service:
        assert train(lora(service), [datum(TOKENS)]).metrics
    freed.join()


def test_the_sdk_reports_the_quota_of_runs_when_none_ends(server):
    """After two retries, ten seconds apart: not silence for minutes."""
    wire = Wire(server, RUNS)
    for session in wire.http.get("sessions?limit=100").json()["sessions"]:
        finish(wire, session)
    taken = wire.session()
    wire.run(taken)
    with client(server, RUNS) as service, pytest.raises(tinker.RateLimitError, match="1 of 1 training runs are live"):
        lora(service)
    finish(wire, taken)


def test_samples_beyond_the_queued_tokens_are_put_off_and_accepted_again(server):
    wire = Wire(server, QUEUE)
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    # Larger than the quota, and taken because nothing is queued: it keeps the queue full for a while.
    ask = {"num_samples": 512, "params": {"max_tokens": 500, "stop": []}}
    large = wire.asample(sampler, 0, **ask)
    used = refused(wire.asample(sampler, 1), "max_queued_tokens", 200)
    assert used == 3 + 512 * 500
    assert wire.asample(sampler, 0, **ask).json() == large.json()
    wire.post("cancel_future", {"request_id": large.json()["request_id"]})
    deadline = time.monotonic() + 30 * PATIENCE
    while (retried := wire.asample(sampler, 1)).status_code == 429 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert wire.samples(retried.json()["request_id"]).sequences


def test_a_tenant_has_as_many_unfinished_samples_as_its_quota(server):
    wire = Wire(server, FEW)
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    ask = {"num_samples": 512, "params": {"max_tokens": 500, "stop": []}}
    large = wire.asample(sampler, 0, **ask)
    # Every API server counts what it knows of, once a second.
    deadline = time.monotonic() + 10 * PATIENCE
    number = 1
    while (second := wire.asample(sampler, number)).status_code == 200 and time.monotonic() < deadline:
        number += 1
        time.sleep(0.1)
    assert refused(second, "max_queued_samples", 1) >= 1
    assert wire.asample(sampler, 0, **ask).json() == large.json()
    free = Wire(server, FREE)
    free_sampler = free.sampling_session(free.session()).json()["sampling_session_id"]
    assert free.samples(free.asample(free_sampler, 0).json()["request_id"]).sequences
    wire.post("cancel_future", {"request_id": large.json()["request_id"]})
    deadline = time.monotonic() + 30 * PATIENCE
    while (retried := wire.asample(sampler, number)).status_code == 429 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert wire.samples(retried.json()["request_id"]).sequences


def test_training_beyond_the_pace_waits_says_why_and_is_done(server):
    wire = Wire(server, RATE)
    run = wire.run()
    # The first is as large as the bucket, so the second waits until a part of it has come back: 20 of 600 per minute.
    tokens = [list(range(1, 62))] * 10
    first = wire.forward_backward(run, 1, data=tokens).json()["request_id"]
    second = wire.forward_backward(run, 2, data=[list(range(1, 22))]).json()["request_id"]
    step = wire.optim_step(run, 3).json()["request_id"]
    assert wire.outputs(first).metrics
    # Another tenant's poll of what is its own is not paused.
    free = Wire(server, FREE)
    assert free.outputs(free.forward_backward(free.run(), 1).json()["request_id"]).metrics
    start = time.monotonic()
    assert wire.outputs(second).metrics
    assert wire.result(step).json()
    assert time.monotonic() - start < 30


def test_a_paused_poll_names_the_quota_and_the_time(server):
    wire = Wire(server, RATE)
    session = wire.session()
    run = wire.run(session)
    tokens = [list(range(1, 62))] * 10
    seq = 0
    # What earlier tests took may still be missing from the bucket, so the first waits for a full one.
    for seq in (1, 2):
        request = wire.forward_backward(run, seq, data=tokens).json()["request_id"]
    answer = wire.poll(request)
    body = answer.json()
    assert (body["type"], body["queue_state"]) == ("try_again", "paused_rate_limit")
    assert re.search(r"600 tokens per minute are used up.* in about \d+ s", body["queue_state_reason"])
    # Nothing of it is left behind for the end of the server.
    finish(wire, session, "errored")
    assert wire.result(request).json()["error"]


def test_a_save_without_room_fails_for_its_user_and_the_run_goes_on(server):
    with client(server, STORE) as service:
        run = lora(service)
        train(run, [datum(TOKENS)])
        with pytest.raises(tinker.RequestFailedError, match=r"quota max_storage_bytes: 0 of 1 bytes"):
            run.save_state("first").result(WAIT)
        # In memory there is no such quota.
        assert run.save_weights_and_get_sampling_client()
        assert train(run, [datum(TOKENS)]).metrics


# Of several processes each counts what it does itself.
@pytest.mark.deployments("sqlite", "postgres")
def test_the_metrics_page_lists_what_is_exposed(server):
    text = httpx.get(f"{server.url}/metrics", timeout=30).text
    suffix = {"counter": "_total", "info": "_info"}
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    exposed = {name + suffix.get(kind, ""): kind for name, kind in types}
    page = (REPOSITORY / "docs" / "operators" / "metrics.md").read_text()
    documented = dict(re.findall(r"^\| `((?:trainyard|process)_\w+)` \| (\w+) \|", page, re.MULTILINE))
    assert exposed == documented
    assert "tenant=" not in text, "tenants are no labels"
    value = lambda line: float(re.search("^" + re.escape(line) + r" (\S+)$", text, re.MULTILINE).group(1))  # noqa: E731
    assert value('trainyard_quota_refusals_total{quota="max_runs"}') >= 1
    assert value('trainyard_quota_refusals_total{quota="max_queued_tokens"}') >= 1
    assert value('trainyard_quota_refusals_total{quota="max_storage_bytes"}') >= 1
    assert value('trainyard_request_wait_seconds_count{kind="forward_backward"}') >= 3
    assert value('trainyard_requests_total{kind="sample",outcome="cancelled"}') == 2
    # Only the tenant with the rate limit trained on 600 and 20 tokens, in passes of at most 256.
    assert value("trainyard_microbatch_tokens_total") >= 620 and value("trainyard_microbatches_total") >= 4
    assert value("trainyard_microbatch_capacity_tokens_total") >= value("trainyard_microbatch_tokens_total")
    assert value("trainyard_sampled_tokens_total") >= 4 and value("trainyard_prompt_tokens_total") >= 3
    assert value("trainyard_kv_limit_bytes") > 0
