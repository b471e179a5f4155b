"""What the server's log says of work and of failures, and what it never says."""

import json
import time

import pytest

import wire as raw
from process import PATIENCE
from server import KEY, Server

SECRET = "an-unlikely-word"


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("log"), flags=["--log-format", "json"])
    yield server.start()
    server.close()


def lines(server, message, **fields):
    """The log's lines with this message and these fields, once there are any."""
    deadline = time.monotonic() + 30 * PATIENCE
    while time.monotonic() < deadline:
        records = [json.loads(line) for line in server.text().splitlines() if line.startswith("{")]
        found = [r for r in records if r["message"] == message and fields.items() <= r.items()]
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"no {message!r} with {fields} in the log:\n{server.tail()}")


def test_every_operation_has_a_line(logged):
    wire = raw.Wire(logged)
    run = wire.run()
    wire.result(wire.forward_backward(run, 1).json()["request_id"])
    wire.result(wire.forward_backward(run, 2, loss=SECRET).json()["request_id"])
    wire.result(wire.optim_step(run, 3).json()["request_id"])
    for kind, tokens in (("create_model", 0), ("forward_backward", 3), ("optim_step", 0)):
        (line,) = lines(logged, "request succeeded", kind=kind, run=run, tokens=tokens)
        assert line["level"] == "INFO" and line["tenant"] == "local"
        assert line["wait_ms"] >= 0 and line["service_ms"] >= 0 and line["request"]
    (line,) = lines(logged, "request failed", kind="forward_backward", run=run)
    assert line["level"] == "INFO" and "loss_fn" in line["error"]


def test_samples_share_lines(logged):
    """100 of them; a line each would be what the log consists of."""
    wire = raw.Wire(logged)
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    requests = [wire.asample(sampler, seq).json()["request_id"] for seq in range(100)]
    for request in requests:
        wire.result(request)
    deadline = time.monotonic() + 30 * PATIENCE
    found = []
    while sum(line["succeeded"] for line in found) < 100 and time.monotonic() < deadline:
        found = lines(logged, "requests ended", kind="sample", of=sampler)
    assert sum(line["succeeded"] for line in found) == 100
    assert sum(line["tokens"] for line in found) == 100 * (3 + 4)
    assert len(found) < 30
    assert not any(request in logged.text() for request in requests)


def test_refusals_have_a_reason_and_no_content(logged):
    wire = raw.Wire(logged)
    raw.refused(wire.post("create_session", {"tags": SECRET}), "tags")
    raw.refused(wire.post("get_info", {"model_id": "none:train:7"}))
    assert raw.Wire(logged, key=f"sk-{SECRET}").post("create_session", {}).status_code == 401
    (line,) = lines(logged, "request refused", route="/api/v1/create_session", status=400)
    assert (line["method"], line["tenant"], line["level"]) == ("POST", "local", "INFO")
    assert line["reason"].startswith("tags: invalid type")
    (line,) = lines(logged, "request refused", route="/api/v1/get_info", status=404)
    assert "none:train:7" in line["reason"]
    (line,) = lines(logged, "request refused", route="/api/v1/create_session", status=401)
    assert "malformed" in line["reason"]
    assert SECRET not in logged.text() and KEY not in logged.text()


def test_the_level_can_be_chosen(tmp_path):
    server = Server(tmp_path, flags=["--log-level", "warn"]).start()
    try:
        raw.Wire(server).run()
        assert " INFO " not in server.text()
    finally:
        server.close()
