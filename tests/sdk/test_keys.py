"""API keys of the store: created, limited, expired and revoked while servers run."""

import subprocess
import time

import httpx
import pytest
import tinker as sdk

import wire as raw
from deployment import launch
from helpers import WAIT, client, lora, rest
from server import BINARY, TINY
from tenancy import CONFIG, ROOT, admin, new_key, seconds_until, tinker, trainyard

REVOKED_WITHIN = 1.0
"""After so many seconds every server refuses a revoked key."""


def status(url_or_server, key) -> int:
    return raw.Wire(url_or_server, key).http.get("training_runs").status_code


def test_a_key_of_the_command_line_is_accepted_by_the_running_server_until_it_is_revoked(server):
    key, number = new_key(server, "acme", "--note", "of a test")
    with client(server, key) as service:
        run = lora(service)
        assert run.get_info().model_data.model_name == TINY
    assert rest(server, key).list_training_runs().result(WAIT).training_runs
    (line,) = [line for line in trainyard(server, "keys", "list", "acme") if line[0] == str(number)]
    assert key.startswith(line[1]) and key not in line
    trainyard(server, "keys", "revoke", "acme", number)
    time.sleep(REVOKED_WITHIN)
    refused = raw.Wire(server, key).http.get("training_runs")
    assert (refused.status_code, refused.json()["detail"]) == (401, "the API key was revoked")
    with pytest.raises(sdk.AuthenticationError):
        rest(server, key).list_training_runs().result(WAIT)
    assert "does not exist" in trainyard(server, "keys", "revoke", "acme", number, fails=True)[-1][0]


def test_roles_and_scopes_limit_what_a_key_changes(server):
    reader = raw.Wire(server, new_key(server, "acme", "--role", "read-only")[0])
    assert reader.http.get("training_runs").status_code == 200
    refused = reader.post("create_session", {})
    assert (refused.status_code, "needs the scope" in refused.json()["detail"]) == (403, True)
    sampler = raw.Wire(server, new_key(server, "acme", "--scope", "sample")[0])
    session = sampler.session()
    assert sampler.sampling_session(session).status_code == 200
    assert sampler.create_model(session).status_code == 403
    for key in (reader, sampler):
        assert key.http.get("admin/keys").status_code == 403


def test_a_key_expires(server):
    with admin(server.url) as root:
        body = {"name": "short", "expires_in_seconds": 1}
        key = root.post("admin/keys?organisation=acme", json=body).json()["key"]
    time.sleep(1.1)
    refused = raw.Wire(server, key).http.get("training_runs")
    assert (refused.status_code, refused.json()["detail"]) == (401, "the API key has expired")


def test_admins_manage_their_own_organisation_and_operators_all(server):
    with admin(server.url) as root:
        user = {"email": "ann@acme.example", "name": "Ann", "role": "admin"}
        assert root.post("admin/users?organisation=acme", json=user).status_code == 200
        asked = {"name": "ann", "user": "ann@acme.example", "role": "admin"}
        key = root.post("admin/keys?organisation=acme", json=asked).json()["key"]
        with admin(server.url, key) as ann:
            # Another's looks like one that does not exist.
            for path in ("admin/keys", "admin/users", "admin/projects", "audit"):
                there, nowhere = (ann.get(path, params={"organisation": name}) for name in ("ops", "nowhere"))
                assert (there.status_code, nowhere.status_code) == (404, 404)
                detail = lambda answer: answer.json()["detail"]  # noqa: E731
                assert detail(there).replace("ops", "nowhere") == detail(nowhere)
            assert [found["name"] for found in ann.get("admin/organisations").json()["organisations"]] == ["acme"]
            assert ann.post("admin/organisations", json={"name": "mine"}).status_code == 403
            assert ann.post("admin/projects", json={"id": "p", "name": "P"}).json()["id"] == "p"
            assert ann.delete("admin/projects/p").status_code == 204
            gone = ann.delete("admin/projects/p")
            assert (gone.status_code, gone.json()["detail"]) == (404, 'project "p" does not exist')
            made = ann.post("admin/keys", json={"name": "of a program"}).json()
            assert status(server, made["key"]) == 200
            assert ann.delete(f"admin/keys/{made['details']['id']}").status_code == 204
            # Made known at once where it was revoked.
            assert status(server, made["key"]) == 401
            # Who is no admin any more administers nothing, and who is disabled may do nothing.
            root.put("admin/users/ann@acme.example?organisation=acme", json={"role": "member"})
            assert (ann.get("admin/keys").status_code, status(server, key)) == (403, 200)
            root.put("admin/users/ann@acme.example?organisation=acme", json={"disabled": True})
            assert ann.get("training_runs").status_code == 401
        assert root.post("admin/organisations", json={"name": "new"}).json()["name"] == "new"
        assert root.post("admin/organisations", json={"name": "new"}).status_code == 400


def test_the_official_command_line_logs_in_and_out(server, tmp_path):
    trainyard(server, "tenants", "add-user", "acme", "bea@acme.example")
    key, _ = new_key(server, "acme", "--user", "bea@acme.example")
    told = tinker(server.url, None, tmp_path, "auth", "login", stdin=f"{key}\n")
    assert "Logged in as bea@acme.example (acme)" in told
    assert "Tinker accessible: yes" in tinker(server.url, None, tmp_path, "auth", "status")
    own = raw.Wire(server, key).http
    assert own.get("auth/apikey/me").json()["name"] == "test"
    assert own.delete("auth/apikey/me").status_code == 204
    assert status(server, key) == 401
    described = raw.Wire(server, ROOT).http.get("auth/apikey/me")
    assert (described.status_code, ROOT[4:] in described.text) == (200, False)
    # A key of the file is not the store's to revoke.
    assert raw.Wire(server, ROOT).http.delete("auth/apikey/me").status_code == 403


def test_keys_of_the_store_end_the_time_without_keys(tmp_path, postgres_server):
    """On loopback everybody is the local tenant, until there is a key."""
    with launch("sqlite", tmp_path, postgres_server) as local:
        assert status(local, "tml-anything") == 200
        with admin(local.url, "tml-anything") as anyone:
            key = anyone.post("admin/keys", json={"name": "first", "role": "admin"}).json()["key"]
        assert (status(local, "tml-anything"), status(local, key)) == (401, 200)


def test_every_server_of_a_cluster_refuses_a_revoked_key(tmp_path, postgres_server):
    """Keys that are created, used on both servers and revoked; from then on by the clock."""

    def revoked_within(key, revoke) -> float:
        with admin(first, key) as here, admin(second, key) as there:
            statuses = lambda: [server.get("training_runs").status_code for server in (here, there)]  # noqa: E731
            assert statuses() == [200, 200]
            revoke()
            return seconds_until(lambda: statuses() == [401, 401])

    with launch("cluster", tmp_path, postgres_server, config=CONFIG, workers=1) as cluster:
        first, second = cluster.api_urls
        with admin(first) as root:
            for _ in range(3):
                made = root.post("admin/keys?organisation=acme", json={"name": "shared"}).json()
                path = f"admin/keys/{made['details']['id']}?organisation=acme"
                assert revoked_within(made["key"], lambda: root.delete(path)) < REVOKED_WITHIN  # noqa: B023
        # By the command line, which is no server.
        key, number = new_key(cluster, "acme")
        assert revoked_within(key, lambda: trainyard(cluster, "keys", "revoke", "acme", number)) < REVOKED_WITHIN


def test_an_address_that_guesses_keys_waits_and_whoever_works_there_does_not(server):
    """The proxies of this machine are trusted, so the clients of this test have addresses of their own."""

    def call(key, address, path="/api/v1/training_runs", **request):
        headers = {"x-api-key": key, "x-forwarded-for": f"198.51.100.9, {address}"}
        method = "POST" if request else "GET"
        return httpx.request(method, server.url + path, headers=headers, timeout=60, **request)

    def log_in(key, address):
        return call(key, address, "/console/login", json={"key": key})

    guesser, other = "203.0.113.1", "203.0.113.2"
    known, fresh = (new_key(server, "acme")[0] for _ in range(2))
    assert call(known, guesser).status_code == 200
    for guess in range(20):
        act = log_in if guess % 2 else call
        assert act(f"tml-guess-{guess}", guesser).status_code == 401
    for act in (call, log_in):
        waits = act(fresh, guesser)
        assert (waits.status_code, "too many wrong API keys" in waits.text) == (429, True)
        assert 1 <= int(waits.headers["retry-after"]) <= 32
    assert (call(known, guesser).status_code, call(fresh, other).status_code) == (200, 200)
    seconds_until(lambda: call(fresh, guesser).status_code == 200)
    log = server.text()
    assert "too many wrong API keys: the address is blocked for a while" in log and "console: login failed" in log
    assert "tml-guess" not in log
    with admin(server.url) as root:
        day = time.strftime("%Y-%m-%d", time.gmtime())
        entries = root.get(f"audit?day={day}").text
    assert "login_fail" in entries and "wrong_keys" in entries and "tml-guess" not in entries


def test_a_key_of_the_file_that_can_be_guessed_is_refused_at_the_start(tmp_path):
    (tmp_path / "trainyard.toml").write_text('[[tenants]]\nname = "t"\nkeys = [{ name = "ci", key = "tml-hunter2" }]\n')
    done = subprocess.run([BINARY, "serve", "--port", "0"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode != 0 and 'key of "ci" can be guessed: 42 bits at most' in done.stderr, done.stderr
    assert "hunter2" not in done.stdout + done.stderr
