"""`trainyard doctor`: what it finds, that it says so to people and programs, and that it changes nothing."""

import json
import socket
import subprocess

import pytest

import postgres as pg
from process import PATIENCE, free_port
from server import BINARY, TINY, TINY_MODELS, Server

pytestmark = pytest.mark.deployments("sqlite")

FIELDS = {"group", "name", "status", "value", "advice", "seconds", "numbers", "error", "tolerance"}

GROUPS = {"processor", "memory", "models", "tokenizers", "disk", "store", "storage", "network", "limits"}


class Doctor:
    """Its answer to a configuration, which differs from a healthy one in `words`."""

    def __init__(self, folder, *words, model=TINY_MODELS[TINY], port=None):
        command = [BINARY, "doctor", "--model", f"{TINY}={model}", "--data-dir", folder / "data"]
        command += ["--port", port or free_port(), *words]
        self.command = [str(word) for word in command]
        done = subprocess.run([*self.command, "--json"], capture_output=True, text=True, timeout=60 * PATIENCE, cwd=folder)
        self.code = done.returncode
        self.errors = done.stderr
        self.report = json.loads(done.stdout)

    def text(self) -> str:
        return subprocess.run(self.command, capture_output=True, text=True, timeout=60 * PATIENCE, cwd="/").stdout

    def failures(self) -> list[dict]:
        return [check for check in self.report["checks"] if check["status"] == "failure"]

    def failure(self, group) -> dict:
        """The only one, which says what to do."""
        (failed,) = self.failures()
        assert (failed["group"], self.report["status"], self.code) == (group, "failure", 1), self.report
        assert failed["advice"]
        return failed


def test_a_healthy_configuration_is_found_so_and_nothing_is_made(tmp_path):
    doctor = Doctor(tmp_path)
    assert doctor.code == 0 and not doctor.failures(), doctor.report
    assert doctor.report["version"] == 1
    for check in doctor.report["checks"]:
        assert set(check) == FIELDS
        assert (check["advice"] is None) == (check["status"] == "ok"), check
    assert {check["group"] for check in doctor.report["checks"]} >= GROUPS - {"tokenizers"}
    assert list(tmp_path.iterdir()) == []
    assert set(doctor.report) == {"version", "release", "created", "machine", "status", "checks"}
    machine = doctor.report["machine"]
    assert machine["architecture"] and "cuda" in machine["features"] and isinstance(machine["environment"], dict)
    text = doctor.text()
    assert "kernels" in text and "failures: 0" in text.lower() or "No problems found" in text


@pytest.mark.processor("it is the processor's")
def test_the_processor_computes_with_the_shapes_of_models(tmp_path):
    checks = [c for c in Doctor(tmp_path).report["checks"] if c["group"] in ("shapes", "invariance")]
    assert {check["group"] for check in checks} == {"shapes", "invariance"} and len(checks) > 40
    assert all(check["seconds"] >= 0 for check in checks)
    compared = [check for check in checks if check["tolerance"] is not None]
    assert compared and all(0 <= check["error"] <= check["tolerance"] for check in compared)
    without = Doctor(tmp_path, "--shapes", "none").report["checks"]
    assert not [check for check in without if check["group"] in ("shapes", "invariance")]


@pytest.mark.processor("classes of kernels are the processor's")
def test_kernels_that_were_chosen_are_named(tmp_path):
    (kernels,) = [check for check in Doctor(tmp_path, "--kernels", "portable").report["checks"] if check["name"] == "kernels"]
    assert kernels["value"].startswith("portable") and kernels["group"] == "processor"


def test_a_server_that_runs_is_left_alone(tmp_path):
    server = Server(tmp_path).start()
    try:
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*") if path.is_file()}
        doctor = Doctor(tmp_path, port=server.port)
        taken = doctor.failure("network")
        assert f"trainyard (process {server.server.child.pid})" in taken["value"]
        assert [c["value"] for c in doctor.report["checks"] if c["name"] == "schema"][0].startswith("version")
        after = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*") if path.is_file()}
        assert before.keys() == after.keys()
        assert server.stop() == 0
        left = sorted(path.name for path in (tmp_path / "data").iterdir())
        assert Doctor(tmp_path).code == 0
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == left
    finally:
        server.close()


def test_a_model_that_is_not_there(tmp_path):
    failed = Doctor(tmp_path, model=tmp_path / "nowhere").failure("models")
    assert failed["name"] == TINY and "nowhere" in failed["value"]


def test_without_a_model_everything_else_is_checked(tmp_path):
    command = [BINARY, "doctor", "--json", "--data-dir", tmp_path / "data", "--port", str(free_port()), "--shapes", "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, cwd=tmp_path)
    checks = json.loads(done.stdout)["checks"]
    (failed,) = [check for check in checks if check["status"] == "failure"]
    assert (failed["group"], done.returncode) == ("configuration", 1) and "--model" in failed["value"]
    assert {check["group"] for check in checks} >= GROUPS - {"models", "tokenizers"}


def test_secrets_are_in_no_report(tmp_path, monkeypatch):
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth7")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    doctor = Doctor(tmp_path, "--shapes", "none", "--storage", "ftp://me:hush@host/x?password=hush")
    assert "hush" not in json.dumps(doctor.report) and doctor.failure("storage")
    assert doctor.report["machine"]["environment"]["NCCL_SOCKET_IFNAME"] == "eth7"


def test_a_database_server_that_is_not_there(tmp_path):
    url = f"postgres://me:secret@127.0.0.1:{free_port()}/trainyard"
    doctor = Doctor(tmp_path, "--database-url", url)
    failed = doctor.failure("store")
    assert "refused" in failed["value"].lower() and "secret" not in json.dumps(doctor.report) + doctor.errors


def test_a_database_without_a_schema_and_with_one(tmp_path, postgres):
    url = ["--database-url", postgres]
    assert "trainyard migrate" in Doctor(tmp_path, *url).failure("store")["advice"]
    assert pg.query(postgres, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [["0"]]
    assert Doctor(tmp_path, *url, "--migrate").code == 0
    subprocess.run([BINARY, "migrate", *url], check=True, capture_output=True, cwd="/")
    doctor = Doctor(tmp_path, *url)
    assert doctor.code == 0, doctor.report
    assert [check for check in doctor.report["checks"] if check["name"] == "clock"]
    pg.query(
        postgres,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)"
        " VALUES (9999, 'future', TRUE, '', 0)",
    )
    assert Doctor(tmp_path, *url).code == 0, "a newer schema that only adds"
    pg.query(postgres, "UPDATE schema_compatibility SET oldest_program = 9999")
    assert "release" in Doctor(tmp_path, *url).failure("store")["advice"]
    pg.query(postgres, "DELETE FROM _sqlx_migrations")
    pg.query(
        postgres,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)"
        " VALUES (27, 'uploads', TRUE, '', 0)",
    )
    assert "before the first release" in Doctor(tmp_path, *url, "--migrate").failure("store")["advice"]


def test_a_superuser_of_the_database_is_reported(tmp_path, postgres, postgres_server):
    def row_level_security(url):
        checks = Doctor(tmp_path, "--database-url", url, "--migrate").report["checks"]
        (found,) = (check for check in checks if check["name"] == "row-level security")
        return found

    assert row_level_security(postgres)["status"] == "ok"
    server = postgres_server()
    superuser = pg.query(server, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == [["t"]]
    found = row_level_security(server)
    assert (found["status"] == "warning") == superuser
    assert not superuser or "is a superuser" in found["value"]


def test_a_storage_that_refuses(tmp_path):
    # Not even root writes there.
    failed = Doctor(tmp_path, "--storage", "/proc").failure("storage")
    assert "/proc" in failed["value"]


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        failed = Doctor(tmp_path, port=taken.getsockname()[1]).failure("network")
    assert "is taken by" in failed["value"]


def test_options_that_the_server_refuses(tmp_path):
    assert "--host" in Doctor(tmp_path, "--host", "nowhere").failure("configuration")["value"]


def test_a_server_that_others_reach_without_a_key_in_its_store(tmp_path):
    assert "--host: 0.0.0.0 is not loopback" in Doctor(tmp_path, "--host", "0.0.0.0").failure("store")["value"]


@pytest.mark.processor("it is that of the machine")
def test_more_memory_than_the_machine_has(tmp_path):
    assert Doctor(tmp_path, "--memory-mib", 1 << 30).failure("memory")["name"] == "budget"
