"""`TrainingClient`: saving and loading."""

import httpx
import numpy as np
import pyrage
import pytest
import tinker
from tinker import types
from tinker.lib.retry_handler import RetryConfig

from helpers import TOKENS, WAIT, assert_bits_equal, datum, forward, logprobs, refused, sample
from surface.table import client_only, works
from surface.training import settled, training
from surface.world import STRANGER

DAY = 86_400


def lifetime(checkpoint) -> float | None:
    """In seconds; none where it does not expire."""
    return (checkpoint.expires_at - checkpoint.time).total_seconds() if checkpoint.expires_at else None


@works(training("save_state"))
def save_state(world, call):
    name = world.name()
    path = call(name, ttl_seconds=DAY, user_metadata={"step": "1"}).path
    assert path == f"tinker://{settled(world, call).model_id}/weights/{name}"
    shown = world.checkpoint(path)
    assert (shown.checkpoint_type, shown.user_metadata) == ("training", {"step": "1"})
    assert lifetime(shown) == pytest.approx(DAY, abs=60)
    refused(lambda: call(name), "overwrite")
    assert call(name, overwrite=True).path == path
    shown = world.checkpoint(path)
    assert not shown.user_metadata and lifetime(shown) is None


@works(training("load_state"))
def load_state(world, call):
    """The weights alone: moments and the count of steps begin anew."""
    loaded(world, call, keeps_optimizer=False)


@works(training("load_state_with_optimizer"))
def load_state_with_optimizer(world, call):
    """The next step is that of the run that was saved."""
    loaded(world, call, keeps_optimizer=True)


def loaded(world, call, keeps_optimizer: bool):
    original = world.trained()
    path = world.state(original)
    call(path)
    theirs = world.run(world.new_service(STRANGER))
    with pytest.raises(tinker.RequestFailedError):
        call.on(theirs, path)
    call.on(theirs, path, weights_access_token=world.member)
    runs = [original, settled(world, call), theirs]
    assert_bits_equal(*(one() for one in (lambda: view(runs[0]), lambda: view(runs[1]))))
    for run in runs:
        run.forward_backward([datum(TOKENS[::-1])], "cross_entropy").result(WAIT)
        run.optim_step(types.AdamParams(learning_rate=1e-2)).result(WAIT)
    expected, *found = [view(run) for run in runs]
    assert [np.array_equal(one[0], expected[0]) for one in found] == [keeps_optimizer] * 2


def view(run):
    return logprobs(forward(run, [datum(TOKENS)]))


@works(training("save_weights_for_sampler"))
def save_weights_for_sampler(world, call):
    name = world.name()
    path = call(name, ttl_seconds=DAY, user_metadata={"step": "1"}).path
    assert path == f"tinker://{settled(world, call).model_id}/sampler_weights/{name}"
    shown = world.checkpoint(path)
    assert (shown.checkpoint_type, shown.user_metadata) == ("sampler", {"step": "1"})
    assert lifetime(shown) == pytest.approx(DAY, abs=60)
    assert sample(world.sampler(model_path=path), TOKENS).sequences


@works(training("save_weights_external"))
def save_weights_external(world, call):
    """A PEFT folder, encrypted for recipients if there are any."""
    identity = pyrage.x25519.Identity.generate()
    plain = call(world.name(), ttl_seconds=DAY).path
    assert lifetime(world.checkpoint(plain)) == pytest.approx(DAY, abs=60)
    secret = call(world.name(), age_encryption_recipients=[str(identity.to_public())]).path
    expected, encrypted = (world.rest.get_external_weights_urls(path).result(WAIT).urls for path in (plain, secret))
    name = "adapter_model.safetensors"
    content = httpx.get(encrypted[f"{name}.age"]).raise_for_status().content
    assert pyrage.decrypt(content, [identity]) == httpx.get(expected[name]).raise_for_status().content


@works(training("create_sampling_client"))
def create_sampling_client(world, call):
    run = settled(world, call)
    run.forward_backward([datum(TOKENS)], "cross_entropy").result(WAIT)
    run.optim_step(types.AdamParams(learning_rate=1e-2)).result(WAIT)
    assert_samples_as_run(call(world.named(run), RetryConfig(), record_stability_info=True), run)


@works(training("save_weights_and_get_sampling_client"))
def save_weights_and_get_sampling_client(world, call):
    run = settled(world, call)
    recorded = {"record_stability_info": True, "retry_config": RetryConfig()}
    for arguments in ({"kind": "inflight"}, recorded, {"name": "a"}):
        assert_samples_as_run(call(**arguments), run)
    assert not world.rest.list_checkpoints(run.model_id).result(WAIT).checkpoints


def assert_samples_as_run(sampler, run):
    seen = sample(sampler, TOKENS, max_tokens=1, include_prompt_logprobs=True).prompt_logprobs_np[1:]
    assert_bits_equal([seen], view(run))


@client_only(
    "SaveWeightsResponse.get_console_url", "SaveWeightsForSamplerResponse.get_console_url",
    "SaveWeightsForSamplerResponse.get_playground_url", note="the hosted console's address",
)  # fmt: skip
def console_urls(world, call):
    run = world.run()
    save = run.save_state if call.owner == "SaveWeightsResponse" else run.save_weights_for_sampler
    saved = save("a").result(WAIT)
    assert call.on(saved).startswith("https://tinker.thinkingmachines.ai/")
