"""Each module shares one server; what it serves is the module's `MODELS`, `DTYPE` and `CONFIG`."""

import os
import pathlib
import signal
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import pytest

from helpers import client, lora
from server import TINY, Server
from wire import Wire

TEST_LIMIT_SECONDS = 240


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    module = request.module
    options = {"models": "MODELS", "dtype": "DTYPE", "config": "CONFIG"}
    chosen = {key: getattr(module, name) for key, name in options.items() if hasattr(module, name)}
    running = Server(tmp_path_factory.mktemp(module.__name__), **chosen).start()
    yield running
    code = running.stop()
    assert code == 0, f"exit code {code} after SIGTERM:\n{running.tail()}"
    assert "panicked at" not in running.log.read_text(errors="replace"), running.tail(100)


@pytest.fixture(scope="module")
def service(server):
    with client(server) as connected:
        yield connected


@pytest.fixture
def run(service):
    """A fresh LoRA run."""
    return lora(service)


@pytest.fixture(scope="module")
def sampler(service):
    """The base model."""
    return service.create_sampling_client(base_model=TINY).result(60)


@pytest.fixture(scope="module")
def wire(server):
    return Wire(server)


@pytest.fixture(autouse=True)
def limit(request):
    """The SDK retries some failures for minutes: a test that hangs says where."""

    def expire(signum, frame):
        raise TimeoutError(f"{request.node.name} ran longer than {TEST_LIMIT_SECONDS} s")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.alarm(TEST_LIMIT_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failure shows the end of its server's log."""
    report = (yield).get_result()
    server = item.funcargs.get("server") if hasattr(item, "funcargs") else None
    if report.failed and server is not None:
        report.sections.append(("server log", server.tail()))
