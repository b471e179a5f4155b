"""Who is served: without keys this machine alone, with keys whoever has one, and /hf as configured."""

import httpx
import pytest

import wire as raw
from process import PATIENCE, Process, free_port
from server import BINARY, KEY, TINY, Server, engine_flags

CONFIG = '[[tenants]]\nname = "alpha"\nkeys = [{ key = "tml-alpha-0123456789-0123456789" }]\n'


def test_a_public_url_without_keys_is_refused_at_the_start(tmp_path):
    command = [BINARY, "serve", "--port", free_port(), "--data-dir", tmp_path / "data", "--public-url", "https://a.example"]
    process = Process("server", command + engine_flags(None, "f32"), tmp_path / "log", cwd=tmp_path).start()
    assert process.child.wait(30 * PATIENCE) == 1
    assert "--insecure-no-auth" in process.text()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Without keys, and without another hub."""
    server = Server(tmp_path_factory.mktemp("local"), flags=["--hf-upstream", "none"])
    yield server.start()
    server.close()


def test_without_keys_what_a_proxy_passed_on_is_refused(local):
    for path in ("/api/v1/sessions", "/metrics"):
        url, key = f"{local.url}{path}", {"x-api-key": KEY}
        assert httpx.get(url, headers=key).status_code == 200
        assert httpx.get(url, headers=key | {"x-forwarded-for": "203.0.113.9"}).status_code == 403


def test_the_hub_without_an_upstream_has_what_is_served_alone(local):
    assert httpx.get(f"{local.url}/hf/{TINY}/resolve/main/config.json").status_code == 200
    missing = httpx.get(f"{local.url}/hf/org/other/resolve/main/config.json")
    assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """With keys, for /hf too."""
    server = Server(tmp_path_factory.mktemp("guarded"), config=CONFIG, flags=["--hf-require-key", "--hf-upstream", "https://huggingface.co"])
    yield server.start()
    server.close()


def test_a_bearer_token_is_a_key(guarded):
    wire = raw.Wire(guarded, key="tml-alpha-0123456789-0123456789")
    del wire.http.headers["x-api-key"]
    assert wire.post("create_session", {}).status_code == 401
    wire.http.headers["authorization"] = "Bearer tml-alpha-0123456789-0123456789"
    assert wire.session()


def test_the_hub_asks_for_a_key_and_knows_another_hub(guarded):
    """Its clients send HF_TOKEN as a bearer token."""
    url, key = f"{guarded.url}/hf/{TINY}/resolve/main/config.json", {"authorization": "Bearer tml-alpha-0123456789-0123456789"}
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers=key).status_code == 200
    other = httpx.get(f"{guarded.url}/hf/api/datasets/org/data?full=1", headers=key)
    assert (other.status_code, other.headers["location"]) == (307, "https://huggingface.co/api/datasets/org/data?full=1")
