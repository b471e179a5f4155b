"""`trainyard top` in a pseudo-terminal."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from helpers import ADAM, ALICE, TWO_TENANTS, WAIT, client, datum, lora
from helpers import TOKENS as TEXT
from process import PATIENCE
from server import BINARY, KEY, TINY

CONFIG = TWO_TENANTS
CONTROL = re.compile(rb"\x1b(\[[0-9;?]*[ -/]*[@-~]|[()][AB0]|[=>])")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *words, **environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        environment = os.environ | {"TERM": "xterm-256color"} | environment
        self.child = subprocess.Popen(
            [str(word) for word in words], stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self.seen = b""

    def text(self) -> str:
        """What was written, without what moves the cursor or changes colours."""
        return CONTROL.sub(b" ", self.seen).decode(errors="replace")

    def wait_for(self, *parts, limit=20.0):
        deadline = time.monotonic() + limit * PATIENCE
        while not all(part in self.text() for part in parts):
            assert time.monotonic() < deadline, self.text()[-3000:]
            self.read(0.2)

    def read(self, limit):
        if select.select([self.master], [], [], limit)[0]:
            # Once the program has ended there is nothing more.
            with contextlib.suppress(OSError):
                self.seen += os.read(self.master, 65536)

    def press(self, keys: bytes):
        os.write(self.master, keys)

    def end(self) -> int:
        deadline = time.monotonic() + 10 * PATIENCE
        while self.child.poll() is None and time.monotonic() < deadline:
            # What it still writes has to go somewhere.
            self.read(0.1)
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.read(0.1)
        return self.child.wait()


def top(server, key=ALICE):
    return Terminal(BINARY, "top", "--url", server.url, TINKER_API_KEY=key)


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_it_shows_the_service_and_ends_when_asked(server, key):
    terminal = top(server)
    terminal.wait_for("Workers", "Queues", TINY, "Training: ", "q quits")
    with client(server, ALICE) as service:
        run = lora(service)
        run.forward_backward([datum(TEXT)], "cross_entropy").result(WAIT)
        run.optim_step(ADAM).result(WAIT)
    terminal.press(key)
    assert terminal.end() == 0
    # The screen is given back.
    assert b"\x1b[?1049h" in terminal.seen and b"\x1b[?1049l" in terminal.seen


def test_a_wrong_key_is_a_message(server):
    terminal = top(server, "tml-nobody-0123456789-0123456789")
    terminal.wait_for("not known to this server")
    assert terminal.end() == 1
    assert b"\x1b[?1049h" not in terminal.seen


def test_without_a_terminal_it_says_so(server):
    done = subprocess.run(
        [BINARY, "top", "--url", server.url], env=os.environ | {"TINKER_API_KEY": ALICE}, capture_output=True, text=True, timeout=30 * PATIENCE
    )
    assert done.returncode == 1 and "needs a terminal" in done.stderr


@pytest.mark.deployments("sqlite")
def test_a_server_without_a_console_is_a_message(tmp_path, deploy):
    with deploy(tmp_path, flags=["--no-console"]) as plain:
        terminal = top(plain, KEY)
        terminal.wait_for("serves no console (--no-console)")
        assert terminal.end() == 1
