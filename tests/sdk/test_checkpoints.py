"""Saving, loading, listing and downloading."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest
import tinker
from safetensors.numpy import load_file
from tinker import types

from helpers import (
    KEY,
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
    train,
)
from process import PATIENCE
from server import GOLDEN, TINY

MODELS = {TINY: GOLDEN / "llama", "tiny-qwen2": GOLDEN / "qwen2"}
BATCH = [datum(TOKENS), datum(TOKENS[::-1])]


def traced(run, steps):
    return [train(run, BATCH).metrics["loss:sum"] for _ in range(steps)]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lora, marks=pytest.mark.gpu_core),
        full,
        lambda s: lora(s, "tiny-qwen2", rank=3, train_unembed=False),
    ],
)
def test_resume_goes_on_bit_for_bit(service, make):
    """Weights, both moments and the step count come back: the next losses are those of the uninterrupted run."""
    run = make(service)
    adam = types.AdamParams(learning_rate=1e-3, eps=1e-8, weight_decay=0.01)
    step = lambda r: train(r, BATCH, adam=adam).metrics["loss:sum"]  # noqa: E731
    for _ in range(3):
        step(run)
    path = run.save_state("middle").result(WAIT).path
    assert path == f"tinker://{run.model_id}/weights/middle"
    expected = [step(run) for _ in range(3)]
    resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
    assert resumed.model_id != run.model_id
    assert resumed.get_info().lora_rank == run.get_info().lora_rank
    assert [step(resumed) for _ in range(3)] == expected
    assert_bits_equal(logprobs(forward(run, BATCH)), logprobs(forward(resumed, BATCH)))


def test_resume_without_the_optimizer_starts_it_afresh(service, run):
    traced(run, 3)
    path = run.save_state("weights-only").result(WAIT).path
    state = logprobs(forward(run, BATCH))
    fresh = service.create_training_client_from_state(path).result(WAIT)
    assert_bits_equal(state, logprobs(forward(fresh, BATCH)))
    train(fresh, BATCH)
    train(run, BATCH)
    assert any(not np.array_equal(a, b) for a, b in zip(logprobs(forward(run, BATCH)), logprobs(forward(fresh, BATCH))))


def test_resume_in_another_session(server, run):
    traced(run, 2)
    path = run.save_state("elsewhere").result(WAIT).path
    expected = traced(run, 2)
    with client(server) as other:
        resumed = other.create_training_client_from_state_with_optimizer(path, base_model=TINY).result(WAIT)
        assert traced(resumed, 2) == expected
        refused(
            lambda: other.create_training_client_from_state(path, base_model="tiny-qwen2").result(WAIT), "base_model"
        )


@pytest.mark.gpu_core
def test_a_pending_gradient_is_not_saved(service, run):
    """A save between `forward_backward` and `optim_step` holds weights and moments; the gradient stays with the run."""
    traced(run, 1)
    gradient = run.forward_backward(BATCH, "cross_entropy")
    path = run.save_state("between").result(WAIT).path
    gradient.result(WAIT)
    resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
    before = logprobs(forward(resumed, BATCH))
    assert_bits_equal(before, logprobs(forward(run, BATCH)))


def test_legacy_load_overwrites_a_run(service, run):
    traced(run, 2)
    path = run.save_state("legacy").result(WAIT).path
    expected = traced(run, 2)
    target = lora(service)
    with pytest.warns(FutureWarning):
        target.load_state_with_optimizer(path).result(WAIT)
    assert traced(target, 2) == expected


def test_names(run):
    """A path is always returned; a name in use is a user error at once, not a 409."""
    run.save_state("twice").result(WAIT)
    refused(lambda: run.save_state("twice").result(WAIT), "twice", "overwrite")
    run.save_weights_for_sampler("twice").result(WAIT)
    refused(lambda: run.save_weights_for_sampler("twice").result(WAIT), "twice")
    for name in ("000020", "step-400", "rolling_7.final", "final"):
        assert run.save_state(name).result(WAIT).path.endswith(f"/weights/{name}")
    train(run, BATCH)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../etc/passwd", "a\\b", "x" * 500, "nul\0byte"])
def test_bad_names(run, name):
    for save in (run.save_state, run.save_weights_for_sampler, run.save_weights_external):
        refused(lambda s=save: s(name).result(WAIT), "path")
    train(run, BATCH)


def test_overwrite_replaces_weights_and_metadata(server, service, run):
    run.save_state("rolling", user_metadata={"step": "1"}).result(WAIT)
    traced(run, 2)
    path = run.save_state("rolling", overwrite=True, user_metadata={"note": "x"}).result(WAIT).path
    (found,) = rest(server).list_checkpoints(run.model_id).result(WAIT).checkpoints
    assert found.user_metadata == {"note": "x"}
    resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
    assert_bits_equal(logprobs(forward(run, BATCH)), logprobs(forward(resumed, BATCH)))


@pytest.mark.parametrize(
    "path",
    [
        "tinker://nobody:train:0/weights/x",
        "tinker://x/weights",
        "tinker://x/weights/../../y",
        "not a path",
        "",
    ],
)
def test_unknown_paths(service, path):
    refused(lambda: service.create_training_client_from_state(path).result(WAIT))
    lora(service)


def test_ttl(server, run):
    path = run.save_state("expiring", ttl_seconds=7200).result(WAIT).path
    api = rest(server)
    find = lambda: api.list_checkpoints(run.model_id).result(WAIT).checkpoints[0]  # noqa: E731
    assert 7000 < (find().expires_at - find().time).total_seconds() <= 7200
    api.set_checkpoint_ttl_from_tinker_path(path, 86400).result(WAIT)
    assert (find().expires_at - find().time).total_seconds() > 80000
    api.set_checkpoint_ttl_from_tinker_path(path, None).result(WAIT)
    assert find().expires_at is None
    for seconds in (60, 10**10):
        refused(lambda s=seconds: api.set_checkpoint_ttl_from_tinker_path(path, s).result(WAIT), "ttl_seconds")
        refused(lambda s=seconds: run.save_state("bad-ttl", ttl_seconds=s).result(WAIT), "ttl_seconds")
    train(run, BATCH)


def test_listing_publishing_and_deleting(server, run):
    """Ids hold `:` and `/`, raw in the URL."""
    api = rest(server)
    state = run.save_state("one", user_metadata={"k": "v"}).result(WAIT).path
    named = run.save_weights_for_sampler("two").result(WAIT).path
    listed = {c.tinker_path: c for c in api.list_checkpoints(run.model_id).result(WAIT).checkpoints}
    assert {p: (c.checkpoint_id, c.checkpoint_type) for p, c in listed.items()} == {
        state: ("weights/one", "training"),
        named: ("sampler_weights/two", "sampler"),
    }
    assert listed[state].size_bytes > 0 and not listed[state].public
    assert listed[state].user_metadata == {"k": "v"}
    everything = {c.tinker_path for c in api.list_user_checkpoints(limit=1000).result(WAIT).checkpoints}
    assert {state, named} <= everything
    for _ in range(2):
        api.publish_checkpoint_from_tinker_path(state).result(WAIT)
    public = {c.tinker_path: c.public for c in api.list_checkpoints(run.model_id).result(WAIT).checkpoints}
    assert public == {state: True, named: False}
    api.unpublish_checkpoint_from_tinker_path(state).result(WAIT)
    info = api.get_training_run(run.model_id).result(WAIT)
    assert info.last_checkpoint.tinker_path == state
    assert info.last_sampler_checkpoint.tinker_path == named
    api.delete_checkpoint_from_tinker_path(state).result(WAIT)
    left = [c.tinker_path for c in api.list_checkpoints(run.model_id).result(WAIT).checkpoints]
    assert left == [named]
    with pytest.raises(tinker.NotFoundError):
        api.delete_checkpoint_from_tinker_path(state).result(WAIT)
    train(run, BATCH)


def test_a_deleted_name_is_free_again(server, service, run):
    path = run.save_state("reused").result(WAIT).path
    traced(run, 1)
    rest(server).delete_checkpoint_from_tinker_path(path).result(WAIT)
    refused(lambda: service.create_training_client_from_state(path).result(WAIT), "reused")
    run.save_state("reused").result(WAIT)
    resumed = service.create_training_client_from_state(path).result(WAIT)
    assert_bits_equal(logprobs(forward(run, BATCH)), logprobs(forward(resumed, BATCH)))


def test_pages(server, service):
    run = lora(service)
    for i in range(5):
        run.save_state(f"page-{i}").result(WAIT)
    api = rest(server)
    total = api.list_user_checkpoints(limit=1).result(WAIT).cursor.total_count
    paths = []
    while len(paths) < total:
        page = api.list_user_checkpoints(limit=2, offset=len(paths)).result(WAIT).checkpoints
        assert 0 < len(page) <= 2
        paths += [c.tinker_path for c in page]
    assert len(set(paths)) == total
    runs = api.list_training_runs(limit=3).result(WAIT)
    assert 0 < len(runs.training_runs) <= 3 and runs.cursor.total_count >= len(runs.training_runs)


def test_weights_info(server, service, run):
    path = run.save_state("info").result(WAIT).path
    info = rest(server).get_weights_info_by_tinker_path(path).result(WAIT)
    assert (info.base_model, info.is_lora, info.lora_rank) == (TINY, True, 8)
    whole = full(service).save_state("info").result(WAIT).path
    assert rest(server).get_weights_info_by_tinker_path(whole).result(WAIT).is_lora is False
    with pytest.raises(tinker.NotFoundError):
        rest(server).get_weights_info_by_tinker_path(path + "-no").result(WAIT)


def test_training_run_metadata(server, service):
    run = service.create_lora_training_client(TINY, rank=4, user_metadata={"recipe": "x"}).result(WAIT)
    found = rest(server).get_training_run(run.model_id).result(WAIT)
    assert (found.training_run_id, found.base_model, found.is_lora, found.lora_rank) == (run.model_id, TINY, True, 4)
    assert found.user_metadata == {"recipe": "x"}
    assert found.corrupted is False
    with pytest.raises(tinker.NotFoundError):
        rest(server).get_training_run("nobody:train:0").result(WAIT)


def external(server, run, name):
    path = run.save_weights_external(name).result(WAIT).path
    assert path == f"tinker://{run.model_id}/external_weights/{name}"
    return path, rest(server).get_external_weights_urls(path).result(WAIT)


def test_external_weights(server, run):
    """URLs that authorise themselves, of files that PEFT understands."""
    train(run, BATCH)
    path, links = external(server, run, "export")
    assert set(links.urls) >= {"adapter_config.json", "adapter_model.safetensors"}
    files = {name: urllib.request.urlopen(url, timeout=30) for name, url in links.urls.items()}
    config = json.loads(files["adapter_config.json"].read())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 8, 32)
    assert config["base_model_name_or_path"] == TINY
    assert "q_proj" in config["target_modules"]
    body = files["adapter_model.safetensors"].read()
    assert len(body) == int(files["adapter_model.safetensors"].headers["content-length"])
    refused(lambda: run.save_weights_external("export").result(WAIT), "export")
    rest(server).delete_checkpoint_from_tinker_path(path).result(WAIT)
    with pytest.raises(urllib.error.HTTPError) as gone:
        urllib.request.urlopen(links.urls["adapter_config.json"], timeout=30)
    assert gone.value.code in (404, 410)


def test_forged_urls_are_refused(server, run):
    _, links = external(server, run, "signed")
    url = links.urls["adapter_config.json"]
    for forged in (url[:-1] + ("0" if url[-1] != "0" else "1"), url.split("?")[0]):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(forged, timeout=30)
        assert refusal.value.code in (401, 403, 404)


def test_encrypted_exports_are_refused_by_name(run):
    call = lambda: run.save_weights_external("secret", age_encryption_recipients=["age1xyz"]).result(WAIT)  # noqa: E731
    refused(call, "age_encryption_recipients")
    train(run, BATCH)


def cli(server, *arguments, folder):
    environment = os.environ | {"TINKER_BASE_URL": server.url, "TINKER_API_KEY": KEY, "HOME": str(folder)}
    command = [sys.executable, "-m", "tinker.cli", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180 * PATIENCE)
    # The client's native transport now and then aborts the interpreter's exit, when all is done.
    assert done.returncode == 0 or (done.returncode == -signal.SIGABRT and not done.stderr), done.stdout + done.stderr
    return done.stdout


def test_cli_download(server, run, tmp_path):
    """`tinker checkpoint download` of a training checkpoint, end to end; it leaves nothing behind."""
    train(run, BATCH)
    path = run.save_state("download-me").result(WAIT).path
    cli(server, "checkpoint", "download", path, "--output", str(tmp_path), folder=tmp_path)
    (folder,) = [p for p in tmp_path.iterdir() if p.name.endswith("weights_download-me")]
    config = json.loads((folder / "adapter_config.json").read_text())
    tensors = load_file(folder / "adapter_model.safetensors")
    hidden, rank = 64, config["r"]
    query = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    assert tensors[query + "A.weight"].shape == (rank, hidden)
    assert tensors[query + "B.weight"].shape == (64, rank)
    assert np.abs(tensors[query + "B.weight"]).max() > 0
    listed = [c.tinker_path for c in rest(server).list_user_checkpoints(limit=1000).result(WAIT).checkpoints]
    assert not any("/external_weights/download" in p for p in listed)
    runs = rest(server).list_training_runs(limit=1000).result(WAIT).training_runs
    assert not any((r.user_metadata or {}).get("created_by") for r in runs)
    assert path.split("/")[2] in [r.training_run_id for r in runs]


def test_cli_lists(server, run, tmp_path):
    path = run.save_state("listed").result(WAIT).path
    assert TINY in cli(server, "--format", "json", "model", "list", folder=tmp_path)
    runs = cli(server, "--format", "json", "run", "list", folder=tmp_path)
    assert run.model_id in runs
    assert path in cli(server, "--format", "json", "checkpoint", "list", "--limit", "0", folder=tmp_path)
    assert run.model_id in cli(server, "--format", "json", "run", "info", run.model_id, folder=tmp_path)
    cli(server, "--format", "json", "checkpoint", "info", path, folder=tmp_path)
    cli(server, "checkpoint", "set-ttl", path, "--ttl", "7200", folder=tmp_path)
    cli(server, "checkpoint", "publish", path, folder=tmp_path)
    cli(server, "checkpoint", "unpublish", path, folder=tmp_path)
    cli(server, "checkpoint", "delete", path, "--yes", folder=tmp_path)
    assert path not in cli(server, "--format", "json", "checkpoint", "list", "--limit", "0", folder=tmp_path)


@pytest.mark.gpu_core
def test_sampler_files_are_a_peft_folder(server, run):
    """What a named sampler save leaves in the data folder loads in `peft` as it is."""
    train(run, BATCH)
    run.save_weights_for_sampler("peft").result(WAIT)
    configs = list(server.storage.rglob("peft.*/adapter_config.json"))
    assert len(configs) == 1
    config = json.loads(configs[0].read_text())
    tensors = load_file(configs[0].parent / "adapter_model.safetensors")
    names = {name.split(".")[-3] for name in tensors}
    assert {m.split(".")[-1] for m in config["target_modules"]} >= names - {"unembed_tokens"}
    assert all(name.startswith("base_model.model.") for name in tensors)
