"""Tokens instead of keys: what the SDK exchanges its key for, and what is refused."""

import contextlib
import hashlib
import hmac
import json
import subprocess
import time

import pytest
import tinker as sdk

import wire as raw
from deployment import launch
from helpers import ADAM, WAIT, client, datum, lora, rest
from identity_provider import Key, claims, decode, encode
from process import PATIENCE
from server import BINARY, TINY
from tenancy import CONFIG, admin, new_key, tinker, trainyard

REVOKED_WITHIN = 1.0
"""After so many seconds every server refuses the tokens of a revoked key."""


def exchange(server, key) -> str:
    return raw.Wire(server, key).ok("auth/token", {})["jwt"]


def status(server, credential) -> int:
    return raw.Wire(server, credential).http.get("training_runs").status_code


def refusal(server, token) -> str:
    """Why a token is refused. A client is told to make another one."""
    answer = raw.Wire(server, token).http.get("training_runs")
    assert answer.status_code == 401, answer.text
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    return answer.json()["detail"]


def test_the_sdk_works_with_a_token_and_knows_who_it_is(server, tmp_path):
    trainyard(server, "tenants", "add-user", "acme", "ann@acme.example")
    key, _ = new_key(server, "acme", "--user", "ann@acme.example")
    with client(server, key) as service:
        run = lora(service)
        run.forward_backward([datum([1, 2, 3, 4])], "cross_entropy").result(WAIT)
        run.optim_step(ADAM).result(WAIT)
        assert run.get_info().model_data.model_name == TINY
    me = rest(server, key).whoami().result(WAIT)
    assert (me.email, me.org_urn) == ("ann@acme.example", "tml:organization:acme")
    assert me.user_urn.startswith("tml:user:")
    told = tinker(server.url, key, tmp_path, "auth", "whoami")
    assert "ann@acme.example" in told and "tml:organization:acme" in told
    # A token is a credential of its own.
    assert rest(server, exchange(server, key)).whoami().result(WAIT) == me


def test_the_sdk_replaces_a_token_that_is_refused_and_gives_up_with_its_key(server):
    key, number = new_key(server, "acme")
    service = rest(server, key)
    assert service.list_training_runs().result(WAIT) is not None
    trainyard(server, "keys", "revoke", "acme", number)
    time.sleep(REVOKED_WITHIN)
    with pytest.raises(sdk.AuthenticationError, match="the API key was revoked"):
        service.list_training_runs().result(WAIT)


def test_a_token_ends_with_its_key(server):
    key, number = new_key(server, "acme")
    token = exchange(server, key)
    assert status(server, token) == 200
    trainyard(server, "keys", "revoke", "acme", number)
    time.sleep(REVOKED_WITHIN)
    assert refusal(server, token) == "the token is no longer valid: the API key was revoked"


def test_the_own_command_line_says_who_a_key_is(server):
    key, number = new_key(server, "acme", "--role", "read-only")

    def run(*words, key=key):
        command = [BINARY, "auth", *words, "--url", server.url]
        environment = {"TINKER_API_KEY": key}
        return subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, env=environment)

    told = run("whoami").stdout.splitlines()
    assert told == ["organisation\tacme", "user\t-", "role\tread-only", "scopes\t-", f'key\t{number} "test"', "expires\t-"]
    token = run("token").stdout.strip()
    assert claims(token)["role"] == "read-only"
    with_token = run("whoami", key=token).stdout.splitlines()
    assert with_token[:5] == told[:5] and with_token[5].startswith("expires\t20")
    failed = run("whoami", key="tml-wrong")
    assert failed.returncode == 1 and "401" in failed.stderr and "not known to this server" in failed.stderr


def test_forged_tokens_are_refused_with_the_reason(server):
    key, _ = new_key(server, "acme")
    good = exchange(server, key)
    header, payload, signature = good.split(".")
    (published,) = raw.Wire(server, key).http.get(f"{server.url}/.well-known/jwks.json").json()["keys"]
    kid = published["kid"]
    assert json.loads(decode(header)) == {"typ": "JWT", "alg": "EdDSA", "kid": kid}
    for none in ("none", "None", "NONE"):
        forged = encode({"alg": none, "typ": "JWT"})
        assert "not signed" in refusal(server, f"{forged}.{payload}.")
        assert "not signed" in refusal(server, f"{forged}.{payload}.{signature}")
    for secret in (published["x"].encode(), decode(published["x"]), json.dumps(published).encode()):
        message = f"{encode({'alg': 'HS256', 'kid': kid})}.{payload}"
        mac = hmac.new(secret, message.encode(), hashlib.sha256).digest()
        assert "shared secret" in refusal(server, f"{message}.{encode(mac)}")
    stranger = Key("EdDSA", kid)
    told = claims(good)
    for changes, reason in [
        ({}, "signature is wrong"),
        ({"iss": "https://elsewhere.example"}, "issuer (iss) is not accepted"),
        ({"exp": 1}, "signature is wrong"),
    ]:
        assert reason in refusal(server, stranger.sign(told | changes))
    assert "no key with its kid" in refusal(server, Key("EdDSA", "other").sign(told))
    assert "signature is wrong" in refusal(server, stranger.sign(told, jwk=stranger.published()))
    assert "is for EdDSA" in refusal(server, Key("ES256", kid).sign(told))
    admin_claims = encode(told | {"scopes": ["admin"], "role": "admin"})
    assert "signature is wrong" in refusal(server, f"{header}.{admin_claims}.{signature}")
    assert "at most 8192" in refusal(server, f"{header}.{payload}{'A' * 9000}.{signature}")
    assert "three dot-separated segments" in refusal(server, f"{header}.{payload}")
    assert "encrypted" in refusal(server, f"{good}.a.b")
    assert status(server, good) == 200


def test_a_token_is_the_same_on_every_server_and_revoked_on_all(tmp_path, postgres_server):
    with launch("cluster", tmp_path, postgres_server, config=CONFIG, workers=1) as cluster, contextlib.ExitStack() as stack:
        call = lambda url, credential: stack.enter_context(admin(url, credential))  # noqa: E731
        first, second = cluster.api_urls
        key, number = new_key(cluster, "acme")
        published = lambda url: call(url, key).get(f"{url}/.well-known/jwks.json").json()["keys"]  # noqa: E731
        # The other one has looked for keys before there were any.
        assert published(second) == []
        tokens = [call(url, key).post("auth/token", json={}).json()["jwt"] for url in (first, second)]
        callers = [call(url, token) for url in (first, second) for token in tokens]
        assert [caller.get("training_runs").status_code for caller in callers] == [200] * 4
        kids = {json.loads(decode(token.split(".")[0]))["kid"] for token in tokens}
        time.sleep(0.5)
        assert [{found["kid"] for found in published(url)} for url in (first, second)] == [kids, kids]
        assert len(kids) == 1
        with admin(first) as root:
            assert root.delete(f"admin/keys/{number}?organisation=acme").status_code == 204
        time.sleep(REVOKED_WITHIN)
        assert [caller.get("training_runs").status_code for caller in callers] == [401] * 4
