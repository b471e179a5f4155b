"""HTTPS: what is served, what is refused at the start, and certificates that are replaced while the server runs."""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import time

import httpx
import pytest

from certificates import Authority
from helpers import client, datum, lora, train, wait_until
from process import PATIENCE, Process, free_port
from server import BINARY, KEY, REPOSITORY, Server, engine_flags, migrate

ADDRESS = "127.0.0.1"
NOTICED = 60
"""Seconds in which a server notices new files; it looks every five."""

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.timeout(300)]


class SecureServer(Server):
    """Serves HTTPS with a certificate of an authority of its own."""

    def __init__(self, folder, form="PKCS8", days=1, **options):
        self.authority = Authority("root")
        self.cert, self.key, self.root = folder / "server.pem", folder / "server.key", folder / "root.pem"
        self.root.write_bytes(self.authority.certificate)
        self.install(form, days)
        flags = ["--tls-cert", self.cert, "--tls-key", self.key, *options.pop("flags", [])]
        super().__init__(folder, flags=flags, **options)
        self.url = f"https://127.0.0.1:{self.port}"
        self.trust = ssl.create_default_context(cafile=self.root)

    def install(self, form="PKCS8", days=1):
        """A new certificate with its key, in place of the files that are there."""
        cert, key = self.authority.issue("localhost", form, days, ADDRESS)
        self.cert.write_bytes(cert)
        self.key.write_bytes(key)

    def ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", verify=self.trust, timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def connect(self, **settings) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.root)
        for name, value in settings.items():
            setattr(context, name, value)
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 30), server_hostname="localhost")

    def served(self) -> bytes:
        """The certificate that a new connection gets."""
        with self.connect() as connection:
            return connection.getpeercert(binary_form=True)

    def wait_for(self, condition, what: str):
        wait_until(condition, lambda: f"{what}\n{self.tail()}", NOTICED)


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    server = SecureServer(tmp_path_factory.mktemp("https"), flags=["--header-seconds", "2"])
    yield server.start()
    server.close()


def test_the_sdk_trains_over_https(secure, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.root))
    with client(secure) as service:
        train(lora(service), [datum([1, 2, 3])])
    assert f"TINKER_BASE_URL={secure.url}" in secure.text()


def test_the_clients_of_this_repository_speak_https(secure):
    """They trust what the system trusts, which a variable of the environment replaces here."""
    settings = {"TRAINYARD_BASE_URL": secure.url, "TRAINYARD_API_KEY": KEY, "SSL_CERT_FILE": str(secure.root)}
    package = REPOSITORY / "client-sdk" / "python"
    programs = [[sys.executable, package / "examples" / "sample.py"], [BINARY.parent / "examples" / "sample"]]
    for program in programs:
        environment = os.environ | settings | {"PYTHONPATH": str(package / "src")}
        done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        environment.pop("SSL_CERT_FILE")
        started = time.monotonic()
        done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        assert done.returncode != 0 and "certificate" in done.stderr.lower()
        assert time.monotonic() - started < 10 * PATIENCE, "a certificate that nobody vouches for is refused at once"


def test_versions_from_1_2_are_spoken_and_http_1_1_is_agreed(secure):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with secure.connect(minimum_version=version, maximum_version=version) as connection:
            assert connection.version() == version.name.replace("_", ".")
            assert connection.selected_alpn_protocol() == "http/1.1"


def read_all(connection) -> bytes:
    connection.settimeout(30)
    pieces = []
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(4096):
            pieces.append(piece)
    return b"".join(pieces)


def test_plain_http_is_told_to_use_https(secure):
    answer = httpx.get(f"http://127.0.0.1:{secure.port}/livez")
    assert answer.status_code == 400 and "https://" in answer.json()["detail"]


@pytest.mark.parametrize("beginning", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x00\x02\x01\x00", b"\0\0\0\0\0\0"])
def test_a_handshake_that_does_not_end_is_cut_off(secure, beginning):
    with socket.create_connection(("127.0.0.1", secure.port), 30) as connection:
        connection.sendall(beginning)
        assert b"HTTP" not in read_all(connection)


def test_connections_that_never_shake_hands_count(tmp_path):
    server = SecureServer(tmp_path, flags=["--max-connections", "4", "--max-connections-per-address", "4"]).start()
    try:
        with contextlib.ExitStack() as stack:

            def refused() -> bool:
                # One that came while others of the start were still open was refused, and does not count.
                stack.enter_context(socket.create_connection((ADDRESS, server.port), 30))
                return httpx.get(f"{server.url}/livez", verify=server.trust).status_code == 429

            server.wait_for(refused, "no 429")
    finally:
        server.close()


@pytest.mark.parametrize("form", ["PKCS8", "PKCS1", "SEC1"])
def test_keys_may_have_any_usual_form(tmp_path, form):
    server = SecureServer(tmp_path, form)
    try:
        server.start()
        assert server.stop() == 0
    finally:
        server.close()


def test_an_expired_certificate_is_served_with_a_warning(tmp_path):
    server = SecureServer(tmp_path, days=-1)
    server.trust = False
    try:
        server.start()
        assert "the TLS certificate has expired" in server.text()
    finally:
        server.close()


BROKEN = {
    "a missing certificate": (lambda s: s.cert.unlink(), "server.pem: No such file"),
    "a missing key": (lambda s: s.key.unlink(), "server.key: No such file"),
    "a certificate that is none": (lambda s: s.cert.write_text("hello"), "server.pem: contains no certificate"),
    "a key that is none": (lambda s: s.key.write_bytes(s.cert.read_bytes()), "server.key: contains no private key"),
    "another certificate's key": (
        lambda s: s.key.write_bytes(s.authority.issue("localhost")[1]), "server.key is not the key of the certificate",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_files_that_can_t_be_used_are_refused_at_the_start(tmp_path, fault):
    server = SecureServer(tmp_path)
    spoil, complaint = BROKEN[fault]
    spoil(server)
    done = subprocess.run(server.server.command, capture_output=True, text=True, cwd=tmp_path, timeout=60 * PATIENCE)
    assert done.returncode == 1 and complaint in done.stderr, done.stderr
    assert "--tls-" in done.stderr


def reloads(server, outcome: str) -> int:
    lines = httpx.get(f"{server.url}/metrics", verify=server.trust).text.splitlines()
    (line,) = [line for line in lines if line.startswith(f'trainyard_tls_reloads_total{{outcome="{outcome}"}}')]
    return int(line.split()[-1])


def test_new_files_are_served_and_open_connections_stay(secure):
    with httpx.Client(base_url=secure.url, verify=secure.trust, headers={"x-api-key": KEY}) as open_before:
        assert open_before.get("/livez").status_code == 200
        former, loaded = secure.served(), reloads(secure, "succeeded")
        secure.install("SEC1")
        secure.wait_for(lambda: secure.served() != former, "the new certificate is not served")
        assert open_before.get("/livez").status_code == 200
        assert reloads(secure, "succeeded") == loaded + 1


def test_a_broken_replacement_leaves_the_former_in_place(secure):
    former, failed = secure.served(), reloads(secure, "failed")
    secure.key.write_bytes(secure.authority.issue("localhost")[1])
    secure.wait_for(lambda: reloads(secure, "failed") == failed + 1, "the broken pair is not noticed")
    assert secure.served() == former
    assert "is not the key of the certificate" in secure.text()
    assert "the previous one is still in use" in secure.text()
    # Whoever asks is told once more.
    secure.server.child.send_signal(signal.SIGHUP)
    secure.wait_for(lambda: reloads(secure, "failed") == failed + 2, "SIGHUP is ignored")
    secure.install()
    secure.wait_for(lambda: secure.served() != former, "the repaired pair is not served")


def test_a_worker_serves_its_metrics_over_https(tmp_path, postgres):
    migrate(postgres)
    authority, port = Authority("root"), free_port()
    cert, key = authority.issue("localhost", address=ADDRESS)
    for name, content in {"server.pem": cert, "server.key": key, "root.pem": authority.certificate}.items():
        (tmp_path / name).write_bytes(content)
    command = [BINARY, "worker", "--metrics-addr", f"127.0.0.1:{port}", "--database-url", postgres]
    command += ["--tls-cert", "server.pem", "--tls-key", "server.key", *engine_flags(None, "f32")]
    worker = Process("worker", command, tmp_path / "worker.log", cwd=tmp_path).start()
    try:
        trust = ssl.create_default_context(cafile=tmp_path / "root.pem")
        wait_until(lambda: not worker.alive() or "ready" in worker.text(), worker.tail, limit=60)
        assert worker.alive(), worker.tail()
        text = httpx.get(f"https://127.0.0.1:{port}/metrics", verify=trust).text
        assert "trainyard_tls_certificate_expiry_timestamp_seconds 0" not in text and text.endswith("# EOF\n")
    finally:
        worker.kill()
