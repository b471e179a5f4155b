"""PostgreSQL for tests: a fresh database on a shared server, or a cluster of one's own that may be killed."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

from process import Process, free_port

SUPERUSER = "postgres"
ROLE = "trainyard_sdk_test"
"""Owns the tests' databases: row-level security does not hold a superuser."""
URL_VARIABLE = "TEST_DATABASE_URL"


def binaries() -> pathlib.Path | None:
    """The folder of PostgreSQL's programs: from the environment, or the newest installed one."""
    if named := os.environ.get("TRAINYARD_POSTGRES_BIN"):
        return pathlib.Path(named)
    installed = [p.parent for p in pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if installed:
        return max(installed, key=lambda folder: int(folder.parent.name))
    found = shutil.which("initdb")
    return pathlib.Path(found).resolve().parent if found else None


def query(url: str, sql: str, limit=60.0) -> list[list[str]]:
    """The rows, as text: those of all tenants."""
    folder = binaries()
    psql = folder / "psql" if folder else "psql"
    command = [psql, "--no-psqlrc", "--quiet", "-At", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]
    scope = os.environ | {"PGOPTIONS": "-c trainyard.scope=system"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd="/", env=scope)
    if done.returncode != 0:
        raise RuntimeError(f"{sql}: {done.stderr}")
    return [line.split("\x1f") for line in done.stdout.splitlines()]


def create_role(server: str):
    """Creates the role, unless another test has."""
    try:
        query(server, f"CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}'")
    except RuntimeError:
        if query(server, f"SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'") != [["1"]]:
            raise


@contextlib.contextmanager
def database(server: str):
    """The URL of a new database on a server, and of the role that owns it; dropped at the end, whoever is still connected."""
    name = f"test_{uuid.uuid4().hex}"
    create_role(server)
    query(server, f"CREATE DATABASE {name} OWNER {ROLE}")
    host = server.removeprefix("postgres://").split("/", 1)[0].rpartition("@")[2]
    try:
        yield f"postgres://{ROLE}:{ROLE}@{host}/{name}"
    finally:
        query(server, f"DROP DATABASE {name} WITH (FORCE)")


class Cluster:
    """A server with a folder and a port of its own, which survive restarts; `kill` gives it no chance to write."""

    def __init__(self, settings=(), files=None, copied_from=None):
        """`settings` are `NAME=VALUE`; `files` are contents by name, put where settings look for relative names. A copy of
        a running cluster is its standby, with streaming replication."""
        folder = binaries()
        if folder is None:
            raise RuntimeError(f"PostgreSQL is not installed: `make test-sdk` does it, or set {URL_VARIABLE}")
        self.bin = folder
        # A folder below a private one would be out of reach for the server's user.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="trainyard-postgres-", dir="/tmp"))
        self.user = server_user()
        if self.user:
            shutil.chown(self.folder, self.user)
        create = [folder / "initdb", "--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8"]
        create += ["--locale", "C", "--pgdata", self.folder / "data"]
        if copied_from is not None:
            create = [folder / "pg_basebackup", "--pgdata", self.folder / "data", "--dbname", copied_from.conninfo()]
            create += ["--write-recovery-conf", "--checkpoint", "fast"]
        subprocess.run(create, check=True, capture_output=True, cwd=self.folder, **self._owner())
        for name, content in (files or {}).items():
            path = self.folder / "data" / name
            path.write_bytes(content)
            path.chmod(0o600)
            if self.user:
                shutil.chown(path, self.user)
        self.port = free_port()
        self.url = f"postgres://{SUPERUSER}@127.0.0.1:{self.port}/postgres"
        command = [folder / "postgres", "-D", self.folder / "data", "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=300"]
        command += [word for setting in settings for word in ("-c", setting)]
        self.process = Process("postgres", command, self.folder / "log", cwd=self.folder, **self._owner())

    def _owner(self) -> dict:
        if not self.user:
            return {}
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}

    def start(self, limit=60.0):
        self.process.start()
        deadline = time.monotonic() + limit
        ready = [self.bin / "pg_isready", "--quiet", "--host", "127.0.0.1", "--port", str(self.port)]
        while subprocess.run(ready).returncode != 0:
            if not self.process.alive() or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL is not ready:\n{self.process.tail()}")
            time.sleep(0.02)
        return self

    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={SUPERUSER} dbname=postgres"

    def demote(self, primary: "Cluster"):
        """The stopped server is the standby of another when it starts again."""
        data = self.folder / "data"
        (data / "standby.signal").touch()
        with open(data / "postgresql.auto.conf", "a") as settings:
            settings.write(f"primary_conninfo = '{primary.conninfo()}'\n")
        if self.user:
            shutil.chown(data / "standby.signal", self.user)

    def promote(self, limit=60):
        """The standby is the primary when this returns."""
        assert query(self.url, f"SELECT pg_promote(wait_seconds => {limit})", limit * 2) == [["t"]]

    def stop(self, limit=60):
        """Ends all connections, writes everything, also to a standby, and stops."""
        self.process.child.send_signal(signal.SIGINT)
        assert self.process.child.wait(limit) == 0, self.process.tail()

    def kill(self):
        """SIGKILL to the server and to those that serve connections, like a power failure."""
        self.process.kill_all()

    def freeze(self):
        """SIGSTOP to the server and to those that serve connections: they answer nothing, and no connection ends."""
        self.process.freeze_all()

    def thaw(self):
        self.process.thaw_all()

    def close(self):
        self.process.thaw_all()
        self.process.kill_all()
        shutil.rmtree(self.folder, ignore_errors=True)


def server_user() -> str | None:
    """PostgreSQL refuses root: the package's user if it exists, or nobody."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
