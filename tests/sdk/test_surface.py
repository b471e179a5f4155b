"""Every public method, command, value and request of the installed SDK, driven against a real server.

What there is comes from the package itself; `surface/` has a driver for each name. docs/users/compatibility.md lists the
outcome.
"""

import pytest
import tinker.lib.public_interfaces.training_client as training_client

import surface.catalogue
import surface.commands
import surface.data
import surface.requests
import surface.sampling
import surface.searches
import surface.service
import surface.sessions
import surface.training
import surface.values
import surface.weights
from surface import call, losses, page, reflection
from surface.table import TABLE, State
from surface.world import CONFIG, MODELS, World

__all__ = ["CONFIG", "MODELS"]

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::tinker.ExperimentalWarning")


@pytest.fixture(scope="module")
def world(server, tmp_path_factory):
    made = World(server, tmp_path_factory.mktemp("surface"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def tensors(monkeypatch):
    monkeypatch.setattr(training_client, "torch", losses.Tensors)


def test_nothing_is_forgotten_and_nothing_is_gone():
    offered = {*reflection.methods(), *reflection.commands(), *reflection.values()}
    requests = {name for name in TABLE if reflection.is_request(name)}
    assert offered - set(TABLE) == set(), "without an entry in the table"
    assert set(TABLE) - requests - offered == set(), "an entry for what the SDK does not have"
    assert requests - reflection.calls() - set(surface.requests.LATER) == set(), "an entry for a request that the SDK does not make"


@pytest.mark.parametrize("name", sorted(TABLE))
def test_entry(world, name):
    entry = TABLE[name]
    driven = call.of(world, name)
    entry.drive(world, driven)
    if entry.state is State.WORKS:
        assert driven.left_out() - entry.unused == set(), "never passed by the driver"


def test_every_other_request_is_described(world):
    """A request without an entry is one that the server's document has."""
    document = world.http.get(f"{world.server.url}/openapi.json").json()
    described = {
        f"{verb.upper()} {reflection.pattern(path)}" for path, verbs in document["paths"].items() for verb in verbs
    }
    assert set(surface.requests.served()) - described == set()


def test_the_page_says_so(request):
    """Written anew with `--write-compatibility`, after a run without a failure."""
    if request.config.getoption("--write-compatibility"):
        assert request.session.testsfailed == 0, "the page is written after a run without a failure alone"
        page.write()
    page.check()
