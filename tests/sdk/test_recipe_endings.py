"""How a recipe ends: the path of its weights, and one line for a server that is absent or refuses the key."""

import json
import os
import re
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
import tinker

import chat_model
import folders
from fake_service import Service
from local_server import serving
from process import free_port
from recipes import conversations
from server import REPOSITORY

from trainyard.recipes import eval as evaluation  # isort: skip
from trainyard.recipes import sft  # isort: skip
from trainyard.recipes.core import run as runs  # isort: skip
from trainyard.recipes.core import server as servers  # isort: skip
from trainyard.recipes.core.config import ConfigError, RecipeError  # isort: skip

FOLDER = chat_model.write(folders.new() / "tiny-chat")


@pytest.mark.parametrize("scalar", [False, True])
def test_a_finished_run_prints_where_its_weights_are(tmp_path, capsys, monkeypatch, scalar):
    service = Service(chat_model.tokenizer(FOLDER))
    monkeypatch.setattr(runs.tinker, "ServiceClient", lambda **_: service)
    monkeypatch.setattr(runs, "wait_for", lambda *_: None)
    path = "tinker://run/weights/final-" if scalar else "tinker://run/sampler_weights/final"
    for _ in range(2):
        # The second time there is nothing left to do.
        with runs.opened("sft", runs.Common(folder=str(tmp_path / "run"), model="m", steps=2), scalar) as run:
            for step in run.steps():
                run.record(step, {"loss": 1.0})
                run.after(step)
        last = capsys.readouterr().out.splitlines()[-1]
        final = json.loads((tmp_path / "run" / "final.json").read_text())
        assert final["reward_model" if scalar else "sampler"].startswith(path)
        assert last == f"sft: 2 steps are done: {final['reward_model' if scalar else 'sampler']}"
    assert service.runs[0].published == (0 if scalar else 1)
    with pytest.raises(KeyError), runs.opened("sft", runs.Common(folder=str(tmp_path / "other"), model="m", steps=2)):
        raise KeyError
    assert capsys.readouterr().out == "", "a run that did not finish has no weights"


def arguments(tmp_path):
    return [f"--folder={tmp_path / 'run'}", f"--data={conversations(tmp_path / 'data.jsonl')}", "--model=m", "--steps=1"]


def test_an_absent_server_is_one_line_and_an_end(tmp_path, capsys, monkeypatch):
    url = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("TINKER_BASE_URL", url)
    monkeypatch.setenv("TINKER_API_KEY", "tml-x")
    monkeypatch.setattr(servers, "GIVE_UP_SECONDS", 3.0)
    for recipe, argv in ((sft, arguments(tmp_path)), (evaluation, ["--model=m"])):
        began = time.monotonic()
        assert recipe.cli(argv) == 1
        assert 3 < time.monotonic() - began < 10
        captured = capsys.readouterr()
        assert captured.out == ""
        first, second = captured.err.splitlines()
        assert re.match(rf"{url}\S* is not available: ConnectError: .*; still trying for up to 3 s", first)
        assert re.search(r"is not available after [34] s: ConnectError: .*; start it, or change TINKER_BASE_URL$", second)


def test_a_server_that_comes_late_is_waited_for(capsys, monkeypatch):
    answers = iter([httpx.ConnectError("refused")] * 5)

    def get(url, timeout):
        for error in answers:
            raise error
        return httpx.Response(404)

    monkeypatch.setattr(servers.httpx, "get", get)
    began = time.monotonic()
    servers.wait_for("http://x", "api")
    assert 2 < time.monotonic() - began < 10
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("http://x is not available: ConnectError: refused") and second == "http://x is available again"


def test_an_address_that_is_none_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TINKER_BASE_URL", "127.0.0.1:8000")
    assert sft.cli(arguments(tmp_path)) == 2
    text = capsys.readouterr().err
    assert "TINKER_BASE_URL: expected an address like http://127.0.0.1:8000, found '127.0.0.1:8000'" in text


class Guarded(BaseHTTPRequestHandler):
    """Knows no key."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        content = json.dumps({"detail": "unknown API key"}).encode()
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def guarded():
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Guarded)) as url:
        yield url


@pytest.mark.parametrize("key", ["tml-wrong", ""])
def test_a_wrong_key_is_one_line(tmp_path, guarded, key):
    """In a process of its own, with whatever the official package writes."""
    environment = os.environ | {
        "TINKER_BASE_URL": guarded, "TINKER_API_KEY": key, "HOME": str(tmp_path), "TINKER_TELEMETRY": "0",
        "PYTHONPATH": str(REPOSITORY / "client-sdk" / "python" / "src"),
    }  # fmt: skip
    command = [sys.executable, "-m", "trainyard.recipes.sft", *arguments(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "" and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    if key:
        assert done.returncode == 2
        assert last == f"trainyard.recipes.sft: TINKER_API_KEY: {guarded} refuses the key: unknown API key", done.stderr
    else:
        assert done.returncode == 1 and "TINKER_API_KEY" in last, done.stderr


def test_errors_of_the_server_are_lines(monkeypatch):
    monkeypatch.setenv("TINKER_BASE_URL", "http://x/")
    request = httpx.Request("POST", "http://x")
    response = httpx.Response(409, request=request)
    cases = [
        (tinker.APIConnectionError(request=request), RecipeError, "http://x stopped answering: .*the same command resumes the run"),
        (tinker.ConflictError("c", response=response, body={"detail": "seq_id"}), RecipeError, "http://x refused a request: 409: seq_id"),
        (tinker.PermissionDeniedError("p", response=response, body=None), ConfigError, "TINKER_API_KEY: http://x refuses the key: p"),
        (tinker.RequestFailedError("nan", "7", tinker.types.RequestErrorCategory.User), RecipeError, "http://x: RequestFailedError: nan"),
    ]
    for error, kind, message in cases:
        found = servers.in_one_line(error)
        assert type(found) is kind and re.fullmatch(message, str(found)), found
