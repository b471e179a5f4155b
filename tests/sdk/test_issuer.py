"""Tokens of an external issuer, whose keys the server fetches."""

import json
import threading
import time

import pytest

import wire as raw
from deployment import launch
from helpers import WAIT, client, lora, rest, wait_until
from identity_provider import AUDIENCE, IdentityProvider, Key
from tenancy import CONFIG, trainyard
from test_tokens import exchange, refusal, status

LEEWAY = 60
"""Seconds after its end until which a token of the issuer is accepted."""
PAUSE = 5.5
"""After so many seconds the server looks for a key again that it does not know."""


def configuration(provider, **changes) -> str:
    lines = {"url": provider.url, "audience": AUDIENCE, "organisation_claim": "org", "role_claim": "groups"}
    # Seldom: what is fetched is counted.
    lines |= {"jwks_refresh_seconds": 600} | changes
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    return f'{CONFIG}\n[auth.issuer]\n{table}roles = {{ developers = "member", leads = "admin" }}\n'


@pytest.fixture
def provider():
    provider = IdentityProvider()
    yield provider
    provider.close()


@pytest.fixture
def server(tmp_path, postgres_server, provider):
    with launch("sqlite", tmp_path, postgres_server, config=configuration(provider)) as started:
        yield started


def whoami(server, token) -> dict:
    answer = raw.Wire(server, token).http.get("auth/whoami")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_tokens_name_organisation_user_and_role(server, provider):
    me = whoami(server, provider.token())
    assert (me["organisation"], me["user"]["email"], me["role"]) == ("acme", "eve@acme.example", "member")
    assert (me["credential"], me["scopes"]) == ("issuer", ["train", "sample", "checkpoints"])
    lead = provider.token(groups=["developers", "leads"], aud=["others", AUDIENCE])
    assert whoami(server, lead)["role"] == "admin"
    assert raw.Wire(server, lead).http.get("admin/keys").status_code == 200
    # The SDK exchanges it like a key; what it gets does not last longer.
    with client(server, provider.token()) as service:
        assert lora(service).get_info().model_id
    assert rest(server, provider.token()).whoami().result(WAIT).email == "eve@acme.example"
    short = provider.token(exp=int(time.time()) + 5)
    assert whoami(server, exchange(server, short))["expires_at"] <= whoami(server, short)["expires_at"]
    # A role of the store limits that of the issuer, at once.
    trainyard(server, "tenants", "add-user", "acme", "eve@acme.example", "--role", "read-only")
    token, made = provider.token(), exchange(server, provider.token())
    time.sleep(1)
    assert [whoami(server, any_)["scopes"] for any_ in (token, made, lead)] == [[], [], []]
    trainyard(server, "tenants", "change-user", "acme", "eve@acme.example", "--disable")
    time.sleep(1)
    assert {refusal(server, any_) for any_ in (token, made)} == {"the user of the token is disabled"}
    assert provider.asked == {"/.well-known/openid-configuration": 1, "/keys": 1}


def test_tokens_that_are_not_for_this_server_are_refused(server, provider):
    now = int(time.time())
    for changes, reason in [
        ({"aud": "others"}, "audience (aud)"),
        ({"aud": None}, 'lacks the claim "aud"'),
        ({"iss": f"{provider.url}/"}, "issuer (iss)"),
        ({"exp": now - 61}, "expired"),
        ({"exp": None}, 'lacks the claim "exp"'),
        ({"nbf": now + 120}, "not valid yet"),
        ({"iat": now + 120}, "issued in the future"),
        ({"org": "nowhere"}, "the organisation of the token does not exist"),
        ({"org": None}, 'lacks the claim "org"'),
        ({"groups": ["guests"]}, "gives no role here"),
        ({"groups": None}, "gives no role here"),
        ({"email_verified": False}, '"email_verified" is not true'),
        ({"email_verified": "false"}, '"email_verified" is not true'),
    ]:
        assert reason in refusal(server, provider.token(**changes)), changes
    # Keys of others, algorithms that the key is not for, and the issuer's name on the service's own key.
    first = provider.keys[0]
    assert "signature is wrong" in refusal(server, Key("RS256", "first").sign(provider.claims()))
    assert "is for RS256" in refusal(server, first.sign(provider.claims(), alg="PS256"))
    assert "is for RS256" in refusal(server, Key("ES256", "first").sign(provider.claims()))
    assert "shared secret" in refusal(server, first.sign(provider.claims(), alg="HS256", kid="oct"))
    assert "not signed" in refusal(server, first.sign(provider.claims(), alg="none"))
    assert status(server, first.sign(provider.claims())) == 200
    assert refusal(server, first.sign(provider.claims(iss="trainyard", aud="trainyard"))).endswith("no key with its kid")
    # There are no keys, but callers must be known.
    assert status(server, "tml-anything") == 401


def test_new_keys_are_fetched_and_not_too_often(server, provider):
    assert status(server, provider.token()) == 200
    for algorithm in ("ES256", "EdDSA", "PS256"):
        provider.keys.append(Key(algorithm, f"of-{algorithm}"))
    time.sleep(PAUSE)
    assert [status(server, key.sign(provider.claims())) for key in provider.keys] == [200] * 4
    assert provider.asked["/keys"] == 2
    strange = Key("ES256", "strange").sign(provider.claims())
    for _ in range(20):
        assert "no key with its kid" in refusal(server, strange)
    assert provider.asked["/keys"] == 2
    # What is fetched last counts as long as nothing better comes.
    provider.broken = (500, b"")
    time.sleep(PAUSE)
    assert "no key with its kid" in refusal(server, strange)
    assert provider.asked["/.well-known/openid-configuration"] == 3
    assert status(server, provider.token()) == 200


class Poll:
    """A poll that lasts, since what it waits for never comes."""

    def __init__(self, server, token):
        wire = raw.Wire(server, token)
        future = wire.forward_backward(wire.run(), 9).json()["request_id"]
        self.answers = []
        self.thread = threading.Thread(target=lambda: self.answers.append(wire.poll(future)))
        self.thread.start()

    def refusal(self) -> str:
        self.thread.join()
        (answer,) = self.answers
        assert answer.status_code == 401, answer.text
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        return answer.json()["detail"]


def test_a_withdrawn_key_ends_its_tokens_and_those_that_were_made_from_them(tmp_path, postgres_server, provider):
    config = configuration(provider, jwks_refresh_seconds=1)
    withdrawn = "the token was signed by a key that its issuer has withdrawn"
    with launch("sqlite", tmp_path, postgres_server, config=config) as server:
        first, second = provider.keys[0], Key("ES256", "second")
        provider.keys.append(second)
        old, new = first.sign(provider.claims()), second.sign(provider.claims())
        made = exchange(server, old)
        assert [status(server, token) for token in (old, new, made)] == [200] * 3
        polls = [Poll(server, token) for token in (old, made)]
        # A key of the same name is another one all the same.
        provider.keys[0] = Key("RS256", "first")
        assert [poll.refusal() for poll in polls] == [withdrawn] * 2
        assert {refusal(server, token) for token in (old, made)} == {withdrawn}
        assert status(server, provider.keys[0].sign(provider.claims())) == 200
        former = provider.keys.pop(0)
        wait_until(lambda: status(server, former.sign(provider.claims())) == 401, "a key was accepted that the issuer has withdrawn")
        assert status(server, new) == 200
        # An issuer that does not answer withdraws nothing.
        provider.broken = (500, b"")
        time.sleep(3)
        assert status(server, new) == 200
        provider.broken, provider.keys[:] = None, [Key("EdDSA", "third")]
        wait_until(lambda: status(server, new) == 401, "a key was accepted that the issuer has withdrawn")


@pytest.mark.parametrize("exchanged", [False, True], ids=["of the issuer", "exchanged"])
def test_a_token_that_expires_ends_what_is_in_flight(server, provider, exchanged):
    token = provider.token(exp=int(time.time()) - LEEWAY + 8)
    poll = Poll(server, exchange(server, token) if exchanged else token)
    assert poll.refusal() == "the token has expired"


def test_without_the_issuers_keys_its_tokens_wait(server, provider):
    for broken in [(500, b""), (302, b""), (200, b"<html>"), (200, b"{}"), (200, b" " * (1 << 20))]:
        provider.broken = broken
        answer = raw.Wire(server, provider.token()).http.get("training_runs")
        assert (answer.status_code, "can't be fetched" in answer.json()["detail"]) == (503, True), broken
        time.sleep(2.1)
    provider.broken = None
    assert status(server, provider.token()) == 200
