"""The command line: servers that others reach, calls without a key, broken pipes, and files that it downloads."""

import json
import os
import subprocess

import httpx
import pytest

from deployment import launch
from helpers import ALICE, BOB, TOKENS, TWO_TENANTS, WAIT, client, datum, lora, prompt, rest, train
from process import PATIENCE, free_port
from server import BINARY, KEY, TINY, TINY_MODELS, Server
from tenancy import trainyard


def run(*words, cwd="/", **environment):
    """A command that ends by itself."""
    command = [str(word) for word in (BINARY, *words)]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TINKER_")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60 * PATIENCE, cwd=cwd, env=plain | environment
    )


@pytest.mark.deployments("sqlite")
def test_a_key_in_the_store_opens_a_server_to_others(tmp_path):
    """Without one the server does not start; the file needs to list nothing."""
    flags = ["--model", f"{TINY}={TINY_MODELS[TINY]}", "--data-dir", tmp_path / "data", "--host", "0.0.0.0"]
    refused = run("serve", *flags, "--port", free_port(), cwd=tmp_path)
    assert refused.returncode == 1
    assert "--host: 0.0.0.0 is not loopback, so callers need keys, and there are none" in refused.stderr
    checked = run("doctor", *flags, "--port", free_port(), "--json", cwd=tmp_path)
    failed = [check["name"] for check in json.loads(checked.stdout)["checks"] if check["status"] == "failure"]
    assert failed == ["keys"]
    server = Server(tmp_path)
    command = server.server.command
    command[command.index("--host") + 1] = "0.0.0.0"
    trainyard(server, "tenants", "create", "acme")
    ((key, number),) = trainyard(server, "keys", "create", "acme", "--name", "first")
    assert json.loads(run("doctor", *flags, "--port", free_port(), "--json", cwd=tmp_path).stdout)["status"] != "failure"
    try:
        server.start()
        status = lambda key: httpx.get(f"{server.url}/api/v1/training_runs", headers={"X-API-Key": key}).status_code  # noqa: E731
        assert (status(key), status("tml-anything")) == (200, 401)
        trainyard(server, "keys", "revoke", "acme", number)
        assert server.stop() == 0
        server.start()
        # It had a key, so it is not open to everybody now that nobody has one.
        assert (status(key), status("tml-anything")) == (401, 401)
    finally:
        server.close()


def test_a_model_without_a_name_has_that_of_its_folder(tmp_path):
    found = run("doctor", "--model", TINY_MODELS[TINY], "--data-dir", tmp_path / "data", "--port", free_port(), "--json")
    names = [check["name"] for check in json.loads(found.stdout)["checks"] if check["group"] == "models"]
    assert names == [TINY_MODELS[TINY].name]
    refused = run("serve", "--model", "=x")
    assert "expected NAME=PATH, such as Qwen/Qwen3-8B=models/Qwen3-8B" in refused.stderr


@pytest.mark.deployments("sqlite")
def test_whoami_needs_no_key_where_the_server_has_none(tmp_path, deploy):
    with deploy(tmp_path) as open_server:
        told = run("auth", "whoami", "--url", open_server.url)
        assert (told.returncode, told.stderr) == (0, ""), told.stderr
        assert "organisation\tlocal" in told.stdout


@pytest.mark.deployments("sqlite")
def test_whoami_says_that_a_key_is_needed(tmp_path, deploy):
    with deploy(tmp_path, config=TWO_TENANTS) as keyed:
        refused = run("auth", "whoami", "--url", keyed.url)
        assert refused.returncode == 1
        assert "the server needs an API key: pass --api-key, or set TINKER_API_KEY" in refused.stderr
        wrong = run("auth", "whoami", "--url", keyed.url, "--api-key", "tml-nobody-0123456789")
        assert "not known to this server" in wrong.stderr


@pytest.mark.parametrize("words", [("doctor", "--json"), ("openapi",)])
def test_a_reader_that_has_enough_is_not_an_error(words, tmp_path):
    command = f"{BINARY} {' '.join(words)} 2>errors | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60 * PATIENCE, cwd=tmp_path
    )
    assert "roken pipe" not in (tmp_path / "errors").read_text()
    # What was written before the reader left may have been all: `doctor` then tells that no model is given.
    assert done.stdout.strip() in ("0", "1")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    refused = run("tenants", "list", "--data-dir", tmp_path / "file" / "data")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"trainyard: --data-dir: {tmp_path / 'file' / 'data'}: Not a directory")


@pytest.fixture(scope="module")
def saved(tmp_path_factory, deploy):
    """A server of two tenants, and what a run of the first one has saved, by kind."""
    with deploy(tmp_path_factory.mktemp("export"), config=TWO_TENANTS) as server, client(server, ALICE) as service:
        training = lora(service)
        for _ in range(5):
            train(training, [datum(TOKENS)])
        paths = {
            "weights": training.save_state("v1").result(WAIT).path,
            "sampler_weights": training.save_weights_for_sampler("v1").result(WAIT).path,
            "external_weights": training.save_weights_external("v1").result(WAIT).path,
        }
        yield server, paths


def export(server, key, path, folder):
    return run("export", path, "--output", folder, "--url", server.url, TINKER_API_KEY=key)


def test_checkpoints_of_every_kind_are_exported_with_the_same_weights(saved, tmp_path):
    server, paths = saved
    for kind, path in paths.items():
        done = export(server, ALICE, path, tmp_path / kind)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] == "FILE\tSIZE"
        assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()[1:]) == sorted(os.listdir(tmp_path / kind))
    contents = [{file.name: file.read_bytes() for file in (tmp_path / kind).iterdir()} for kind in paths]
    assert set(contents[0]) == {"adapter_config.json", "adapter_model.safetensors"}
    assert contents[0] == contents[1] == contents[2]


def test_an_export_fills_only_an_empty_folder(saved, tmp_path):
    server, paths = saved
    (tmp_path / "notes").write_text("mine")
    refused = export(server, ALICE, paths["sampler_weights"], tmp_path)
    assert refused.returncode == 1 and "is not empty: pass an empty or new folder" in refused.stderr
    assert os.listdir(tmp_path) == ["notes"]


def test_others_export_what_is_public_and_nothing_else(saved, tmp_path):
    server, paths = saved
    path = paths["sampler_weights"]
    refused = export(server, BOB, path, tmp_path / "before")
    assert refused.returncode == 1 and "404" in refused.stderr and not (tmp_path / "before").exists()
    rest(server, ALICE).publish_checkpoint_from_tinker_path(path).result(WAIT)
    assert export(server, BOB, path, tmp_path / "after").returncode == 0
    rest(server, ALICE).unpublish_checkpoint_from_tinker_path(path).result(WAIT)
    nothing = export(server, KEY, path, tmp_path / "unknown")
    assert nothing.returncode == 1 and "not known to this server" in nothing.stderr


def test_a_merged_model_computes_what_the_adapter_did(saved, tmp_path):
    """Up to the rounding of the weights. The other server knows nothing of the run."""
    server, paths = saved
    folder, base = tmp_path / "merged", TINY_MODELS[TINY]
    words = ["--output", folder, "--merge", base, "--url", server.url]
    done = run("export", paths["sampler_weights"], *words, TINKER_API_KEY=ALICE)
    assert done.returncode == 0, done.stderr
    assert {file.name for file in base.iterdir() if file.name in ("config.json", "model.safetensors")} <= set(os.listdir(folder))
    scores = lambda sampler: sampler.compute_logprobs(prompt(TOKENS)).result(WAIT)[1:]  # noqa: E731
    with client(server, ALICE) as service:
        adapted = scores(service.create_sampling_client(model_path=paths["sampler_weights"]).result(WAIT))
        plain = scores(service.create_sampling_client(base_model=TINY).result(WAIT))
    with launch("sqlite", tmp_path, None, models={"merged": folder}) as other, client(other) as service:
        merged = scores(service.create_sampling_client(base_model="merged").result(WAIT))
    assert max(abs(a - b) for a, b in zip(adapted, plain, strict=True)) > 0.01
    assert merged == pytest.approx(adapted, abs=1e-3)


def test_what_cannot_be_merged_is_refused_by_name(saved, tmp_path):
    server, paths = saved
    gone = run("export", paths["weights"], "--output", tmp_path / "a", "--merge", tmp_path / "nowhere", "--url", server.url)
    assert gone.returncode == 1 and "--merge: " in gone.stderr and "nowhere" in gone.stderr
    assert not (tmp_path / "a").exists()
