"""Attempts of the recipe `eval` that fail or hang: they do not pass, and too many end the evaluation."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import recipes  # noqa: F401 - makes the package importable
from local_server import serving

from trainyard.recipes import eval as evaluation  # isort: skip
from trainyard.recipes.core.config import ConfigError, load  # isort: skip
from trainyard.recipes.envs import Environment, Outcome  # isort: skip

COUNT = 10


class Api(BaseHTTPRequestHandler):
    """Answers each conversation with its last message; refuses those that begin with a status."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["messages"][-1]["content"]
        status = int(text) if text.isdigit() else 200
        answer = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        content = json.dumps(answer if status == 200 else {"error": {"message": "too long"}}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def api(monkeypatch):
    monkeypatch.delenv("TINKER_API_KEY", raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    # An evaluation that ends early breaks its connections.
    server.handle_error = lambda *_: None
    with serving(server) as url:
        yield url


class Task(Environment):
    def __init__(self, first, hangs, fails):
        self.first, self.hangs, self.fails = first, hangs, fails

    def reset(self):
        return [{"role": "user", "content": self.first}]

    def step(self, reply):
        if self.hangs:
            threading.Event().wait()
        if self.fails:
            raise RuntimeError("no database")
        return Outcome(float(reply == self.first))


class Suite:
    """`texts` are what tasks ask instead of a word."""

    def __init__(self, held_out=False, hung=(), broken=(), texts=None):
        self.hung, self.broken, self.texts = hung, broken, texts or {}

    def __len__(self):
        return COUNT

    def make(self, index):
        return Task(self.texts.get(str(index), "word"), index in self.hung, index in self.broken)


def evaluated(api, capsys, options, **more):
    flags = {"model": "m", "api": api, "environment.name": f"{__name__}:Suite", "environment.options": options, "samples": 2}
    code = evaluation.cli([f"--{key}={value}" for key, value in (flags | more).items()])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_failed_attempts_have_not_passed(tmp_path, api, capsys):
    output = tmp_path / "attempts.jsonl"
    options = '{hung = [1], broken = [2], texts = {3 = "400"}}'
    code, out, err = evaluated(api, capsys, options, seconds=5, failures=0.3, output=output)
    assert code == 0, err
    summary = json.loads(out)
    ends = {f"{key}{end}": summary.pop(f"{key}{end}") for key in ("pass@1", "reward") for end in ("_low", "_high")}
    assert summary == {"model": "m", "pass@1": 0.7, "reward": 0.7, "tasks": 10.0, "failed": 6.0}
    # Seven of ten: what the bootstrap of a share gives.
    assert ends == {"pass@1_low": 0.4, "pass@1_high": 1.0, "reward_low": 0.4, "reward_high": 1.0}
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    errors = {line["task"]: line["error"] for line in lines if "error" in line}
    assert errors[1] == "EpisodeTimeout: no end after 5 s" and errors[2] == "RuntimeError: no database"
    assert errors.keys() == {1, 2, 3} and errors[3].startswith("RefusedError: 400: ") and len(lines) == 20


def test_too_many_failed_attempts_end_the_evaluation(api, capsys):
    code, out, err = evaluated(api, capsys, "{broken = [0, 1, 2, 3]}", failures=0.2)
    assert (code, out) == (1, "")
    expected = "6 attempts failed, failures = 0.2 allows 4 of 20; the last error: RuntimeError: no database"
    assert err.splitlines()[-1] == f"trainyard.recipes.eval: {expected}"


def test_a_refused_key_ends_it_at_once(api, capsys):
    code, _, err = evaluated(api, capsys, '{texts = {0 = "401"}}', failures=0.9)
    assert code == 2 and "api: 401: " in err.splitlines()[-1]


def test_settings():
    for flag, name in (("--seconds=-1", "seconds"), ("--failures=1", "failures")):
        with pytest.raises(ConfigError, match=name):
            load(evaluation.Config, ["--model=m", flag], {}, "x")
