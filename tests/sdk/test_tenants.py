"""No tenant reads, guesses, lists or changes another's objects."""

import urllib.error
import urllib.request

import pytest
import tinker

import wire as raw
from helpers import ALICE, BOB, TOKENS, TWO_TENANTS, WAIT, client, datum, forward, lora, rest, sample, train
from server import TINY

CONFIG = TWO_TENANTS


@pytest.fixture(scope="module")
def alice(server):
    with client(server, ALICE) as service:
        yield service


@pytest.fixture(scope="module")
def hers(server, alice):
    """Everything Alice can own."""
    run = lora(alice)
    train(run, [datum(TOKENS)])
    state = run.save_state("state").result(WAIT).path
    named = run.save_weights_for_sampler("named").result(WAIT).path
    external = run.save_weights_external("external").result(WAIT).path
    wire = raw.Wire(server, ALICE)
    session = wire.session()
    sampler = wire.sampling_session(session).json()["sampling_session_id"]
    request = wire.asample(sampler, 0).json()["request_id"]
    wire.samples(request)
    return {
        "run": run, "state": state, "named": named, "external": external, "session": session,
        "sampler": sampler, "request": request,
    }  # fmt: skip


@pytest.fixture(scope="module")
def bob(server):
    return raw.Wire(server, BOB)


def test_keys_that_are_not_listed_are_refused(server):
    assert raw.Wire(server, "tml-mallory").post("create_session", {}).status_code == 401


def test_requests_on_anothers_objects_look_like_unknown_ones(bob, hers):
    """The answer for another's id is the answer for an id of nobody."""
    run, session = hers["run"].model_id, hers["session"]
    answers = {
        "forward_backward": bob.forward_backward(run, 50),
        "optim_step": bob.optim_step(run, 50),
        "get_info": bob.post("get_info", {"model_id": run, "type": "get_info"}),
        "create_model": bob.create_model(session, 7),
        "heartbeat": bob.post("session_heartbeat", {"session_id": session, "type": "session_heartbeat"}),
        "finish": bob.post(f"sessions/{session}/finish", {"reason": {"type": "errored"}, "detail": None}),
        "sampling": bob.asample(hers["sampler"], 9),
        "create_sampling_session": bob.sampling_session(session, 9),
        "sampler": bob.http.get(f"samplers/{hers['sampler']}"),
        "session": bob.http.get(f"sessions/{session}"),
        "run": bob.http.get(f"training_runs/{run}"),
        "checkpoints": bob.http.get(f"training_runs/{run}/checkpoints"),
        "delete": bob.http.delete(f"training_runs/{run}/checkpoints/weights/state"),
        "ttl": bob.http.put(f"training_runs/{run}/checkpoints/weights/state/ttl", json={"ttl_seconds": 3600}),
        "publish": bob.http.post(f"training_runs/{run}/checkpoints/weights/state/publish"),
        "urls": bob.http.get(f"training_runs/{run}/checkpoints/external_weights/external/external_weights_urls"),
        "weights_info": bob.post("weights_info", {"tinker_path": hers["state"]}),
        "accessible": bob.http.get(f"training_runs/{run}", params={"access_scope": "accessible"}),
        "copy": bob.post("copy_weights", {"source_path": hers["state"], "destination_project_id": "p"}),
        "copy_into": bob.post("copy_weights", {"source_path": hers["state"], "session_id": session, "model_seq_id": 9}),
        "join": bob.post("join_sampling_session", {"sampling_session_id": hers["sampler"]}),
        "project": bob.http.put(f"sessions/{session}/project", json={"project_id": "p"}),
        "trace": bob.http.get(f"sessions/{session}/trace_export"),
    }
    assert {name: a.status_code for name, a in answers.items()} == dict.fromkeys(answers, 404)
    assert bob.poll(hers["request"]).status_code in (404, 410)
    assert bob.post("cancel_future", {"request_id": hers["request"]}).status_code in (200, 204, 404)


def test_nothing_of_hers_is_listed(server, hers):
    theirs = rest(server, BOB)
    assert theirs.list_training_runs(limit=100).result(WAIT).training_runs == []
    assert theirs.list_user_checkpoints(limit=100).result(WAIT).checkpoints == []
    assert hers["session"] not in theirs.list_sessions(limit=100).result(WAIT).sessions
    for owner in ({"type": "accessible"}, {"type": "user", "owner_urns": ["alice"]}):
        found = raw.Wire(server, BOB).ok("sessions/search", {"session_id": hers["session"], "owner": owner})
        assert found["sessions"] == []


def test_her_weights_cannot_be_loaded(server, hers):
    with client(server, BOB) as service:
        for call in (
            lambda: service.create_training_client_from_state(hers["state"]).result(WAIT),
            lambda: service.create_sampling_client(model_path=hers["named"]).result(WAIT),
        ):
            with pytest.raises((tinker.NotFoundError, tinker.RequestFailedError)):
                call()


def test_hers_are_untouched(server, alice, hers):
    paths = {c.tinker_path for c in rest(server, ALICE).list_checkpoints(hers["run"].model_id).result(WAIT).checkpoints}
    assert paths == {hers["state"], hers["named"], hers["external"]}
    forward(hers["run"], [datum(TOKENS)])
    assert sample(alice.create_sampling_client(model_path=hers["named"]).result(WAIT), TOKENS).sequences


def test_a_signed_url_opens_its_file_alone(server, hers):
    urls = rest(server, ALICE).get_external_weights_urls(hers["external"]).result(WAIT).urls
    assert urllib.request.urlopen(urls["adapter_config.json"], timeout=30).read()
    config, weights = urls["adapter_config.json"], urls["adapter_model.safetensors"]
    swapped = weights.split("?")[0] + "?" + config.split("?")[1] if "?" in config else weights + "x"
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(swapped, timeout=30)


def test_a_public_checkpoint_is_readable_by_others(server, hers):
    rest(server, ALICE).publish_checkpoint_from_tinker_path(hers["state"]).result(WAIT)
    with client(server, BOB) as service:
        resumed = service.create_training_client_from_state(hers["state"]).result(WAIT)
        assert resumed.get_info().model_data.model_name == TINY
    rest(server, ALICE).unpublish_checkpoint_from_tinker_path(hers["state"]).result(WAIT)
    with client(server, BOB) as service, pytest.raises((tinker.NotFoundError, tinker.RequestFailedError)):
        service.create_training_client_from_state(hers["state"]).result(WAIT)


def test_the_same_idempotency_key_of_two_tenants(server):
    body = {"tags": [], "user_metadata": {}, "sdk_version": "0.38.0", "type": "create_session"}
    headers = {"x-idempotency-key": "the-same"}
    ids = {
        raw.Wire(server, key).post("create_session", body, headers=headers).json()["session_id"] for key in (ALICE, BOB)
    }
    assert len(ids) == 2
