"""The Python client without a server: one line after two seconds, with the address and the cause."""

import asyncio
import contextlib
import http.server
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

import trainyard
from local_server import serving
from process import free_port
from server import KEY, REPOSITORY
from trainyard import _notices
from trainyard.retry import Attempts


class Late(http.server.BaseHTTPRequestHandler):
    """Refuses its first requests with the statuses of a list."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        content = json.dumps({"session_id": "s", "detail": "busy"}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing."""


@contextlib.contextmanager
def late(port=0, statuses=()):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Late)
    server.statuses = list(statuses)
    with serving(server) as url:
        yield url


@contextlib.contextmanager
def deaf():
    """A port that takes no connection: its queue is full, so that attempts to connect wait."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        time.sleep(0.1)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def session(url, seconds):
    with trainyard.Client(url, KEY, retry=trainyard.RetryPolicy(seconds=seconds)) as client:
        return client.session_id


def asynchronous_session(url, seconds):
    async def program():
        async with trainyard.AsyncClient(url, KEY, retry=trainyard.RetryPolicy(seconds=seconds)) as client:
            return await client.session_id()

    return asyncio.run(program())


OPENERS = pytest.mark.parametrize("opened", [session, asynchronous_session], ids=["sync", "async"])


def lines(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "trainyard"]


@OPENERS
def test_an_absent_server_is_one_line(caplog, opened):
    url = f"http://127.0.0.1:{free_port()}"
    began = time.time()
    with pytest.raises(trainyard.TransportError, match="refused|attempts failed"):
        opened(url, 4)
    (line,) = lines(caplog)
    assert re.fullmatch(rf"{url} is not available: ConnectError: .*(refused|attempts failed).*; still trying for up to 2 s", line)
    assert 1.9 < caplog.records[-1].created - began < 3.5
    assert caplog.records[-1].levelno == logging.WARNING


@OPENERS
def test_a_server_that_takes_no_connection_is_one_line_too(caplog, opened):
    """An attempt to connect takes five seconds, but the line comes after two."""
    with deaf() as url:
        began = time.time()
        with pytest.raises(trainyard.TransportError):
            opened(url, 1)
    (line,) = lines(caplog)
    assert line.startswith(f"{url} is not available: no connection yet; still trying")
    assert 1.9 < caplog.records[0].created - began < 4


@OPENERS
def test_a_server_that_comes_back_is_a_line(caplog, opened):
    port = free_port()
    found = []
    waiting = threading.Thread(target=lambda: found.append(opened(f"http://127.0.0.1:{port}", 60)), daemon=True)
    waiting.start()
    time.sleep(2.5)
    with late(port) as url:
        waiting.join(30)
        assert found == ["s"]
    before, after = lines(caplog)[:2]
    assert before.startswith(f"{url} is not available: ConnectError") and after == f"{url} is available again"


def test_short_trouble_is_silent(caplog):
    with late(statuses=[503, 503]) as url:
        fast = trainyard.RetryPolicy(seconds=20, first_delay=0.01, longest_delay=0.02)
        client = trainyard.Client(url, KEY, retry=fast)
        assert client.session_id == "s"
    assert lines(caplog) == []


def test_a_server_that_refuses_for_long_is_a_line(caplog, monkeypatch):
    monkeypatch.setattr("trainyard.retry.QUIET_SECONDS", 0.05)
    with late(statuses=[503] * 20) as url:
        policy = trainyard.RetryPolicy(seconds=20, first_delay=0.02, longest_delay=0.02)
        assert trainyard.Client(url, KEY, retry=policy).session_id == "s"
    first, second = lines(caplog)[:2]
    assert first.startswith(f"{url} is not available: 503 Service Unavailable; still trying for up to 20 s")
    assert second == f"{url} is available again"


def test_many_requests_are_one_line(caplog, monkeypatch):
    monkeypatch.setattr("trainyard.retry.QUIET_SECONDS", 0.05)
    policy = trainyard.RetryPolicy(seconds=1, first_delay=0.02, longest_delay=0.02)
    client = trainyard.Client(f"http://127.0.0.1:{free_port()}", KEY, retry=policy)

    def ask():
        with pytest.raises(trainyard.TransportError):
            client.capabilities()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(caplog)) == 1


def test_no_timer_is_left_behind(monkeypatch):
    made = []

    class Timer(threading.Timer):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(threading, "Timer", Timer)
    with late() as url:
        client = trainyard.Client(url, KEY)
        assert client.session_id == "s"
        timers = [timer for timer in made if isinstance(getattr(timer.function, "__self__", None), Attempts)]
        assert timers, "the connection was watched"
        for timer in timers:
            timer.join(1)
            assert not timer.is_alive(), "cancelled once the connection was open"
    assert _notices.QUIET_SECONDS == 2.0


def test_a_program_without_logging_shows_the_line():
    url = f"http://127.0.0.1:{free_port()}"
    program = "import trainyard\ntrainyard.Client(retry=trainyard.RetryPolicy(seconds=3)).capabilities()"
    environment = os.environ | {"TRAINYARD_BASE_URL": url, "PYTHONPATH": str(REPOSITORY / "client-sdk" / "python" / "src")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert done.stderr.startswith(f"{url} is not available: ConnectError: "), done.stderr
