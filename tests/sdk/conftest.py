"""Each module shares one server; what it serves is the module's `MODELS`, `DTYPE`, `CONFIG` and `FLAGS`.

How it is deployed is chosen with `--deployment`, and how its models are divided with `--parallel`. A module with `LAYOUTS` runs
with each of them where `--parallel` is not given. With `--device cuda` all servers compute on a GPU, the simulated one unless
`TRAINYARD_TEST_ON_GPU` is set; tests marked `processor` are left out then.
"""

import contextlib
import os
import pathlib
import sys
import weakref

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "client-sdk" / "python" / "src")]

import certifi
import pytest
from tinker.lib.internal_client_holder import InternalClientHolder

import cuda_device
import folders
import postgres as pg
from bucket import Bucket
from deployment import KINDS, launch
from exclusive import turn
from helpers import client, lora
from process import PATIENCE
from server import TINY, Server
from wire import Wire


# The longest modules. Parallel processes take whole modules, so one that started late would end alone.
FIRST = {"test_kill.py"}


def pytest_addoption(parser):
    default = os.environ.get("TRAINYARD_DEPLOYMENT", "sqlite")
    parser.addoption("--deployment", choices=KINDS, default=default, help="what the suite runs against")
    parser.addoption("--parallel", metavar="LAYOUT", help="how each server or worker divides its models, such as tp=2")
    parser.addoption("--device", choices=["cpu", "cuda"], default="cpu", help="what each server or worker computes on")
    parser.addoption("--full", action="store_true", help="also run tests marked `slow_layout`")
    parser.addoption("--write-compatibility", action="store_true", help="write the generated part of docs/users/compatibility.md")
    parser.addoption("--write-pictures", action="store_true", help="write the pictures of docs/users/console.md")


def pytest_configure(config):
    folders.begin(config)
    trust_one_authority()
    if layout := config.getoption("--parallel"):
        # Every process that a test starts inherits it.
        os.environ["TRAINYARD_PARALLEL"] = layout
    if config.getoption("--device") == "cuda":
        os.environ["TRAINYARD_DEVICE"] = "cuda"
        if not cuda_device.ON_GPU:
            os.environ["LD_LIBRARY_PATH"] = str(cuda_device.install(folders.new() / "libraries"))
            os.environ.update(cuda_device.SEVERAL)


def trust_one_authority():
    """Each client and program reads the certificates that it trusts: reading all authorities takes 30 ms of a processor, one takes 1.
    No test speaks to the internet; tests of HTTPS trust authorities of their own."""
    trusted = folders.of_run() / "trusted.pem"
    if not trusted.exists():
        first, end, _ = certifi.contents().partition("-----END CERTIFICATE-----\n")
        trusted.write_text(first + end)
    os.environ["SSL_CERT_FILE"] = str(trusted)
    os.environ.pop("SSL_CERT_DIR", None)


def pytest_generate_tests(metafunc):
    """All tests of a module with one layout, then all with the next."""
    layouts = getattr(metafunc.module, "LAYOUTS", None)
    if metafunc.config.getoption("--device") == "cuda" and layouts is not None:
        # A layout that --parallel names is that of all servers; each besides would take hours.
        layouts = [None]
    if layouts is not None and "layout" in metafunc.fixturenames and not metafunc.config.getoption("--parallel"):
        names = [layout or "single" for layout in layouts]
        metafunc.parametrize("layout", layouts, ids=names, indirect=True, scope="module")


def pytest_collection_modifyitems(config, items):
    """`deployments(KIND, …)` marks what makes sense with these alone. Tests that deploy by themselves run with sqlite.
    `processor(reason)` marks what makes no sense on a GPU, `real_device(reason)` what does not on a simulated one, `ranks(number)`
    what needs a GPU for each of so many ranks, `slow_layout(reason, parameters, …)` which parameters of a test only
    `--full` runs."""
    items.sort(key=lambda item: item.path.name not in FIRST)
    kind, device = config.getoption("--deployment"), config.getoption("--device")
    for item in items:
        for name, where in [("processor", "a GPU"), ("real_device", "a simulated GPU")]:
            for marker in item.iter_markers(name):
                (reason,) = marker.args
                if device == "cuda" and not (name == "real_device" and cuda_device.ON_GPU):
                    item.add_marker(pytest.mark.skip(reason=f"not on {where}: {reason}"))
        if (limit := item.get_closest_marker("timeout")) and PATIENCE > 1:
            item.add_marker(pytest.mark.timeout(limit.args[0] * PATIENCE), append=False)
        marker = item.get_closest_marker("ranks")
        if marker and device == "cuda" and marker.args[0] > cuda_device.COUNT:
            item.add_marker(pytest.mark.skip(reason=f"{marker.args[0]} ranks need as many GPUs"))
        marker = item.get_closest_marker("slow_layout")
        if marker and not config.getoption("--full"):
            reason, *ids = marker.args
            if any(item.name.endswith(f"[{chosen}]") for chosen in ids):
                item.add_marker(pytest.mark.skip(reason=f"only with --full, as in make test-full: {reason}"))
        marker = item.get_closest_marker("deployments")
        if marker and kind not in marker.args:
            item.add_marker(pytest.mark.skip(reason=f"not for {kind}"))


@pytest.fixture(scope="session")
def postgres_server():
    """Starts a PostgreSQL server when it is first called, unless there is one; returns a URL."""
    with contextlib.ExitStack() as stack:
        urls = [url] if (url := os.environ.get(pg.URL_VARIABLE)) else []

        def server() -> str:
            if not urls:
                cluster = pg.Cluster()
                stack.callback(cluster.close)
                urls.append(cluster.start().url)
            return urls[0]

        yield server


@pytest.fixture
def postgres(postgres_server):
    """The URL of a fresh database."""
    with pg.database(postgres_server()) as url:
        yield url


@pytest.fixture(scope="session")
def deploy(request, postgres_server):
    """Deploys as chosen: `deploy(folder, **options)` is a context manager."""
    kind = request.config.getoption("--deployment")
    return lambda folder, **options: launch(kind, folder, postgres_server, **options)


@pytest.fixture(scope="module", autouse=True)
def closed_clients():
    """Clients that a module leaves open end with it. Their heartbeats would go on, to whoever is given the server's port next."""
    opened = weakref.WeakSet()
    begin = InternalClientHolder.__init__

    def remembered(holder, *positional, **named):
        opened.add(holder)
        begin(holder, *positional, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InternalClientHolder, "__init__", remembered)
        yield
    for holder in list(opened):
        holder.close()


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """An S3 server with a bucket, which processes that are started meanwhile have the credentials of."""
    running = Bucket(tmp_path_factory.mktemp("s3"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running.start()
    running.close()


@pytest.fixture(scope="module")
def layout(request) -> list[str]:
    """Flags for one of the module's `LAYOUTS`; none for one rank, and where `--parallel` says it for all."""
    chosen = getattr(request, "param", None)
    return ["--parallel", chosen] if chosen else []


@pytest.fixture(scope="module")
def server(request, tmp_path_factory, deploy, layout):
    module = request.module
    options = {"models": "MODELS", "dtype": "DTYPE", "config": "CONFIG", "flags": "FLAGS"}
    chosen = {key: getattr(module, name) for key, name in options.items() if hasattr(module, name)}
    chosen["flags"] = [*chosen.get("flags", []), *layout]
    with deploy(tmp_path_factory.mktemp(module.__name__), **chosen) as running:
        yield running
        code = running.stop()
        assert code == 0, f"exit code {code} after SIGTERM:\n{running.tail()}"
        assert "panicked at" not in running.text(), running.tail(100)


@pytest.fixture
def own(tmp_path, deploy):
    """A server that a test may kill."""
    with deploy(tmp_path) as running:
        yield running
        running.stop()


@pytest.fixture
def simulated(tmp_path, monkeypatch):
    """Processes find the simulated libraries, in a folder of this test's, in place of the real ones, unless a GPU is tested."""
    if cuda_device.ON_GPU:
        return None
    folder = cuda_device.install(tmp_path / "libraries")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    return folder


@pytest.fixture
def started(tmp_path):
    """`started(flag, …)`: a server in one process, as one test needs it."""
    servers = []

    def start(*flags, dtype="f32"):
        servers.append(Server(tmp_path, dtype=dtype, flags=[*flags, "--memory-mib", "1024"]))
        return servers[-1].start()

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def undisturbed_on(tmp_path_factory):
    """`undisturbed_on(flags)`: the outcome of the workload on one process with SQLite and nobody else there."""
    # Its size depends on the device, which the configuration of a run in one process sets after this file is read.
    from workload import Outcome, work

    outcomes: dict[tuple, Outcome] = {}

    def outcome(flags=()) -> Outcome:
        key = tuple(flags)
        if key not in outcomes:
            calm = Server(tmp_path_factory.mktemp("calm"), flags=list(flags)).start()
            outcomes[key] = work(calm)
            assert calm.stop() == 0
        return outcomes[key]

    return outcome


@pytest.fixture(scope="session")
def undisturbed(undisturbed_on):
    return undisturbed_on()


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
    return service.create_sampling_client(base_model=TINY).result(60 * PATIENCE)


@pytest.fixture(scope="module")
def wire(server):
    return Wire(server)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Waits before the test's time limit begins."""
    with turn(item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failure shows the end of its server's log."""
    report = (yield).get_result()
    used = getattr(item, "funcargs", {})
    server = used.get("server") or used.get("own")
    if report.failed and server is not None:
        report.sections.append(("server log", server.tail()))
