"""Ids of HTTP requests and traces: from the client through the server's log to a collector."""

import os
import re

import httpx
import pytest

import wire as raw
from collector import Collector
from helpers import wait_until
from server import KEY, Server
from test_log import lines

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(300)]

TRACE = "4bf92f3577b34da6a3ce929d0e0e47"
PARENT = "00f067aa0ba902b7"


def trace_id(number: int) -> str:
    return f"{TRACE}{number:02x}"


def headers(number: int, flags="01", **more) -> dict:
    return {"traceparent": f"00-{trace_id(number)}-{PARENT}-{flags}", "x-request-id": f"mine-{number}"} | more


@pytest.fixture(scope="module")
def collector():
    collecting = Collector()
    yield collecting
    collecting.close()


@pytest.fixture(scope="module")
def traced(tmp_path_factory, collector):
    server = Server(tmp_path_factory.mktemp("traced"), flags=["--log-format", "json", "--otlp-endpoint", collector.url])
    variables = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20eA==", "OTEL_SERVICE_NAME": "the-lab"}
    server.server.options["env"] = os.environ | variables
    yield server.start()
    server.close()


def test_every_answer_has_an_id_and_a_trace(traced):
    for path in ("/livez", "/nothing", "/api/v1/healthz", "/metrics", "/hf/nothing/resolve/main/x"):
        answer = httpx.get(traced.url + path, headers={"x-request-id": "mine"})
        assert answer.headers["x-request-id"] == "mine"
        assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-01", answer.headers["traceparent"])
    ids = {httpx.get(f"{traced.url}/livez").headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3


def test_the_log_names_the_call_of_a_request_and_of_a_refusal(traced):
    wire = raw.Wire(traced)
    run = wire.run()
    answer = wire.forward_backward(run, 1, headers=headers(1))
    assert answer.headers["traceparent"].startswith(f"00-{trace_id(1)}-")
    wire.result(answer.json()["request_id"])
    (line,) = lines(traced, "request succeeded", kind="forward_backward", x_request_id="mine-1")
    assert line["trace_id"] == trace_id(1)
    refused = wire.post("get_info", {"model_id": "none:train:7"}, headers=headers(2))
    assert refused.json()["x_request_id"] == "mine-2"
    (line,) = lines(traced, "request refused", x_request_id="mine-2")
    assert line["trace_id"] == trace_id(2)


STAGES = {"queue wait", "engine execution", "store commit"}


def test_the_spans_of_a_request_are_in_the_trace_of_its_client(traced, collector):
    wire = raw.Wire(traced)
    run = wire.run()
    answer = wire.forward_backward(run, 1, headers=headers(3, tracestate="lab=1"))
    wire.result(answer.json()["request_id"])
    call = "POST /api/v1/forward_backward"
    spans = collector.wait_for(trace_id(3), {call, "forward_backward"} | STAGES)
    assert spans[call].parent == PARENT and spans[call].state == "lab=1"
    assert spans[call].id == answer.headers["traceparent"].split("-")[2]
    assert spans[call].attributes["http.response.status_code"] == 200
    assert spans[call].attributes["http.route"] == "/api/v1/forward_backward"
    request = spans["forward_backward"]
    assert request.parent == spans[call].id
    assert request.attributes["trainyard.run.id"] == run
    assert request.attributes["trainyard.request.id"] == answer.json()["request_id"]
    stages = [spans[name] for name in ("queue wait", "engine execution", "store commit")]
    assert {stage.parent for stage in stages} == {request.id}
    assert request.start == stages[0].start and request.end == stages[2].end
    assert stages[0].end == stages[1].start and stages[1].end == stages[2].start
    assert {span.service for span in spans.values()} == {"the-lab"}
    assert collector.headers[-1]["authorization"] == "Basic eA=="


def test_a_sample_has_spans_and_a_trace_that_is_not_sampled_has_none(traced, collector):
    wire = raw.Wire(traced)
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    for number, flags in ((4, "00"), (5, "01")):
        wire.http.headers.update(headers(number, flags))
        wire.result(wire.asample(sampler, number).json()["request_id"])
    spans = collector.wait_for(trace_id(5), {"POST /api/v1/asample", "sample"} | STAGES)
    assert spans["sample"].attributes["gen_ai.operation.name"] == "text_completion"
    assert not collector.of(trace_id(4))


def exported(server) -> dict[str, int]:
    text = httpx.get(f"{server.url}/metrics").text
    return {name: int(count) for name, count in re.findall(r'trace_spans_total\{outcome="(\w+)"\} (\d+)', text)}


@pytest.mark.parametrize("mode", ["fail", "hang"])
def test_a_collector_that_takes_nothing_stops_no_request(tmp_path, mode):
    collector = Collector()
    collector.mode = mode
    server = Server(tmp_path, flags=["--otlp-endpoint", collector.url])
    server.server.options["env"] = os.environ | {"OTEL_EXPORTER_OTLP_TIMEOUT": "2000"}
    try:
        server.start()
        with httpx.Client(base_url=server.url, headers={"x-api-key": KEY}, timeout=10) as http:
            for _ in range(600):
                assert http.get("/api/v1/get_server_capabilities").status_code == 200
        wait_until(lambda: exported(server)["failed"] > 0, lambda: exported(server), limit=60)
        assert exported(server)["exported"] == 0
        assert "failed to export traces" in server.text()
        assert server.stop() == 0
    finally:
        server.close()
        collector.close()
