"""A backup of a busy service, and what goes on from it when everything else is lost."""

import json
import shutil
import subprocess
import threading

import numpy as np
import pytest

import postgres as pg
from bucket import Bucket
from cuda_device import is_simulated
from helpers import WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, sample, train
from process import PATIENCE
from server import BINARY, Server

pytestmark = pytest.mark.deployments("sqlite")

STEPS, LATER = 4, 3
PROMPT = [5, 17, 250]


def batch(step: int) -> list:
    rng = np.random.default_rng([7, step])
    return [datum(rng.integers(0, 512, n).tolist()) for n in rng.integers(4, 40, 4)]


def steps(run, numbers) -> list:
    return [logprobs(train(run, batch(number))) for number in numbers]


def tool(*words, code=0) -> str:
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=120 * PATIENCE, cwd="/")
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


class Load:
    """Another client that trains and samples until it is stopped."""

    def __init__(self, server):
        self.server = server
        self.stopped, self.started = threading.Event(), threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self._work)

    def __enter__(self):
        self.thread.start()
        assert self.started.wait(WAIT)
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join(WAIT)
        assert self.failure is None, self.failure

    def _work(self):
        try:
            with client(self.server) as service:
                run = lora(service, seed=99)
                # Large enough for payloads that are files, where that does not take minutes.
                large = [datum([(i + j) % 500 for j in range(60)]) for i in range(20 if is_simulated() else 300)]
                for turn in range(10_000):
                    train(run, batch(turn))
                    run.forward(large, "cross_entropy").result(WAIT)
                    path = run.save_state("rolling", overwrite=True).result(WAIT).path
                    assert path
                    sampler = run.save_weights_and_get_sampling_client().result(WAIT)
                    sample(sampler, PROMPT)
                    self.started.set()
                    if self.stopped.is_set():
                        return
        except Exception as error:  # noqa: BLE001
            self.failure = error
            self.started.set()


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    running = Bucket(tmp_path)
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    yield running.start()
    running.close()


@pytest.mark.parametrize("source, target", [
    ("sqlite", "sqlite"), ("postgres", "postgres"), ("sqlite", "postgres"), ("postgres", "sqlite"),
])  # fmt: skip
def test_everything_goes_on_from_a_backup_with_the_same_bits(source, target, tmp_path, postgres):
    goes_on(tmp_path, postgres, source == "postgres", target == "postgres")


def test_everything_goes_on_from_a_backup_of_a_bucket(tmp_path, postgres, bucket):
    goes_on(tmp_path, postgres, False, False, bucket)


def goes_on(tmp_path, postgres, from_postgres, to_postgres, bucket=None):
    storage = bucket and bucket.url
    server = Server(tmp_path, database=postgres if from_postgres else None, storage=storage)
    where = ["--data-dir", tmp_path / "data"] + (["--storage", storage] if storage else [])
    stores = [*where, "--database-url", postgres]
    try:
        server.start()
        with client(server) as service:
            # What the run will do, from one that does it undisturbed.
            model = lora(service)
            expected = steps(model, range(STEPS + LATER))
            expected_samples = sample(model.save_weights_and_get_sampling_client().result(WAIT), PROMPT, 2, seed=3)
            run = lora(service)
            got = steps(run, range(STEPS))
            path = run.save_state("mark").result(WAIT).path
            named = run.save_weights_for_sampler("mark").result(WAIT).path
            before = sample(service.create_sampling_client(model_path=named).result(WAIT), PROMPT, 2, seed=3)
            at_backup = logprobs(forward(run, batch(99)))
            with Load(server):
                tool("backup", "--to", tmp_path / "backup", *(stores if from_postgres else where))
                assert "complete" in tool("backup", "--verify", tmp_path / "backup")
            server.kill()
            shutil.rmtree(tmp_path / "data")
            if bucket:
                for name in bucket.names():
                    bucket.s3.delete_object(Bucket="trainyard", Key=f"some/prefix/{name}")
            if from_postgres:
                pg.query(postgres, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            # The URL stays, so that clients go on.
            command = server.server.command
            if from_postgres != to_postgres:
                if to_postgres:
                    command += ["--database-url", postgres]
                else:
                    at = command.index("--database-url")
                    del command[at : at + 2]
            tool("restore", "--from", tmp_path / "backup", *(stores if to_postgres else where))
            server.start()
            # The client of the run goes on where it was.
            assert_all_equal([at_backup], [logprobs(forward(run, batch(99)))])
            got += steps(run, range(STEPS, STEPS + LATER))
            assert_all_equal(expected, got)
            after = sample(run.save_weights_and_get_sampling_client().result(WAIT), PROMPT, 2, seed=3)
            assert_same_samples(expected_samples, after)
            # So do new clients, from its checkpoints.
            resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
            assert_all_equal(expected[STEPS:], steps(resumed, range(STEPS, STEPS + LATER)))
            again = sample(service.create_sampling_client(model_path=named).result(WAIT), PROMPT, 2, seed=3)
            assert_same_samples(before, again)
        assert server.stop() == 0
    finally:
        server.close()


def assert_all_equal(expected, got):
    for left, right in zip(expected, got, strict=True):
        assert_bits_equal(left, right)


def assert_same_samples(expected, got):
    assert [s.tokens for s in expected.sequences] == [s.tokens for s in got.sequences]
    assert_bits_equal([s.logprobs for s in expected.sequences], [s.logprobs for s in got.sequences])


def test_nothing_is_overwritten_and_damage_is_named(tmp_path):
    server = Server(tmp_path).start()
    try:
        with client(server) as service:
            train(lora(service), batch(0))
        where = ["--data-dir", tmp_path / "data"]
        backup = tmp_path / "backup"
        tool("backup", "--to", backup, *where)
        assert "not empty" in tool("backup", "--to", backup, *where, code=1)
        assert (backup.stat().st_mode & 0o777) == 0o700
        assert (backup / "private" / "url-signing.key").stat().st_mode & 0o777 == 0o600
        assert "another process" in tool("restore", "--from", backup, *where, code=1)
        assert server.stop() == 0
        assert "not empty" in tool("restore", "--from", backup, *where, code=1)
        rows = backup / "tables" / "runs.jsonl"
        rows.write_bytes(rows.read_bytes().replace(b"ready", b"raedy"))
        assert "tables/runs.jsonl" in tool("backup", "--verify", backup, code=1)
        assert "damaged" in tool("restore", "--from", backup, "--data-dir", tmp_path / "new", code=1)
        assert json.loads((backup / "manifest.json").read_text())["rows"]["runs"] == 1
        assert "does not exist" in tool("backup", "--to", tmp_path / "b", "--data-dir", tmp_path / "no", code=1)
        assert not (tmp_path / "no").exists() and not (tmp_path / "b").exists()
    finally:
        server.close()
