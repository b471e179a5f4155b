"""Bounds on training requests that wait: what is refused and how, and that a run always gets the request it waits for."""

import threading

from helpers import TOKENS, WAIT, client, datum, lora, train
from wire import Wire

KEY = "tml-bounded-0123456789-0123456789"
CONFIG = f"""
[queue]
max_run_queued_requests = 20
max_seq_gap = 100

[[tenants]]
name = "bounded"
keys = [{{ key = "{KEY}" }}]
max_queued_bytes = 20_000
"""


def refused(response, quota, limit):
    assert response.status_code == 429, response.text
    body = response.json()
    assert (body["quota"], body["limit"]) == (quota, limit) and quota in body["detail"], body
    assert int(response.headers["retry-after"]) >= 1
    return body["used"]


def test_a_run_behind_a_gap_takes_no_more_than_its_queue_and_goes_on_once_it_is_closed(server):
    wire = Wire(server, KEY)
    run = wire.run()
    queued = [wire.optim_step(run, seq).json()["request_id"] for seq in range(2, 22)]
    assert refused(wire.optim_step(run, 22), "max_run_queued_requests", 20) == 20
    assert wire.optim_step(run, 21).json()["request_id"] == queued[-1]
    far = wire.optim_step(run, 102)
    assert far.status_code == 400, far.text
    assert far.json()["detail"] == (
        "seq_id: 102 is too far ahead: the run waits for 1, and numbers up to 100 after it are accepted"
    )
    assert wire.optim_step(run, 1).status_code == 200
    assert wire.result(queued[-1]).json()
    assert wire.optim_step(run, 22).status_code == 200


def test_queued_bytes_of_a_tenant_are_bounded_whatever_its_runs(server):
    wire = Wire(server, KEY)
    session = wire.session()
    first = wire.run(session)
    second = wire.result(wire.create_model(session, 1).json()["request_id"]).json()["model_id"]
    tokens = [list(range(1, 62))] * 10
    sent = 0
    while (response := wire.forward_backward([first, second][sent % 2], 2 + sent // 2, data=tokens)).status_code == 200:
        sent += 1
        assert sent < 20
    used = refused(response, "max_queued_bytes", 20_000)
    assert 0 < used <= 20_000 and sent > 0
    # What the runs wait for is accepted all the same.
    for run in (first, second):
        future = wire.forward_backward(run, 1, data=tokens).json()["request_id"]
        assert wire.outputs(future).metrics


def test_the_sdk_waits_until_the_queue_has_drained(server):
    """It retries a 429 after the time in `Retry-After`."""
    wire = Wire(server, KEY)
    parked = wire.run()
    sent = 0
    while wire.forward_backward(parked, 2 + sent, data=[list(range(1, 62))] * 10).status_code == 200:
        sent += 1
    drained = threading.Timer(2, wire.forward_backward, (parked, 1))
    drained.start()
    with client(server, KEY) as service:
        run = lora(service)
        # The first request of a run is always accepted; those behind it wait for the other run's.
        futures = [run.forward_backward([datum(TOKENS)] * 4, "cross_entropy") for _ in range(10)]
        assert all(future.result(WAIT).metrics for future in futures)
        assert train(run, [datum(TOKENS)]).metrics
    drained.join()
