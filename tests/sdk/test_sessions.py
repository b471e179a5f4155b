"""Start-up, sessions, telemetry, catalogue and authentication."""

import time

import httpx
import pytest
import tinker

import wire as raw
from helpers import KEY, TOKENS, WAIT, client, datum, forward, lora, rest, train
from server import TINY


def test_health_needs_no_key(server):
    answer = httpx.get(f"{server.url}/api/v1/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_client_config(wire):
    """Mandatory. Any subset of the fields is valid; flags that are not supported stay off."""
    config = wire.ok("client/config", {"sdk_version": "0.38.0"})
    assert config["pjwt_auth_enabled"] is True
    assert config.get("custom_loss_server_side", False) is True
    assert config["sample_join_sampling_session"] is True
    assert wire.ok("client/dynamic_config", {"sdk_version": "0.38.0"}).get("refresh_interval_sec", 300) >= 10


def test_capabilities(server):
    (model,) = rest(server).get_server_capabilities().result(WAIT).supported_models
    assert (model.model_name, model.max_context_length) == (TINY, 512)


def test_no_key_is_401(server):
    answer = httpx.post(f"{server.url}/api/v1/create_session", json={"sdk_version": "0.38.0"})
    raw.refused(answer, "key", statuses=(401,))


def test_a_key_of_another_kind_is_401(server):
    answer = httpx.post(f"{server.url}/api/v1/create_session", json={}, headers={"x-api-key": "sk-other"})
    assert answer.status_code == 401


def test_session_lifecycle(server):
    """Repeated finishes succeed, the first reason wins, heartbeats after it are 410."""
    wire = raw.Wire(server)
    session = wire.session()
    assert not set(session) & set("/?#:")
    beat = {"session_id": session, "type": "session_heartbeat"}
    assert wire.post("session_heartbeat", beat).status_code == 200
    for reason in ("success", "errored", "success"):
        body = {"reason": {"type": reason}, "detail": None}
        assert wire.post(f"sessions/{session}/finish", body).status_code == 204
    assert wire.post("session_heartbeat", beat).status_code == 410
    raw.refused(wire.create_model(session), "session", statuses=(400, 403, 404, 410, 422))
    raw.refused(wire.post("session_heartbeat", {**beat, "session_id": "nobody"}), statuses=(404,))


def test_a_session_waits_for_late_heartbeats(server):
    """Seconds without a heartbeat are nothing."""
    wire = raw.Wire(server)
    session = wire.session()
    time.sleep(3)
    assert wire.create_model(session).status_code == 200


def test_create_session_with_one_idempotency_key(wire):
    """A retried creation is best answered with the same session."""
    body = {"tags": [], "user_metadata": {}, "sdk_version": "0.38.0", "type": "create_session"}
    headers = {"x-idempotency-key": "stainless-python-retry-1"}
    ids = {wire.post("create_session", body, headers=headers).json()["session_id"] for _ in range(2)}
    assert len(ids) == 1


def test_closing_the_client_finishes_the_session(server):
    with client(server) as service:
        run = lora(service)
        session = service.holder.get_session_id()
        forward(run, [datum(TOKENS)])
    beat = {"session_id": session, "type": "session_heartbeat"}
    assert raw.Wire(server).post("session_heartbeat", beat).status_code == 410


def test_session_catalogue(server):
    with client(server, user_metadata={"who": "me"}, display_name="a name") as service:
        run = lora(service)
        sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
        session = service.holder.get_session_id()
        found = rest(server).get_session(session).result(WAIT)
        assert found.training_run_ids == [run.model_id]
        assert found.sampler_ids == [sampler._sampling_session_id]
        assert found.user_metadata == {"who": "me"}
        assert session in rest(server).list_sessions(limit=1000).result(WAIT).sessions


def test_sampler_catalogue(wire):
    session = wire.session()
    sampler = wire.sampling_session(session).json()["sampling_session_id"]
    found = wire.http.get(f"samplers/{sampler}").json()
    assert (found["sampler_id"], found["base_model"]) == (sampler, TINY)
    assert found.get("model_path") is None
    raw.refused(wire.http.get("samplers/nobody:sample:0"), "nobody", statuses=(404,))


def test_telemetry(server, caplog):
    """Exactly `accepted`, whatever the events hold."""
    wire = raw.Wire(server)
    event = {"event": "GENERIC_EVENT", "event_id": "e", "event_session_index": 0, "severity": "INFO"}
    event |= {"timestamp": "2026-01-01T00:00:00Z", "event_name": "x", "event_data": {"deep": [1, {"y": None}]}}
    body = {"events": [event, {"event": "NEVER_HEARD_OF"}], "platform": "p", "sdk_version": "0.38.0"}
    body |= {"session_id": "sessionless-1", "process_uuid": "u"}
    assert wire.post("telemetry", body).json() == {"status": "accepted"}
    service = client(server)
    lora(service)
    assert service.get_telemetry() is not None
    service.close("success").result(WAIT)
    assert "telemetry" not in caplog.text.lower()


def test_a_finished_session_takes_no_more_work(server):
    service = client(server)
    run = lora(service)
    train(run, [datum(TOKENS)])
    session = service.holder.get_session_id()
    answer = raw.Wire(server).post(f"sessions/{session}/finish", {"reason": {"type": "success"}, "detail": None})
    assert answer.status_code == 204
    with pytest.raises(tinker.APIStatusError):
        run.forward_backward([datum(TOKENS)], "cross_entropy").result(WAIT)


def test_openapi_is_served(server):
    document = httpx.get(f"{server.url}/openapi.json").json()
    assert document["openapi"].startswith("3.")
    for path in ("/api/v1/forward_backward", "/api/v1/asample", "/api/v1/retrieve_future"):
        assert path in document["paths"]


def test_the_key_is_never_logged(server):
    raw.Wire(server, KEY + "-very-secret").session()
    assert "very-secret" not in server.text()


@pytest.mark.deployments("sqlite", "postgres")
def test_the_banner_tells_how_to_connect(server):
    banner = server.text()
    assert server.url in banner and "TINKER_BASE_URL" in banner and TINY in banner
