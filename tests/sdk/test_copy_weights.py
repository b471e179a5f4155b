"""Copies of checkpoints, and numbers of cloned sampling clients."""

import json
import pickle

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
    refused,
    rest,
    sample,
    train,
)
from server import GOLDEN, TINY

CONFIG = TWO_TENANTS
MODELS = {TINY: GOLDEN / "llama", f"{TINY}:peft:256": GOLDEN / "llama", "other": GOLDEN / "llama_tied"}


@pytest.fixture(scope="module")
def alice(server):
    with client(server, ALICE, project_id="archive") as service:
        yield service


@pytest.fixture(scope="module")
def hers(alice):
    """A trained run with a checkpoint of each kind."""
    run = lora(alice, user_metadata={"renderer": "plain"})
    train(run, [datum(TOKENS)])
    return {
        "run": run,
        "state": run.save_state("state", user_metadata={"step": "1"}).result(WAIT).path,
        "named": run.save_weights_for_sampler("named").result(WAIT).path,
        "external": run.save_weights_external("external").result(WAIT).path,
    }


def test_a_copy_outlives_its_source(server, alice):
    """A new run holds it, of the same kind and name, with the same weights to the bit."""
    run = lora(alice, user_metadata={"renderer": "plain"})
    train(run, [datum(TOKENS)])
    state = run.save_state("state", user_metadata={"step": "1"}).result(WAIT).path
    expected = logprobs(forward(run, [datum(TOKENS)]))
    mine = rest(server, ALICE)
    copied = alice.copy_weights(state).result(WAIT)
    assert copied != state and copied.endswith(":train:0/weights/state")
    mine.delete_checkpoint_from_tinker_path(state).result(WAIT)
    (shown,) = mine.list_checkpoints(copied.split("/")[2]).result(WAIT).checkpoints
    assert (shown.tinker_path, shown.user_metadata, shown.public) == (copied, {"step": "1"}, False)
    holder = mine.get_training_run_by_tinker_path(copied).result(WAIT)
    assert (holder.user_metadata, holder.corrupted, holder.lora_rank) == ({"renderer": "plain"}, False, 8)
    resumed = alice.create_training_client_from_state_with_optimizer(copied).result(WAIT)
    assert_bits_equal(logprobs(forward(resumed, [datum(TOKENS)])), expected)


def test_the_project_of_the_copy(server, alice, hers):
    """Of the service client, or as named."""
    mine = rest(server, ALICE)
    for copied, project in (
        (alice.copy_weights(hers["named"]).result(WAIT), "archive"),
        (mine.copy_weights(hers["named"], "elsewhere").result(WAIT), "elsewhere"),
    ):
        listed = mine.list_training_runs(limit=100, project_id=project).result(WAIT).training_runs
        assert copied.split("/")[2] in {run.training_run_id for run in listed}
        assert sample(alice.create_sampling_client(model_path=copied).result(WAIT), TOKENS, seed=1).sequences


def test_its_expiry_is_its_own(server, alice, hers):
    mine = rest(server, ALICE)
    copied = alice.copy_weights(hers["external"], ttl_seconds=3600).result(WAIT)
    (shown,) = mine.list_checkpoints(copied.split("/")[2]).result(WAIT).checkpoints
    assert shown.expires_at is not None and shown.checkpoint_type == "external"
    assert set(mine.get_external_weights_urls(copied).result(WAIT).urls) >= {"adapter_config.json"}
    refused(lambda: alice.copy_weights(hers["external"], ttl_seconds=5).result(WAIT), "ttl_seconds")


def test_the_run_of_a_copy_is_not_trained(server, alice, hers):
    copied = alice.copy_weights(hers["state"]).result(WAIT)
    wire = raw.Wire(server, ALICE)
    raw.refused(wire.forward_backward(copied.split("/")[2], 1), "can't be trained", statuses=(400,))


def test_only_who_may_read_may_copy(server, hers):
    """Another tenant's checkpoint is unknown, unless it is public or one of that tenant's keys is given."""
    theirs = rest(server, BOB)
    missing = hers["state"].replace("/state", "/none")
    texts = []
    for path in (hers["state"], missing):
        with pytest.raises(tinker.NotFoundError) as error:
            theirs.copy_weights(path, "p").result(WAIT)
        texts.append(json.dumps({"detail": error.value.body["detail"]}).replace(path, ""))
    assert texts[0] == texts[1]
    with pytest.raises(tinker.PermissionDeniedError):
        theirs.copy_weights(hers["state"], "p", weights_access_token="tml-nobody").result(WAIT)
    copied = theirs.copy_weights(hers["state"], "p", weights_access_token=ALICE).result(WAIT)
    assert theirs.get_weights_info_by_tinker_path(copied).result(WAIT).lora_rank == 8
    with pytest.raises(tinker.NotFoundError):
        rest(server, ALICE).get_weights_info_by_tinker_path(copied).result(WAIT)


def test_loading_with_a_key_of_the_owner(server, hers):
    """`weights_access_token` of a load."""
    expected = logprobs(forward(hers["run"], [datum(TOKENS)]))
    with client(server, BOB) as service:
        loaded = service.create_training_client_from_state(hers["state"], weights_access_token=ALICE).result(WAIT)
        assert_bits_equal(logprobs(forward(loaded, [datum(TOKENS)])), expected)
        with pytest.raises(tinker.PermissionDeniedError):
            service.create_training_client_from_state(hers["state"], weights_access_token="tml-no").result(WAIT)
        with pytest.raises(tinker.NotFoundError):
            service.create_training_client_from_state(hers["state"], weights_access_token=BOB).result(WAIT)


def test_loading_under_another_name_of_the_base_model(alice, hers):
    """What counts are the weights; the run has the name that was asked for, and its checkpoints do."""
    expected = logprobs(forward(hers["run"], [datum(TOKENS)]))
    name = f"{TINY}:peft:256"
    loaded = alice.create_training_client_from_state_with_optimizer(hers["state"], base_model=name).result(WAIT)
    assert loaded.get_info().model_data.model_name == name
    assert_bits_equal(logprobs(forward(loaded, [datum(TOKENS)])), expected)
    saved = loaded.save_state("renamed").result(WAIT).path
    again = alice.create_training_client_from_state(saved).result(WAIT)
    assert again.get_info().model_data.model_name == name
    assert_bits_equal(logprobs(forward(again, [datum(TOKENS)])), expected)
    for base in ("other", "unknown"):
        refused(
            lambda base=base: alice.create_training_client_from_state(hers["state"], base_model=base).result(WAIT),
            "base_model",
        )


def test_sampling_under_another_name_of_the_base_model(alice, hers):
    """What counts are the weights, in whatever order the names are asked for."""
    name, path = f"{TINY}:peft:256", hers["named"]
    samplers = [
        alice.create_sampling_client(model_path=path, base_model=base).result(WAIT) for base in (name, None, TINY, name)
    ]
    assert [sampler.get_base_model() for sampler in samplers] == [name, TINY, TINY, name]
    expected = logprobs(forward(hers["run"], [datum(TOKENS)]))
    for sampler in samplers:
        seen = sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True).prompt_logprobs_np[1:]
        assert_bits_equal([seen], expected)
    for base in ("other", "unknown"):
        refused(
            lambda base=base: alice.create_sampling_client(model_path=path, base_model=base).result(WAIT),
            "base_model", base,
        )  # fmt: skip


def test_clones_are_numbered_by_the_server(server, alice):
    """Unpickled clients count their samples from 10^9 times a number that no other clone has."""
    original = alice.create_sampling_client(base_model=TINY).result(WAIT)
    expected = sample(original, TOKENS, seed=7, temperature=1.0).sequences[0].tokens
    for number in (1, 2):
        clone = pickle.loads(pickle.dumps(original))
        assert sample(clone, TOKENS, seed=7, temperature=1.0).sequences[0].tokens == expected
        assert clone._cloned_sampler_id == number
    wire = raw.Wire(server, BOB)
    joined = wire.post("join_sampling_session", {"sampling_session_id": original._sampling_session_id})
    raw.refused(joined, "sampling session", statuses=(404,))
