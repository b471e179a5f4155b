"""TLS to PostgreSQL: what the database URL asks for is what happens."""

import subprocess
import urllib.parse

import pytest

import postgres as pg
from certificates import Authority
from process import PATIENCE
from server import BINARY, Server

HOST = "localhost"
CONNECTIONS = """SELECT count(*), bool_and(ssl), max(client_dn) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE application_name = 'trainyard'"""

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(300)]


class Secured:
    """A PostgreSQL server with a certificate for one host name, and files for its clients."""

    def __init__(self, folder):
        root, other = Authority("root"), Authority("other")
        certificate, key = root.issue(HOST)
        client = root.issue("client")
        self.paths = {}
        for name, content in {
            "root": root.certificate, "other": other.certificate, "client": client[0], "client-key": client[1],
        }.items():  # fmt: skip
            self.paths[name] = folder / f"{name}.pem"
            self.paths[name].write_bytes(content)
        settings = ["ssl=on", "ssl_cert_file=server.pem", "ssl_key_file=server.key", "ssl_ca_file=root.pem"]
        files = {"server.pem": certificate, "server.key": key, "root.pem": root.certificate}
        self.cluster = pg.Cluster(settings, files)

    def url(self, host=HOST, **parameters) -> str:
        """Of the database; values that name a file of the client become its path."""
        query = {key: str(self.paths.get(value, value)) for key, value in parameters.items()}
        return f"postgres://{pg.SUPERUSER}@{host}:{self.cluster.port}/postgres?{urllib.parse.urlencode(query)}"

    def migrate(self, **parameters) -> subprocess.CompletedProcess:
        command = [BINARY, "migrate", "--database-url", self.url(**parameters)]
        return subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60 * PATIENCE)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    made = Secured(tmp_path_factory.mktemp("tls"))
    made.cluster.start()
    yield made
    made.cluster.close()


@pytest.mark.parametrize(
    "parameters",
    [
        {"sslmode": "require"},
        {"sslmode": "require", "sslcert": "client", "sslkey": "client-key"},
        {"sslmode": "verify-ca", "sslrootcert": "root", "host": "127.0.0.1"},
        {"sslmode": "verify-full", "sslrootcert": "root"},
    ],
)
def test_every_connection_of_a_server_is_encrypted(secured, tmp_path, parameters):
    server = Server(tmp_path, database=secured.url(**parameters))
    try:
        server.start()
        ((count, encrypted, client),) = pg.query(secured.cluster.url, CONNECTIONS)
        assert int(count) >= 2 and encrypted == "t"
        assert client == ("/CN=client" if "sslcert" in parameters else "")
        assert server.stop() == 0
    finally:
        server.close()


@pytest.mark.parametrize(
    "parameters",
    [
        {"sslmode": "verify-full", "sslrootcert": "other"},
        {"sslmode": "verify-full", "sslrootcert": "root", "host": "127.0.0.1"},
        {"sslmode": "verify-ca", "sslrootcert": "other"},
        {"sslmode": "verify-full", "sslrootcert": "/nowhere.pem"},
        {"sslmode": "require", "sslcert": "client"},
    ],
)
def test_a_connection_that_can_t_be_trusted_is_refused_with_the_reason(secured, parameters):
    done = secured.migrate(**parameters)
    assert done.returncode != 0
    assert "TLS" in done.stderr and "reached" not in done.stderr, done.stderr


def test_a_server_without_tls_is_refused_where_it_is_required(postgres_server):
    command = [BINARY, "migrate", "--database-url", f"{postgres_server()}?sslmode=require"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60 * PATIENCE)
    assert done.returncode != 0
    assert "TLS" in done.stderr and "reached" not in done.stderr, done.stderr
