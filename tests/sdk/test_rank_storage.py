"""Ranks that are processes on a bucket: each has copies of its own of what is read, and no folder is common to them."""

import contextlib
import shutil

import pytest

import postgres
from helpers import (
    TOKENS,
    WAIT,
    assert_bits_equal,
    client,
    datum,
    forward,
    full,
    logprobs,
    lora,
    rest,
    sample,
    train,
)
from rank_processes import RankCluster
from process import PATIENCE
from server import Server

pytestmark = [
    pytest.mark.deployments("sqlite"),
    pytest.mark.ranks(2),
    pytest.mark.timeout(300),
]
BATCH = [datum(TOKENS), datum(TOKENS[::-1])]


@contextlib.contextmanager
def cluster(folder, postgres_server, storage, capacity=None):
    flags = [] if capacity is None else ["--storage-cache-mib", str(capacity)]
    with postgres.database(postgres_server()) as database:
        running = RankCluster(folder, database, storage=storage, worker_flags=flags)
        try:
            yield running.start()
        finally:
            running.close()


def data_folder(ranks):
    """Of both ranks."""
    return ranks.folder / "worker-0"


def step(run):
    return train(run, BATCH).metrics["loss:sum"]


def sampled(sampler):
    sequences = sample(sampler, TOKENS, 3, seed=7, stop=[]).sequences
    return [s.tokens for s in sequences], [s.logprobs for s in sequences]


def program(deployment):
    """Numbers of runs that are saved, loaded and sampled."""
    losses, tokens, bits = [], [], []
    with client(deployment) as service:
        for make in (lora, full):
            run = make(service)
            losses += [step(run), step(run)]
            state = run.save_state("middle").result(WAIT).path
            named = run.save_weights_for_sampler("named").result(WAIT).path
            losses += [step(run), step(run)]
            resumed = service.create_training_client_from_state_with_optimizer(state).result(WAIT)
            losses += [step(resumed), step(resumed)]
            assert losses[-2:] == losses[-4:-2]
            bits += logprobs(forward(resumed, BATCH))
            one = sampled(service.create_sampling_client(model_path=named).result(WAIT))
            # From the weights that are in memory, whose folder was read before.
            again = sampled(service.create_sampling_client(model_path=named).result(WAIT))
            assert one == again
            tokens.append(one[0])
            bits += one[1]
    return losses, tokens, bits


def assert_same(outcome, expected):
    assert outcome[:2] == expected[:2]
    assert_bits_equal(outcome[2], expected[2])


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The same program on ranks that are threads, with a folder."""
    server = Server(tmp_path_factory.mktemp("threads"), flags=["--parallel", "tp=2"]).start()
    outcome = program(server)
    assert server.stop() == 0
    return outcome


@pytest.mark.parametrize("capacity", [None, 0])
def test_ranks_on_a_bucket_compute_what_ranks_on_a_folder_do(tmp_path, postgres_server, bucket, expected, capacity):
    """With a cache that holds everything, and with one that holds nothing beyond what is being read."""
    with cluster(tmp_path, postgres_server, bucket.url, capacity) as ranks:
        assert_same(program(ranks), expected)
        kept = len(list(data_folder(ranks).glob("work-rank-1/*")))
        assert kept > 2 if capacity is None else kept <= 1
        assert ranks.stop() == 0, ranks.tail()
        assert "panicked at" not in ranks.text()


def test_ranks_that_are_lost_restore_runs_from_the_bucket(tmp_path, postgres_server, bucket):
    """Both ranks are killed, and their copies are gone."""
    with cluster(tmp_path, postgres_server, bucket.url) as ranks, client(ranks) as service:
        source = lora(service)
        step(source)
        state = source.save_state("retained").result(WAIT).path
        named = source.save_weights_for_sampler("retained").result(WAIT).path
        sampler = service.create_sampling_client(model_path=named).result(WAIT)
        before = sampled(sampler)
        resumed = service.create_training_client_from_state_with_optimizer(state).result(WAIT)
        losses = [step(resumed)]
        for process in ranks.workers:
            process.kill()
        for name in ("work", "work-rank-1"):
            shutil.rmtree(data_folder(ranks) / name)
        ranks.supervise()
        losses.append(step(resumed))
        assert losses == [step(source), step(source)]
        after = sampled(sampler)
        assert before[0] == after[0]
        assert_bits_equal(before[1], after[1])
        ranks.stop()


def test_a_copy_that_one_rank_cannot_make_fails_the_request_alone(tmp_path, postgres_server, bucket):
    with cluster(tmp_path, postgres_server, bucket.url) as ranks, client(ranks) as service:
        run = lora(service)
        losses = [step(run)]
        state = run.save_state("state").result(WAIT).path
        # A file where rank 1 is to have its copies.
        copies = data_folder(ranks) / "work-rank-1"
        copies.write_text("")
        with pytest.raises(Exception, match="the storage failed"):
            service.create_training_client_from_state(state).result(WAIT)
        assert "rank 1: the storage failed to fetch" in ranks.workers[0].text()
        losses.append(step(run))
        copies.unlink()
        resumed = service.create_training_client_from_state_with_optimizer(state).result(WAIT)
        assert step(resumed) == losses[1]
        rest(ranks).delete_checkpoint_from_tinker_path(state).result(WAIT)
        assert ranks.stop() == 0, ranks.tail()


def test_a_rank_without_the_bucket_is_refused_at_the_start(tmp_path, postgres_server, bucket):
    with postgres.database(postgres_server()) as database:
        ranks = RankCluster(tmp_path, database, storage=bucket.url)
        follower = ranks.workers[1]
        follower.command[follower.command.index(bucket.url)] = "s3://nobody/prefix"
        try:
            follower.start()
            follower.child.wait(60 * PATIENCE)
            assert "--storage" in follower.text(), follower.tail()
        finally:
            ranks.close()
