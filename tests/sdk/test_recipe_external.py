"""Episodes of external users: the gateway in front of the recording proxy, and a run that learns from them."""

import json
import socket
import threading
import time
import types
import urllib.error
import urllib.request

import pytest

import chat_model
import folders
from fake_service import Service
from recipes import Scripted, chat_of_tiny_model, metrics, settings

from trainyard.recipes import async_grpo  # isort: skip
from trainyard.recipes.core import run as runs  # isort: skip
from trainyard.recipes.core.agents import Proxy, play_any  # isort: skip
from trainyard.recipes.core.config import ConfigError  # isort: skip
from trainyard.recipes.core.rollout import Limits  # isort: skip
from trainyard.recipes.envs import external  # isort: skip

KEY = "a key of users"
LIMITS = Limits(max_turns=2)


@pytest.fixture(scope="module")
def chat():
    return chat_of_tiny_model()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("EXTERNAL_KEY", KEY)
    monkeypatch.setattr(external, "LOOK_SECONDS", 0.05)


@pytest.fixture
def suite(key):
    made = external.External(seconds=30.0)
    yield made
    made.gateway.close()


def call(url, key, body=None, method="POST", **headers):
    """Status and JSON of an answer."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"authorization": f"Bearer {key}", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def claimed(url, wait=10):
    status, found = call(f"{url}/sessions", KEY, {"wait": wait})
    assert status == 201, found
    return types.SimpleNamespace(**found, url=found["base_url"].removesuffix("/v1"))


def said(session, *texts):
    """The reply to a conversation."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    status, found = call(f"{session.base_url}/chat/completions", session.api_key, {"model": "any", "messages": messages})
    assert status == 200, found
    return found["choices"][0]["message"]["content"]


class Played(threading.Thread):
    """An episode of the recipe."""

    def __init__(self, suite, policy, chat, task=7):
        super().__init__(daemon=True)
        self.suite, self.policy, self.chat, self.task = suite, policy, chat, task
        self.trajectories, self.error = None, None
        self.start()

    def run(self):
        try:
            with Proxy() as proxy:
                self.trajectories = play_any(self.suite.make(self.task), proxy, self.policy, self.chat, LIMITS, 0)
        except Exception as error:
            self.error = error

    def ended(self):
        self.join(20)
        assert not self.is_alive()
        return self


def test_what_a_user_gets_is_learned_with_its_reward(suite, chat):
    played = Played(suite, Scripted(chat, "Hello.", "Well."), chat)
    session = claimed(suite.gateway.url)
    assert session.task == 7 and session.seconds == 30.0
    first = said(session, "Hi")
    assert (first, said(session, "Hi", first, "And?")) == ("Hello.", "Well.")
    status, models = call(f"{session.base_url}/models", session.api_key, method="GET")
    assert status == 200 and models["data"]
    assert call(f"{session.url}/reward", session.api_key, {"reward": 0.75, "metrics": {"stars": 3}}) == (200, {})
    (one,) = played.ended().trajectories
    assert (one.reward, one.metrics, one.turns) == (0.75, {"stars": 3.0}, 2)
    assert chat.tokenizer.decode(one.tokens).endswith("Hello.<|end|><|user|>And?<|end|><|assistant|>Well.<|end|>")
    assert call(f"{session.url}/reward", session.api_key, {"reward": 1})[0] == 404, "it is over"


def test_sessions_are_claimed_in_order_and_once(suite, chat):
    played = []
    for task in range(3):
        played.append(Played(suite, Scripted(chat, f"{task}."), chat, task))
        while suite.gateway.offers.qsize() <= task:
            time.sleep(0.01)
    sessions = [claimed(suite.gateway.url) for _ in played]
    assert [session.task for session in sessions] == [0, 1, 2]
    status, found = call(f"{suite.gateway.url}/sessions", KEY, {"wait": 0})
    assert status == 503 and "no episode is open" in found["error"]["message"]
    for session in reversed(sessions):
        assert said(session, "Hi") == f"{session.task}."
        call(f"{session.url}/reward", session.api_key, {"reward": session.task})
    assert [one.ended().trajectories[0].reward for one in played] == [0, 1, 2]


def test_what_is_refused(suite, chat):
    url = suite.gateway.url
    played = Played(suite, Scripted(chat, "Hello."), chat)
    session = claimed(url)
    reward, own = f"{session.url}/reward", session.api_key
    cases = [
        (f"{url}/sessions", "another", {}, 401, "authorization"),
        (f"{url}/sessions", KEY, {"wait": 61}, 400, "wait"),
        (f"{url}/sessions", KEY, {"wait": True}, 400, "wait"),
        (f"{url}/sessions", KEY, b"[", 400, "not JSON"),
        (f"{url}/sessions", KEY, [1], 400, "JSON object"),
        (f"{url}/other", KEY, {}, 404, "/other"),
        (reward, KEY, {"reward": 1}, 401, "authorization"),
        (reward, own, {}, 400, "reward"),
        (reward, own, {"reward": "1"}, 400, "reward"),
        (reward, own, {"reward": 10**400}, 400, "reward"),
        (reward, own, b'{"reward": NaN}', 400, "reward"),
        (reward, own, {"reward": 1, "metrics": {"a": None}}, 400, "metrics"),
        (reward, own, {"reward": 1, "score": 1}, 400, "score"),
        (f"{session.url}/v1/embeddings", own, {}, 404, "embeddings"),
        (f"{session.base_url}/chat/completions", own, {"messages": [], "stream": True}, 400, "stream"),
    ]
    for where, given, body, status, named in cases:
        found = call(where, given, body)
        assert found[0] == status and named in found[1]["error"]["message"], (where, body, found)
    with socket.create_connection(suite.gateway.server.server_address) as connection:
        connection.sendall(b"POST /sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    assert call(session.url, own, method="DELETE") == (200, {})
    assert "gave the episode up" in str(played.ended().error)


def test_a_reward_waits_for_the_answers(suite, chat):
    begun, ends = threading.Event(), threading.Event()

    class Slow(Scripted):
        def sample(self, prompt, limits, seed):
            begun.set()
            ends.wait(20)
            return super().sample(prompt, limits, seed)

    played = Played(suite, Slow(chat, "Hello."), chat)
    session = claimed(suite.gateway.url)
    asking = threading.Thread(target=said, args=(session, "Hi"))
    asking.start()
    assert begun.wait(10)
    status, found = call(f"{session.url}/reward", session.api_key, {"reward": 1})
    assert status == 409 and "still being sampled" in found["error"]["message"]
    ends.set()
    asking.join(10)
    assert call(f"{session.url}/reward", session.api_key, {"reward": 1}) == (200, {})
    assert played.ended().trajectories[0].sampled > 0


def test_a_user_who_posts_nothing_loses_the_session(chat):
    suite = external.External(seconds=0.2)
    played = Played(suite, Scripted(chat), chat)
    session = claimed(suite.gateway.url)
    assert "no reward within 0.2 s" in str(played.ended().error) and isinstance(played.error, TimeoutError)
    assert call(f"{session.url}/reward", session.api_key, {"reward": 1})[0] == 404
    suite.gateway.close()


def test_an_episode_that_the_recipe_gave_up_is_not_handed_out(suite, chat):
    late, fresh = Scripted(chat), Scripted(chat, "Hello.")
    first = Played(suite, late, chat, 1)
    while not suite.gateway.offers.qsize():
        time.sleep(0.01)
    late.ended = True
    second = Played(suite, fresh, chat, 2)
    session = claimed(suite.gateway.url)
    assert session.task == 2
    call(session.url, session.api_key, method="DELETE")
    assert "no user claimed" in str(first.ended().error) and second.ended().error


def test_settings_are_checked(suite, monkeypatch):
    with pytest.raises(ConfigError, match="eval_tasks.*set it to 0"):
        external.External(held_out=True).make(0)
    with pytest.raises(ConfigError, match=r"environment.options.seconds: must be more than 0"):
        external.External(seconds=0)
    port = suite.gateway.server.server_address[1]
    with pytest.raises(ConfigError, match=rf"environment.options.port: 127.0.0.1:{port} can't be opened"):
        external.External(port=port)
    monkeypatch.delenv("EXTERNAL_KEY")
    with pytest.raises(ConfigError, match="EXTERNAL_KEY is not set"):
        external.External()


def test_a_run_learns_from_external_users(tmp_path, monkeypatch):
    folder = chat_model.write(folders.new() / "tiny-chat")
    service = Service(chat_model.tokenizer(folder))
    monkeypatch.setattr(runs.tinker, "ServiceClient", lambda **_: service)
    monkeypatch.setattr(runs, "wait_for", lambda *_: None)
    monkeypatch.setattr(runs, "rest", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    over, rewards = threading.Event(), []

    def use():
        while not over.is_set():
            try:
                status, found = call(f"http://127.0.0.1:{port}/sessions", KEY, {"wait": 1})
            except OSError:
                time.sleep(0.05)
                continue
            if status == 201:
                session = types.SimpleNamespace(**found, url=found["base_url"].removesuffix("/v1"))
                rewards.append(sum(map(int, said(session, "A number?"))) / 40)
                call(f"{session.url}/reward", session.api_key, {"reward": rewards[-1]})

    users = [threading.Thread(target=use, daemon=True) for _ in range(2)]
    for user in users:
        user.start()
    flags = settings(
        tmp_path / "run", folder, keep=9, steps=3, groups=2, group_size=1, algorithm="reinforce_pp", eval_tasks=0, concurrency=4,
        **{"environment.name": "external", "environment.options.port": port, "limits.seconds": 0},
    )  # fmt: skip
    try:
        assert async_grpo.cli(flags) == 0
    finally:
        over.set()
    lines = metrics(tmp_path / "run")
    assert [line["step"] for line in lines] == [0, 1, 2]
    means = [(one + other) / 2 for at, one in enumerate(rewards) for other in rewards[:at]]
    assert all(min(abs(line["reward"] - mean) for mean in means) < 1e-9 for line in lines), (lines, rewards)
