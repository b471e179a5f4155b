"""Organisations whose limits are set, that are disabled and renamed, and signing keys that are withdrawn, while servers
run: every server knows of it within a second."""

import time
from types import SimpleNamespace

import pytest

import wire as raw
from deployment import launch
from helpers import WAIT, rest
from tenancy import CONFIG as TENANTS
from tenancy import admin, new_key, seconds_until, trainyard

FIXED = "tml-fixed-0123456789-0123456789"
CONFIG = (
    TENANTS
    + f"""
[[tenants]]
name = "fixed"
keys = [{{ key = "{FIXED}" }}]
max_runs = 3
"""
)
KNOWN_WITHIN = 1.0
"""After so many seconds every server goes by a change."""

LIMITS = (
    "weight", "max_runs", "max_queued_tokens", "tokens_per_minute", "max_storage_bytes", "max_queued_requests",
    "max_queued_bytes", "max_queued_samples", "max_sessions", "pixels_per_minute",
)  # fmt: skip


def wire_of(url, key) -> raw.Wire:
    return raw.Wire(SimpleNamespace(url=url), key)


def status(wire) -> int:
    return wire.http.get("training_runs").status_code


def limits_path(name) -> str:
    return f"admin/organisations/{name}/limits"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, postgres_server):
    """Two API servers and a worker."""
    folder = tmp_path_factory.mktemp("organisations")
    with launch("cluster", folder, postgres_server, config=CONFIG, workers=1) as running:
        yield running


def wait_until_known(server):
    """A change is known at once where it was made. Behind a balancer that may be another server than the one that answers next."""
    if hasattr(server, "balancer"):
        time.sleep(KNOWN_WITHIN)


def organisation(server, name) -> raw.Wire:
    """A new organisation, as one of its members sees the server."""
    trainyard(server, "tenants", "create", name)
    return raw.Wire(server, new_key(server, name)[0])


def test_limits_are_set_changed_and_unset_by_operators(server):
    member = organisation(server, "limited")
    session = member.session()
    with admin(server.url) as root:
        # A default that limits is shown.
        in_force = {"weight": 1, "max_queued_requests": 32_768, "max_queued_bytes": 16 << 30, "max_sessions": 10_000}
        nothing = {limit: {"origin": "default"} | ({"value": in_force[limit]} if limit in in_force else {}) for limit in LIMITS}
        assert root.get(limits_path("limited")).json() == nothing
        told = root.put(limits_path("limited"), json={"max_runs": 1, "weight": 7}).json()
        assert told == nothing | {name: {"value": n, "origin": "store"} for name, n in [("max_runs", 1), ("weight", 7)]}
        wait_until_known(server)
        assert member.create_model(session, 0).status_code == 200
        refused = member.create_model(session, 1)
        assert (refused.status_code, refused.json()["quota"], refused.json()["limit"]) == (429, "max_runs", 1)
        # What is absent stays, and null unsets.
        assert root.put(limits_path("limited"), json={"max_runs": 2}).json()["weight"]["value"] == 7
        wait_until_known(server)
        assert member.create_model(session, 1).status_code == 200
        assert root.put(limits_path("limited"), json={"max_runs": None}).json()["max_runs"] == {"origin": "default"}
        wait_until_known(server)
        assert member.create_model(session, 2).status_code == 200
        entries = root.get("audit", params={"organisation": "limited", "event_type": "organizations"}).json()["entries"]
        changes = [entry for entry in entries if entry["event"] == "organization_limits_change"]
        assert [entry["event_details"].get("max_runs", "-") for entry in changes] == [1, 2, None]


def test_limits_that_cannot_be_are_refused_by_name_and_change_nothing(server):
    organisation(server, "strict")
    with admin(server.url) as root:
        root.put(limits_path("strict"), json={"max_runs": 4})
        for body, detail in [
            ({"weight": 0}, "weight: must be from 1 to 1000, not 0"),
            ({"max_runs": 5, "weight": 1001}, "weight: must be from 1 to 1000, not 1001"),
            ({"max_storage_bytes": 2**63}, f"max_storage_bytes: must be from 1 to {2**63 - 1}, not {2**63}"),
            ({"tokens_per_minute": -1}, "tokens_per_minute: invalid value"),
            ({"max_queued_bytes": "1"}, "max_queued_bytes: invalid type"),
            ({"max_rnus": 1}, "unknown field `max_rnus`"),
            ({}, "expected at least one limit"),
        ]:
            refused = root.put(limits_path("strict"), json=body)
            assert refused.status_code == 400 and detail in refused.json()["detail"], refused.text
        assert root.get(limits_path("strict")).json()["max_runs"] == {"value": 4, "origin": "store"}
        assert root.put(limits_path("nowhere"), json={"weight": 1}).status_code == 404
        # The file wins, and is changed in the file alone.
        assert root.get(limits_path("fixed")).json()["max_runs"] == {"value": 3, "origin": "file"}
        refused = root.put(limits_path("fixed"), json={"max_runs": 9, "weight": 2})
        assert (refused.status_code, refused.json()["detail"]) == (
            400, "max_runs: the configuration file sets it to 3; it can't be changed here",
        )  # fmt: skip
        assert root.get(limits_path("fixed")).json()["weight"] == {"value": 1, "origin": "default"}


def test_the_command_line_manages_limits_beside_the_server(server):
    member = organisation(server, "cli")
    session = member.session()
    trainyard(server, "tenants", "set-limits", "cli", "max_runs=1", "max_storage_bytes=50_000")
    header, *lines = trainyard(server, "tenants", "limits", "cli")
    found = {line[0]: line[1:] for line in lines}
    assert header == ["LIMIT", "VALUE", "SET BY"]
    assert (found["max_runs"], found["max_storage_bytes"]) == (["1", "store"], ["50000", "store"])
    assert (found["weight"], list(found)) == (["-", ""], list(LIMITS))
    time.sleep(KNOWN_WITHIN)
    assert [member.create_model(session, n).status_code for n in range(2)] == [200, 429]
    trainyard(server, "tenants", "set-limits", "cli", "max_storage_bytes=3GiB")
    assert ["max_storage_bytes", "3 GiB", "store"] in trainyard(server, "tenants", "limits", "cli")
    trainyard(server, "tenants", "unset-limits", "cli", "max_runs")
    time.sleep(KNOWN_WITHIN)
    assert member.create_model(session, 1).status_code == 200
    assert trainyard(server, "tenants", "limits", "fixed")[2] == ["max_runs", "3", "file"]
    for words, reason in [
        (("set-limits", "cli", "weight=0"), "weight: must be from 1 to 1000, not 0"),
        (("set-limits", "cli", "max_runs"), '"max_runs": expected LIMIT=VALUE'),
        (("unset-limits", "cli", "runs"), 'unknown limit "runs": expected one of weight, max_runs'),
        (("set-limits", "fixed", "max_runs=1"), "max_runs: the configuration file sets it to 3"),
        (("set-limits", "nowhere", "weight=1"), "nowhere"),
    ]:
        assert reason in trainyard(server, "tenants", *words, fails=True)[-1][0]


def test_admins_see_and_name_their_own_organisation_and_change_nothing_else(server):
    organisation(server, "own")
    key, _ = new_key(server, "own", "--role", "admin")
    with admin(server.url, key) as boss:
        assert boss.get(limits_path("own")).json()["max_runs"] == {"origin": "default"}
        assert boss.put(limits_path("own"), json={"max_runs": 1_000}).status_code == 403
        told = boss.put("admin/organisations/own", json={"display_name": "Our own"}).json()
        assert (told["name"], told["display_name"]) == ("own", "Our own")
        assert boss.get("admin/organisations").json()["organisations"][0]["display_name"] == "Our own"
        assert boss.put("admin/organisations/own", json={"disabled": True}).status_code == 403
        assert boss.post("admin/signing_keys/rotate").status_code == 403
        for method, path, body in [
            ("GET", limits_path("{}"), None), ("PUT", limits_path("{}"), {"weight": 1}),
            ("PUT", "admin/organisations/{}", {"disabled": True}),
        ]:  # fmt: skip
            there, nowhere = (boss.request(method, path.format(name), json=body) for name in ("ops", "nowhere"))
            assert (there.status_code, nowhere.status_code) == (404, 404)
            assert there.json()["detail"].replace("ops", "nowhere") == nowhere.json()["detail"]
    with admin(server.url) as root:
        for body, detail in [
            ({}, "neither display_name nor disabled is given"),
            ({"display_name": "x" * 201}, "display_name: 201 bytes, at most 200 are allowed"),
            ({"display_name": "a\nb"}, "display_name: must not contain control characters"),
            ({"name": "new"}, "unknown field `name`"),
        ]:
            refused = root.put("admin/organisations/own", json=body)
            assert refused.status_code == 400 and detail in refused.json()["detail"], refused.text
        refused = root.put("admin/organisations/ops", json={"disabled": True})
        assert "can't disable itself" in refused.json()["detail"]
        assert root.put("admin/organisations/nowhere", json={"disabled": True}).status_code == 404
    trainyard(server, "tenants", "change", "own", "--display-name", "Renamed")
    (line,) = [line for line in trainyard(server, "tenants", "list") if line[0] == "own"]
    assert line[3] == "Renamed"


def test_a_disabled_organisation_is_refused_and_keeps_what_it_has(server):
    member = organisation(server, "paused")
    token = raw.Wire(server, member.ok("auth/token", {})["jwt"])
    session = member.session()
    run = member.run(session)
    saved = member.ok("save_weights", {"model_id": run, "seq_id": 1, "path": "state"})["request_id"]
    path = member.result(saved).json()["path"]
    sampler = member.sampling_session(session).json()["sampling_session_id"]
    ask = lambda n: member.asample(sampler, n, params={"max_tokens": 400}, num_samples=64)  # noqa: E731
    waiting = [ask(n).json()["request_id"] for n in range(60)][-1]
    with admin(server.url) as root:
        told = root.put("admin/organisations/paused", json={"disabled": True}).json()
        assert told["disabled_at"]
        wait_until_known(server)
        refused = member.http.get("training_runs")
        assert (refused.status_code, refused.json()["detail"]) == (401, "the organisation of the API key is disabled")
        refused = token.http.get("training_runs")
        assert "its organisation is disabled" in refused.json()["detail"]
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
        assert member.post("auth/token", {}).status_code == 401
        # Its administration goes on, and others are as they were.
        assert root.get("admin/keys?organisation=paused").status_code == 200
        time.sleep(KNOWN_WITHIN)
        assert root.put("admin/organisations/paused", json={"disabled": False}).json().get("disabled_at") is None
    wait_until_known(server)
    assert (status(member), status(token)) == (200, 200)
    assert member.poll(waiting).json()["error"] == "cancelled"
    listed = member.http.get("checkpoints").json()["checkpoints"]
    assert [checkpoint["tinker_path"] for checkpoint in listed] == [path]
    # The session goes on where it was.
    member.ok("session_heartbeat", {"session_id": session, "type": "session_heartbeat"})
    assert member.result(member.forward_backward(run, 2).json()["request_id"]).status_code == 200


def test_keys_of_the_file_are_refused_while_their_organisation_is_disabled(server):
    member = raw.Wire(server, FIXED)
    token = raw.Wire(server, member.ok("auth/token", {})["jwt"])
    with admin(server.url) as root:
        for disabled, code in [(True, 401), (False, 200)]:
            root.put("admin/organisations/fixed", json={"disabled": disabled})
            wait_until_known(server)
            assert (status(member), status(token)) == (code, code)


def test_every_server_goes_by_a_limit_within_a_second(cluster):
    organisation(cluster, "shared")
    key, _ = new_key(cluster, "shared")
    members = [wire_of(url, key) for url in cluster.api_urls]
    sessions = [member.session() for member in members]
    members[0].run(sessions[0])
    numbers = iter(range(1, 10_000))
    refused = lambda: [  # noqa: E731
        member.create_model(session, next(numbers)).status_code == 429
        for member, session in zip(members, sessions, strict=True)
    ]
    assert refused() == [False, False]
    trainyard(cluster, "tenants", "set-limits", "shared", "max_runs=1")
    assert seconds_until(lambda: all(refused())) < KNOWN_WITHIN
    with admin(cluster.api_urls[1]) as root:
        root.put(limits_path("shared"), json={"max_runs": None})
    assert seconds_until(lambda: not any(refused())) < KNOWN_WITHIN


def test_every_server_refuses_a_disabled_organisation_within_a_second(cluster):
    organisation(cluster, "stopped")
    key, _ = new_key(cluster, "stopped")
    members = [wire_of(url, key) for url in cluster.api_urls]
    tokens = [wire_of(url, members[0].ok("auth/token", {})["jwt"]) for url in cluster.api_urls]
    everywhere = lambda code: all(status(caller) == code for caller in members + tokens)  # noqa: E731
    assert everywhere(200)
    trainyard(cluster, "tenants", "change", "stopped", "--disable")
    assert seconds_until(lambda: everywhere(401)) < KNOWN_WITHIN
    with admin(cluster.api_urls[1]) as root:
        root.put("admin/organisations/stopped", json={"disabled": False})
    assert seconds_until(lambda: everywhere(200)) < KNOWN_WITHIN


def test_every_server_refuses_tokens_of_withdrawn_signing_keys_within_a_second(cluster):
    key, _ = new_key(cluster, "acme")
    with admin(cluster.api_urls[0]) as root:
        kids = lambda: {found["kid"] for url in cluster.api_urls for found in published(root, url)}  # noqa: E731
        for withdraw in (
            lambda: trainyard(cluster, "keys", "rotate-signing"),
            lambda: root.post("admin/signing_keys/rotate"),
        ):
            service = rest(cluster, key)
            assert service.list_training_runs().result(WAIT) is not None
            jwt = wire_of(cluster.api_urls[0], key).ok("auth/token", {})["jwt"]
            callers = [wire_of(url, jwt) for url in cluster.api_urls]
            # Both have verified it, and remember that.
            assert [status(caller) for caller in callers] == [200, 200]
            former = kids()
            withdraw()
            assert seconds_until(lambda: all(status(caller) == 401 for caller in callers)) < KNOWN_WITHIN  # noqa: B023
            refused = callers[1].http.get("training_runs")
            assert refused.json()["detail"] == "the token's issuer has no key with its kid"
            assert 'error="invalid_token"' in refused.headers["www-authenticate"]
            assert not kids() & former
            # Clients that have a key make another token by themselves.
            assert service.list_training_runs().result(WAIT) is not None
        entries = root.get("audit", params={"organisation": "acme", "event_type": "organizations"}).json()["entries"]
        assert [entry["event"] for entry in entries].count("signing_keys_rotate") == 2


def published(client, url) -> list:
    return client.get(f"{url}/.well-known/jwks.json").json()["keys"]
