"""What other tenants see and do with a public checkpoint, and that they see nothing else."""

import json
import os
import subprocess
import sys
import urllib.request

import pytest
import tinker

import wire as raw
from helpers import (
    ALICE,
    BOB,
    TOKENS,
    TWO_TENANTS,
    WAIT,
    assert_bits_equal,
    client,
    datum,
    forward,
    logprobs,
    lora,
    rest,
    sample,
    train,
)
from process import PATIENCE

CONFIG = TWO_TENANTS


@pytest.fixture(scope="module")
def hers(server):
    """A run of Alice's with a public checkpoint of each kind and a private one."""
    with client(server, ALICE) as service:
        run = lora(service, user_metadata={"renderer": "plain"})
        train(run, [datum(TOKENS)])
        paths = {
            "state": run.save_state("state").result(WAIT).path,
            "named": run.save_weights_for_sampler("named").result(WAIT).path,
            "external": run.save_weights_external("external").result(WAIT).path,
        }
        sampler = service.create_sampling_client(model_path=paths["named"]).result(WAIT)
        expected = {
            "logprobs": logprobs(forward(run, [datum(TOKENS)])),
            "tokens": sample(sampler, TOKENS, seed=3).sequences[0].tokens,
        }
        private = run.save_state("private").result(WAIT).path
        for path in paths.values():
            rest(server, ALICE).publish_checkpoint_from_tinker_path(path).result(WAIT)
        yield paths | expected | {"run": run.model_id, "private": private}


@pytest.fixture(scope="module")
def bob(server):
    return rest(server, BOB)


def test_the_run_and_its_public_checkpoints(bob, hers):
    """With `accessible`, and never with `owned`."""
    run = bob.get_training_run_by_tinker_path(hers["state"], access_scope="accessible").result(WAIT)
    assert (run.training_run_id, run.model_owner, run.lora_rank) == (hers["run"], "alice", 8)
    assert run.user_metadata == {"renderer": "plain"}
    assert run.last_checkpoint.tinker_path == hers["state"], "the newest one is private"
    assert run.last_sampler_checkpoint.tinker_path == hers["named"]
    listed = bob.list_checkpoints(hers["run"]).result(WAIT).checkpoints
    assert {c.tinker_path for c in listed} == {hers["state"], hers["named"], hers["external"]}
    assert all(c.public for c in listed)
    with pytest.raises(tinker.NotFoundError):
        bob.get_training_run(hers["run"]).result(WAIT)


def test_the_listings(bob, hers):
    page = bob.list_training_runs(access_scope="accessible").result(WAIT)
    assert [run.training_run_id for run in page.training_runs] == [hers["run"]]
    assert page.cursor.total_count == 1
    assert bob.list_training_runs().result(WAIT).training_runs == []
    assert bob.list_user_checkpoints().result(WAIT).checkpoints == []
    assert bob.list_sessions(access_scope="accessible").result(WAIT).sessions == []


def test_what_can_be_done_with_them(server, bob, hers):
    assert bob.get_weights_info_by_tinker_path(hers["state"]).result(WAIT).lora_rank == 8
    with client(server, BOB) as service:
        sampler = service.create_sampling_client(model_path=hers["named"]).result(WAIT)
        assert sample(sampler, TOKENS, seed=3).sequences[0].tokens == hers["tokens"]
        loaded = service.create_training_client_from_state_with_optimizer(hers["state"]).result(WAIT)
        assert_bits_equal(logprobs(forward(loaded, [datum(TOKENS)])), hers["logprobs"])
        copied = service.create_training_client_from_state(
            bob.copy_weights(hers["state"], "p").result(WAIT)
        ).result(WAIT)
        assert_bits_equal(logprobs(forward(copied, [datum(TOKENS)])), hers["logprobs"])
    urls = bob.get_external_weights_urls(hers["external"]).result(WAIT).urls
    assert json.loads(urllib.request.urlopen(urls["adapter_config.json"], timeout=30).read())["r"] == 8


def test_the_command_line_downloads_one(server, hers, tmp_path):
    command = [sys.executable, "-m", "tinker.cli", "checkpoint", "download", hers["state"], "--output", tmp_path]
    environment = os.environ | {"TINKER_BASE_URL": server.url, "TINKER_API_KEY": BOB, "TINKER_TELEMETRY": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.rglob("adapter_model.safetensors")]


def test_what_cannot(server, bob, hers):
    """To read is not to change; and what is private is unknown, word by word."""
    wire = raw.Wire(server, BOB)
    base = f"training_runs/{hers['run']}/checkpoints/weights"
    answers = {}
    for name in ("state", "private", "none"):
        answers[name] = [
            wire.http.delete(f"{base}/{name}"),
            wire.http.put(f"{base}/{name}/ttl", json={"ttl_seconds": 3600}),
            wire.http.post(f"{base}/{name}/publish"),
            wire.http.delete(f"{base}/{name}/publish"),
        ]
    for name in ("private", "none"):
        path = hers["private"].replace("private", name)
        session = wire.session()
        load = {"session_id": session, "model_seq_id": 0, "path": path, "optimizer": False}
        answers[name] += [
            wire.post("weights_info", {"tinker_path": path}),
            wire.post("load_weights", load),
            wire.post("copy_weights", {"source_path": path, "destination_project_id": "p"}),
        ]

    def plain(name):
        seen = []
        for answer in answers[name]:
            body = answer.json()
            seen.append((answer.status_code, body["detail"].replace(name, "*")))
        return seen

    assert {status for status, _ in plain("state")} == {404}
    assert plain("private") == plain("none")


def test_nothing_is_left_once_it_is_private_again(server, bob, hers):
    mine = rest(server, ALICE)
    for kind in ("state", "named", "external"):
        mine.unpublish_checkpoint_from_tinker_path(hers[kind]).result(WAIT)
    listed = bob.list_training_runs(limit=100, access_scope="accessible").result(WAIT).training_runs
    assert hers["run"] not in {run.training_run_id for run in listed}
    for call in (
        lambda: bob.get_training_run(hers["run"], access_scope="accessible").result(WAIT),
        lambda: bob.list_checkpoints(hers["run"]).result(WAIT),
        lambda: bob.get_weights_info_by_tinker_path(hers["state"]).result(WAIT),
    ):
        with pytest.raises(tinker.NotFoundError):
            call()
