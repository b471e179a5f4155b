"""A disk that fills up: what is acknowledged stays, what takes space waits, and everything goes on by itself afterwards.

The data folder is a small file system of its own, which takes the right to mount one.
"""

import contextlib
import pathlib
import shutil
import subprocess
import time

import httpx
import pytest

from cuda_device import is_simulated
from helpers import TOKENS, WAIT, client, datum, lora, train, wait_until
from wire import Wire

pytestmark = pytest.mark.deployments("sqlite", "postgres")

BATCH = [datum(TOKENS), datum(TOKENS[::-1])]
LARGE = BATCH * (4 if is_simulated() else 40)
SIZE_MIB = 64
RESERVE = ["--disk-reserve-mib", "16"]
NO_RESERVE = ["--disk-reserve-mib", "0"]


class Disk:
    """A small file system."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.ballast = folder / "ballast"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", folder]
        try:
            mounted = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip("there is no mount")
        if mounted.returncode != 0:
            pytest.skip(f"no file system can be mounted: {mounted.stderr.strip()}")

    def fill(self, leave: int):
        """Leaves so many bytes."""
        with self.ballast.open("ab", buffering=0) as file:
            with contextlib.suppress(OSError):
                while (excess := shutil.disk_usage(self.folder).free - leave) > 0:
                    file.write(bytes(min(excess, 1 << 20)))

    def free(self):
        self.ballast.unlink()

    def close(self):
        subprocess.run(["umount", "--lazy", self.folder], check=True)


@pytest.fixture
def disk(tmp_path):
    mounted = Disk(tmp_path / "data")
    yield mounted
    mounted.close()


@contextlib.contextmanager
def deployed(deploy, folder, flags):
    """A server that stops orderly once the clients are gone."""
    with deploy(folder, flags=flags) as server:
        yield server
        assert server.stop() == 0, server.tail()
        assert "panicked at" not in server.text(), server.tail(100)


def readiness(server) -> dict:
    answer = httpx.get(f"{server.url}/readyz")
    assert answer.status_code == 200, answer.text
    return answer.json()


def low(server) -> bool:
    (line,) = [
        line for line in httpx.get(f"{server.url}/metrics").text.splitlines()
        if line.startswith('trainyard_disk_low{disk="storage"}')
    ]  # fmt: skip
    return line.endswith(" 1")


def loss(run) -> float:
    return train(run, BATCH).metrics["loss:sum"]


def test_saves_wait_for_the_reserve_and_the_rest_goes_on(tmp_path, deploy, disk):
    with deployed(deploy, tmp_path, RESERVE) as server, client(server) as service:
        saving, training = lora(service), lora(service, seed=2)
        expected = [loss(saving), loss(training)]
        assert readiness(server)["status"] == "ok"
        disk.fill(leave=8 << 20)
        wait_until(lambda: low(server), limit=60)
        assert readiness(server)["status"] == "degraded"

        wire = Wire(server)
        for refused in [
            wire.create_model(wire.session()),
            wire.post("save_weights", {"model_id": training.model_id, "seq_id": 99, "path": "never"}),
        ]:
            assert refused.status_code == 503 and "disk is almost full" in refused.json()["detail"], refused.text
            assert refused.headers["retry-after"] == "20"
        saved = saving.save_state("kept")
        assert loss(training) < expected[1], "training goes on"

        disk.free()
        assert saved.result(WAIT).path.endswith("/weights/kept")
        assert loss(saving) < expected[0]
        assert not low(server) and readiness(server)["status"] == "ok"
        assert "disk almost full" in server.text() and "disk has space again" in server.text()


def test_a_full_disk_loses_nothing_and_work_goes_on_afterwards(tmp_path, deploy, disk):
    with deployed(deploy, tmp_path, NO_RESERVE) as server, client(server) as service:
        run, twin = lora(service), lora(service)
        pending = [run.forward_backward(LARGE, "cross_entropy") for _ in range(8)]
        pending[0].result(WAIT)
        # Some are accepted, some wait until there is space, and so do results.
        disk.fill(leave=0)
        time.sleep(2)
        assert server.server.alive(), server.tail()
        disk.free()
        results = [future.result(WAIT).metrics["loss:sum"] for future in pending]
        assert len(set(results)) == 1
        first = loss(run)
        for _ in pending:
            twin.forward_backward(LARGE, "cross_entropy").result(WAIT)
        assert loss(twin) == first

        disk.fill(leave=0)
        server.kill()
        disk.free()
        server.start()
        assert loss(run) == loss(twin), "both go on where they were"


def test_a_save_that_finds_no_space_is_written_later(tmp_path, deploy, disk):
    with deployed(deploy, tmp_path, NO_RESERVE) as server, client(server) as service:
        run = lora(service, rank=64)
        expected = loss(run)
        run.save_state("first").result(WAIT)
        size = sum(file.stat().st_size for file in disk.folder.glob("checkpoints/*/weights/first*/*"))
        disk.fill(leave=size // 2)
        saved = run.save_state("second")
        wait_until(lambda: "save deferred: no disk space" in server.text(), limit=60)
        disk.free()
        path = saved.result(WAIT).path
        again = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
        assert loss(again) == loss(run) < expected
