"""The console on several servers: a session ends on all of them, and each shows samples and engines of all workers."""

import json

import httpx
import pytest

from deployment import launch
from helpers import ADAM, WAIT, client, datum, lora, sample
from helpers import TOKENS as TEXT
from server import TINY
from tenancy import CONFIG, ROOT, new_key, seconds_until

pytestmark = [pytest.mark.timeout(180), pytest.mark.deployments("sqlite")]
KNOWN_WITHIN = 1.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, postgres_server):
    with launch("cluster", tmp_path_factory.mktemp("console"), postgres_server, config=CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def key(cluster):
    return new_key(cluster, "acme", "--role", "admin")[0]


def logged_in(url, key) -> tuple[dict, dict]:
    """Headers of a browser that was logged in: those that read, and those that change something."""
    answer = httpx.post(f"{url}/console/login", json={"key": key}, timeout=30)
    cookie = {"cookie": answer.headers["set-cookie"].split(";")[0]}
    return cookie, cookie | {"x-csrf-token": answer.json()["csrf"]}


def overview(url, headers) -> list[dict]:
    return httpx.get(f"{url}/console/data/overview", headers=headers, timeout=30).json()["workers"]


def test_a_logout_ends_the_session_on_every_server(cluster, key):
    first, second = cluster.api_urls
    (leaving, changes), (staying, _) = logged_in(first, key), logged_in(first, key)
    status = lambda url, cookie: httpx.get(f"{url}/api/v1/training_runs", headers=cookie, timeout=30).status_code  # noqa: E731
    assert {status(url, cookie) for url in (first, second) for cookie in (leaving, staying)} == {200}
    with httpx.stream("GET", f"{second}/console/data/events?topic=overview", headers=leaving, timeout=30) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: overview"
        assert httpx.post(f"{first}/console/logout", headers=changes, timeout=30).status_code == 204
        assert seconds_until(lambda: status(second, leaving) == 401) < KNOWN_WITHIN
        assert status(first, leaving) == 401
        # What was open ends with the reason.
        assert any("ended by a logout" in line for line in lines)
    assert [status(url, staying) for url in (first, second)] == [200, 200]


def test_every_server_shows_samples_and_engines_of_all_workers(cluster, key):
    first, second = cluster.api_urls
    cookie, changes = logged_in(second, key)
    with client(cluster, key) as service:
        run = lora(service, TINY, user_metadata={"trainyard.store_samples": "3"})
        run.forward_backward([datum(TEXT)], "cross_entropy")
        run.optim_step(ADAM).result(WAIT)
        sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        path = f"console/data/runs/{run.model_id}/samples"
        events = f"{second}/console/data/events?topic=samples&run_id={run.model_id}"
        with httpx.stream("GET", events, headers=cookie, timeout=60) as stream:
            told = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
            assert next(told)["count"] == 0
            sampled = [sample(sampler, TEXT, max_tokens=4, stop=[]).sequences[0] for _ in range(4)]
            tokens = lambda answer: [shown["sequences"][0]["tokens"] for shown in answer["samples"]]  # noqa: E731
            found = next(answer for answer in told if tokens(answer)[:1] == [sampled[-1].tokens])
        newest = found["samples"][0]
        assert (newest["prompt"], newest["prompt_tokens"], newest["sampled"]) == (TEXT, len(TEXT), 1)
        assert newest["sequences"][0]["logprobs"] == pytest.approx(sampled[-1].logprobs)
        assert (found["newest"], found["count"]) == (3, 3)
    assert httpx.delete(f"{first}/{path}", headers=cookie, timeout=30).status_code == 403, "without the second token"
    assert httpx.delete(f"{first}/{path}", headers=changes, timeout=30).json() == {"deleted": 3}
    assert not any(worker["engine"] for worker in overview(first, cookie)), "only the operator sees them"
    operator = {"x-api-key": ROOT}
    held = lambda: [(worker["engine"] or {}).get("memory_bytes", 0) > 0 for worker in overview(first, operator)]  # noqa: E731
    seconds_until(lambda: held() == [True, True])
