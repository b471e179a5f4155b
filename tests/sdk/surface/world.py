"""The server that the surface is driven against, and clients of its tenants."""

import contextlib
import itertools
import pathlib

import tinker
from tinker import types

import chat_model
import folders
import wire as raw
from helpers import TOKENS, WAIT, client, datum, lora, rest, train
from server import TINY
from surface import losses
from tenancy import new_key, trainyard
from tenancy import tinker as command_line

MEMBER, CHIEF, STRANGER = "tml-member-0123456789-0123456789", "tml-chief-0123456789-0123456789", "tml-stranger-0123456789-0123456789"
LONG = f"{TINY}:peft:256"
"""Another name for the same weights."""

FOLDER = chat_model.write(folders.new() / TINY)
MODELS = {TINY: FOLDER, LONG: FOLDER}
CONFIG = f"""
[[tenants]]
name = "acme"
keys = [{{ key = "{MEMBER}" }}, {{ key = "{CHIEF}", role = "admin" }}]

[[tenants]]
name = "stranger"
keys = [{{ key = "{STRANGER}" }}]
"""


class World:
    """What drivers have: a server, and runs, samplers and checkpoints made on demand."""

    member = MEMBER
    chief = CHIEF
    stranger = STRANGER

    def __init__(self, server, folder: pathlib.Path):
        self.server = server
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self._names = (f"n{number}" for number in itertools.count())
        self._losses = (name for name in losses.DEFINITIONS if losses.is_plain(name))
        self.service = self._stack.enter_context(client(server, MEMBER, project_id="surface"))
        self.rest = rest(server, MEMBER)
        self.http = self._stack.enter_context(raw.Wire(server, MEMBER).http)
        self.tokenizer = chat_model.tokenizer(FOLDER)

    def close(self):
        self._stack.close()

    def name(self) -> str:
        """A name that nothing has."""
        return next(self._names)

    def fresh_loss(self) -> str:
        """The name of a recorded loss that the shared session does not have yet."""
        return next(self._losses)

    def new_service(self, key=MEMBER, **kwargs) -> tinker.ServiceClient:
        """With a session of its own, which the driver need not end."""
        return self._stack.enter_context(client(self.server, key, **kwargs))

    def run(self, service=None, **kwargs) -> tinker.TrainingClient:
        return lora(service or self.service, rank=4, **kwargs)

    def trained(self, service=None) -> tinker.TrainingClient:
        """A run whose weights are not its base model's."""
        run = self.run(service)
        train(run, [datum(TOKENS)])
        return run

    def state(self, run=None) -> str:
        """The path of a new training checkpoint."""
        return (run or self.trained()).save_state(self.name()).result(WAIT).path

    def named(self, run=None) -> str:
        """The path of a new sampler checkpoint."""
        return (run or self.trained()).save_weights_for_sampler(self.name()).result(WAIT).path

    def export(self, run=None) -> str:
        """The path of new external weights."""
        return (run or self.trained()).save_weights_external(self.name()).result(WAIT).path

    def sampler(self, **kwargs) -> tinker.SamplingClient:
        return self.service.create_sampling_client(**(kwargs or {"base_model": TINY})).result(WAIT)

    def scores(self, tokens: types.ModelInput) -> list[float | None]:
        """What the base model thinks of an input."""
        return self.sampler().compute_logprobs(tokens).result(WAIT)

    def checkpoints(self) -> list[str]:
        """The paths of all of the tenant's."""
        return [found.tinker_path for found in self.rest.list_user_checkpoints(limit=1000).result(WAIT).checkpoints]

    def new_home(self) -> pathlib.Path:
        """An empty folder."""
        home = self.folder / self.name()
        home.mkdir()
        return home

    def command_line(self, *words, key=MEMBER, home=None, **options) -> str:
        """What the official command line prints."""
        return command_line(self.server.url, key, home or self.folder, *words, **options)

    def user(self) -> tuple[str, str]:
        """A new user of the tenant: the address and a key."""
        email = f"{self.name()}@acme.example"
        trainyard(self.server, "tenants", "add-user", "acme", email)
        key, _ = new_key(self.server, "acme", "--user", email)
        return email, key

    def session(self) -> str:
        """Of the service that all drivers share."""
        return self.service.holder.get_session_id()

    def checkpoint(self, path: str) -> tinker.Checkpoint | None:
        """As the catalogue has it."""
        listed = self.rest.list_checkpoints(path.split("/")[2]).result(WAIT).checkpoints
        return next((found for found in listed if found.tinker_path == path), None)

    def make(self, owner: str):
        """An object of a client class, fresh where drivers change it."""
        makers = {
            "ServiceClient": lambda: self.new_service(project_id="surface"),
            "TrainingClient": self.run,
            "BackcompatTrainingClientFuture": lambda: self.service.create_lora_training_client(TINY, rank=4, seed=1),
            "SamplingClient": self.sampler,
            "BackcompatSamplingClientFuture": lambda: self.service.create_sampling_client(base_model=TINY),
            "RestClient": lambda: rest(self.server, MEMBER),
            "AdminClient": lambda: tinker.AdminClient(base_url=self.server.url, api_key=CHIEF),
            "APIFuture": lambda: self.run().forward([datum(TOKENS)], "cross_entropy"),
        }
        return makers[owner]()
