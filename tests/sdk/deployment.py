"""The ways to deploy: one process on SQLite, one on PostgreSQL, or API servers and workers over one database."""

import contextlib
import pathlib

import postgres
from process import Process, free_port
from proxy import Proxy
from server import BINARY, Deployment, Server, engine_flags, healthy, migrate

KINDS = ("sqlite", "postgres", "cluster")

LEASE_SECONDS = 5
"""Short enough for a test to wait for the end of a lease, long enough for a busy machine."""


class RoleCluster(Deployment):
    """API servers behind a balancer, and workers that each reach the database through a network of their own."""

    def __init__(
        self, folder: pathlib.Path, database: str, models=None, dtype="f32", config: str | None = None,
        flags: list[str] | None = None, apis=2, workers=2, storage: str | None = None,
        storage_folder: pathlib.Path | None = None, api_flags=(),
    ):  # fmt: skip
        self.folder = folder
        self.storage = (storage_folder or folder) / "storage"
        self.storage.mkdir()
        self.database = database
        self.storage_url = storage or self.storage
        if config is not None:
            (folder / "trainyard.toml").write_text(config)
        migrate(database)
        ports = [free_port() for _ in range(apis)]
        self.api_urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.balancer = Proxy(*ports).start()
        self.url = f"http://127.0.0.1:{self.balancer.port}"
        start, _, rest = database.rpartition(":")
        database_port, _, name = rest.partition("/")
        self.networks = [Proxy(int(database_port)).start() for _ in range(workers)]
        self.apis = [self._api(i, port, database, api_flags) for i, port in enumerate(ports)]
        urls = [f"{start}:{network.port}/{name}" for network in self.networks]
        options = engine_flags(models, dtype) + (flags or [])
        self.workers = [self._worker(i, url, options) for i, url in enumerate(urls)]
        self.processes = self.apis + self.workers

    def _api(self, number: int, port: int, database: str, flags) -> Process:
        command = [BINARY, "serve", "--role", "api", "--host", "127.0.0.1", "--port", port, *flags]
        return self._process(f"api-{number}", command, database)

    def _worker(self, number: int, database: str, flags: list[str]) -> Process:
        command = [BINARY, "worker", "--lease-seconds", LEASE_SECONDS, *flags]
        return self._process(f"worker-{number}", command, database)

    def _process(self, name: str, command: list, database: str) -> Process:
        command += ["--database-url", database, "--data-dir", self.folder / name, "--storage", self.storage_url]
        return Process(name, command, self.folder / f"{name}.log", cwd=self.folder)

    def ready(self) -> bool:
        return all(healthy(url) for url in self.api_urls)

    def close(self):
        super().close()
        for proxy in [self.balancer, *self.networks]:
            proxy.stop()


@contextlib.contextmanager
def launch(kind: str, folder: pathlib.Path, database_server, **options):
    """A started deployment; a database of its own is made on the server that `database_server()` names."""
    with contextlib.ExitStack() as stack:
        if kind != "sqlite":
            options["database"] = stack.enter_context(postgres.database(database_server()))
        made = RoleCluster(folder, **options) if kind == "cluster" else Server(folder, **options)
        stack.callback(made.close)
        yield made.start()
