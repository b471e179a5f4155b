"""Everything that is too large for a row is in a bucket; nothing in the data folder needs to survive."""

import shutil
import urllib.error
import urllib.request

import pytest
from safetensors.numpy import load as load_tensors

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
    refused,
    rest,
    sample,
    train,
    wait_until,
)
from server import Server

BATCH = [datum(TOKENS), datum(TOKENS[::-1])]


@pytest.fixture(scope="module")
def server(tmp_path_factory, deploy, bucket):
    with deploy(tmp_path_factory.mktemp("storage"), storage=bucket.url) as running:
        yield running
        assert running.stop() == 0, running.tail()
        assert "panicked at" not in running.text(), running.tail(100)


@pytest.fixture
def own(tmp_path, deploy, bucket):
    """A server that a test may kill."""
    with deploy(tmp_path, storage=bucket.url) as running:
        yield running
        running.stop()


def step(run):
    return train(run, BATCH).metrics["loss:sum"]


def folder_name(run) -> str:
    return run.model_id.replace(":", "%3a")


def folders(bucket, run, kind) -> set[str]:
    """The folders of a run's checkpoints of a kind."""
    return {name.split("/")[3] for name in bucket.names(f"checkpoints/{folder_name(run)}/{kind}/")}


@pytest.mark.parametrize("make", [lora, full])
def test_a_training_state_resumes_bit_for_bit(bucket, server, service, make):
    run = make(service)
    for _ in range(2):
        step(run)
    path = run.save_state("middle").result(WAIT).path
    (folder,) = folders(bucket, run, "weights")
    assert folder.startswith("middle.")
    expected = [step(run) for _ in range(2)]
    with client(server) as other:
        resumed = other.create_training_client_from_state_with_optimizer(path).result(WAIT)
        assert [step(resumed) for _ in range(2)] == expected
        assert_bits_equal(logprobs(forward(run, BATCH)), logprobs(forward(resumed, BATCH)))


def test_a_sampler_checkpoint_samples_as_the_snapshot_does(service, run):
    step(run)
    snapshot = run.save_weights_and_get_sampling_client().result(WAIT)
    named = run.save_weights_for_sampler("frozen").result(WAIT).path
    step(run)
    frozen = service.create_sampling_client(model_path=named).result(WAIT)
    one, other = (sample(sampler, TOKENS, 3, seed=7, stop=[]) for sampler in (snapshot, frozen))
    assert [s.tokens for s in one.sequences] == [s.tokens for s in other.sequences]
    assert_bits_equal([s.logprobs for s in one.sequences], [s.logprobs for s in other.sequences])


def test_exports_are_downloaded_and_deleted(bucket, server, run):
    step(run)
    path = run.save_weights_external("export").result(WAIT).path
    links = rest(server).get_external_weights_urls(path).result(WAIT)
    (folder,) = folders(bucket, run, "external_weights")
    stored = bucket.names(f"checkpoints/{folder_name(run)}/external_weights/{folder}/")
    assert {name.rsplit("/", 1)[1] for name in stored} == set(links.urls)
    got = urllib.request.urlopen(links.urls["adapter_model.safetensors"], timeout=30)
    body = got.read()
    assert len(body) == int(got.headers["content-length"])
    assert any("q_proj" in name for name in load_tensors(body))
    rest(server).delete_checkpoint_from_tinker_path(path).result(WAIT)
    assert not folders(bucket, run, "external_weights")
    with pytest.raises(urllib.error.HTTPError) as gone:
        urllib.request.urlopen(links.urls["adapter_model.safetensors"], timeout=30)
    assert gone.value.code in (404, 410)


def test_overwriting_replaces_the_objects(bucket, service, run):
    run.save_state("rolling").result(WAIT)
    (first,) = folders(bucket, run, "weights")
    refused(lambda: run.save_state("rolling").result(WAIT), "rolling", "overwrite")
    wait_until(lambda: folders(bucket, run, "weights") == {first}, limit=20)
    step(run)
    path = run.save_state("rolling", overwrite=True).result(WAIT).path
    wait_until(lambda: first not in folders(bucket, run, "weights"), limit=20)
    resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
    assert_bits_equal(logprobs(forward(run, BATCH)), logprobs(forward(resumed, BATCH)))


def test_a_sampler_keeps_its_weights_when_the_checkpoint_is_deleted(server, service, run):
    """A sampling session that has not sampled yet has its weights in the bucket alone."""
    named = run.save_weights_for_sampler("deleted").result(WAIT).path
    before = run.save_weights_and_get_sampling_client().result(WAIT)
    late = service.create_sampling_client(model_path=named).result(WAIT)
    rest(server).delete_checkpoint_from_tinker_path(named).result(WAIT)
    one, other = (sample(sampler, TOKENS, 2, seed=7, stop=[]) for sampler in (before, late))
    assert [s.tokens for s in one.sequences] == [s.tokens for s in other.sequences]
    assert_bits_equal([s.logprobs for s in one.sequences], [s.logprobs for s in other.sequences])


@pytest.mark.real_device("payloads of 256 KiB are tens of thousands of tokens")
def test_large_payloads_and_results_are_objects(bucket, run):
    data = [datum([(i + j) % 500 for j in range(60)]) for i in range(600)]
    before = set(bucket.names("blobs/"))
    one = forward(run, data)
    added = set(bucket.names("blobs/")) - before
    assert any(".result-" in name for name in added), "the result was not stored in the bucket"
    run.forward_backward(data, "cross_entropy").result(WAIT)
    assert any(name.endswith(".payload") for name in set(bucket.names("blobs/")) - before), "a replay may need it"
    assert_bits_equal(logprobs(one), logprobs(forward(run, data)))


def test_nothing_is_lost_when_the_server_and_its_data_folder_are(bucket, own):
    """The server dies, copies in its data folder are gone, and the checkpoint that a run was loaded from is deleted."""
    with client(own) as service:
        source = lora(service)
        step(source)
        state = source.save_state("retained").result(WAIT).path
        named = source.save_weights_for_sampler("retained").result(WAIT).path
        sampler = service.create_sampling_client(model_path=named).result(WAIT)
        before = sample(sampler, TOKENS, 2, seed=1, stop=[])
        resumed = service.create_training_client_from_state_with_optimizer(state).result(WAIT)
        losses = [step(resumed)]
        rest(own).delete_checkpoint_from_tinker_path(state).result(WAIT)
        assert folders(bucket, source, "weights"), "a run needs it for its recovery"
        own.kill()
        for work in own.folder.rglob("data/work"):
            shutil.rmtree(work)
        own.start()
        losses.append(step(resumed))
        assert losses == [step(source), step(source)]
        refused(lambda: service.create_training_client_from_state(state).result(WAIT), "retained")
        after = sample(sampler, TOKENS, 2, seed=1, stop=[])
        assert [s.tokens for s in before.sequences] == [s.tokens for s in after.sequences]
        assert_bits_equal([s.logprobs for s in before.sequences], [s.logprobs for s in after.sequences])


def test_a_bucket_that_does_not_exist_is_refused_at_the_start(tmp_path, bucket):
    server = Server(tmp_path, storage="s3://nobody/prefix")
    try:
        with pytest.raises(RuntimeError, match="ended with"):
            server.start()
        assert "--storage" in server.text()
    finally:
        server.close()
