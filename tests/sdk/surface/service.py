"""`ServiceClient`."""

import pathlib

import numpy as np
import pytest
import tinker
from tinker import types
from tinker.lib.retry_handler import RetryConfig

import wire as raw
from helpers import TOKENS, WAIT, assert_bits_equal, datum, forward, logprobs, sample
from server import TINY
from surface import losses
from surface.table import both, client_only, works
from surface.world import LONG, STRANGER


def same_weights(one, other):
    assert_bits_equal(*(logprobs(forward(run, [datum(TOKENS)])) for run in (one, other)))


@works(both("ServiceClient.create_lora_training_client"))
def create_lora_training_client(world, call):
    parts = {"train_mlp": False, "train_attn": True, "train_unembed": False}
    optimizer = types.AdamOptimizerConfig()
    run = call(TINY, rank=3, seed=5, user_metadata={"recipe": "x"}, optimizer=optimizer, **parts)
    info = run.get_info()
    assert (info.model_data.model_name, info.is_lora, info.lora_rank) == (TINY, True, 3)
    found = world.rest.get_training_run(run.model_id).result(WAIT)
    assert (found.user_metadata, found.lora_rank) == ({"recipe": "x"}, 3)
    saved = run.save_state("a").result(WAIT).path
    weights = world.rest.get_weights_info_by_tinker_path(saved).result(WAIT)
    assert {name: getattr(weights, name) for name in parts} == parts
    same_weights(run, call(TINY, rank=3, seed=6, **parts))


@works(both("ServiceClient.create_training_client_from_state"))
def create_training_client_from_state(world, call):
    run = world.trained()
    path = world.state(run)
    made = call(path, LONG, {"resumed": "yes"}, optimizer=types.AdamOptimizerConfig())
    assert made.get_info().model_data.model_name == LONG
    assert world.rest.get_training_run(made.model_id).result(WAIT).user_metadata == {"resumed": "yes"}
    same_weights(made, run)
    theirs = world.new_service(STRANGER)
    with pytest.raises(tinker.NotFoundError):
        call.on(theirs, path)
    same_weights(call.on(theirs, path, weights_access_token=world.member), run)


@works(both("ServiceClient.create_training_client_from_state_with_optimizer"))
def create_training_client_from_state_with_optimizer(world, call):
    """The next step is that of the run that was saved: moments and the count of steps are there."""
    run = world.trained()
    path = world.state(run)
    made = call(path, LONG, {"resumed": "yes"})
    theirs = call.on(world.new_service(STRANGER), path, weights_access_token=world.member)
    assert world.rest.get_training_run(made.model_id).result(WAIT).user_metadata == {"resumed": "yes"}
    for one in (run, made, theirs):
        one.forward_backward([datum(TOKENS)], "cross_entropy").result(WAIT)
        one.optim_step(types.AdamParams(learning_rate=1e-2)).result(WAIT)
    same_weights(made, run)
    same_weights(theirs, run)


@works(both("ServiceClient.create_sampling_client"))
def create_sampling_client(world, call):
    path = world.named()
    plain = call(base_model=TINY)
    trained = call(model_path=path, record_stability_info=True, retry_config=RetryConfig())
    renamed = call(model_path=path, base_model=LONG)
    assert [client.get_base_model() for client in (plain, trained, renamed)] == [TINY, TINY, LONG]
    greedy = [sample(one, TOKENS, temperature=0.0, stop=[]).sequences[0].logprobs for one in (plain, trained, renamed)]
    assert greedy[1] == greedy[2] and greedy[0] != greedy[1]
    with pytest.raises(tinker.BadRequestError, match="nobody"):
        call(model_path=path, base_model="nobody")


@works("ServiceClient.copy_weights")
def copy_weights(world, call):
    path = world.state()
    copied = call(path, ttl_seconds=7200)
    shown = world.checkpoint(copied)
    assert copied != path and shown.checkpoint_type == "training" and shown.expires_at is not None
    theirs = call.on(world.new_service(STRANGER, project_id="theirs"), path, weights_access_token=world.member)
    assert theirs not in (path, copied)


@works("ServiceClient.create_custom_loss", note="the SDK traces the function with PyTorch")
def create_custom_loss(world, call):
    with losses.traced("importance"):
        handle = call(lambda logprobs, old, advantages: None, {"logprobs": 1, "old": 1, "advantages": 1})
    assert handle.loss_id is not None
    result = world.run(call.subject).forward_backward_custom(losses.data(handle), handle).result(WAIT)
    assert np.isfinite(result.metrics["loss:sum"])


@works(both("ServiceClient.get_server_capabilities"))
def get_server_capabilities(world, call):
    models = {model.model_name: model for model in call().supported_models}
    assert set(models) == {TINY, LONG}
    assert models[TINY].max_context_length == 512


@works("ServiceClient.close")
def close(world, call):
    for reason in ("success", "errored", "interrupted"):
        service = world.new_service()
        session = service.holder.get_session_id()
        call.on(service, reason, detail="of a test")
        (found,) = world.rest.search_sessions(types.SessionSearchRequest(session_id=session)).result(WAIT).sessions
        assert (found.status.type, found.status.reason.type) == ("client_finished", reason)
        beat = raw.Wire(world.server, world.member).post("session_heartbeat", {"session_id": session})
        assert beat.status_code == 410


@works("ServiceClient.create_rest_client")
def create_rest_client(world, call):
    assert world.session() in call().list_sessions(limit=1000).result(WAIT).sessions


@works("ServiceClient.holder", note="kept for older programs")
def holder(world, call):
    session = call.get().get_session_id()
    assert session in world.rest.list_sessions(limit=1000).result(WAIT).sessions


@client_only("ServiceClient.get_console_url", note="the hosted console's address")
def get_console_url(world, call):
    call.subject.holder.get_session_id()
    assert call().startswith("https://tinker.thinkingmachines.ai/sessions/")


@works(
    [f"{kind}Client.get_telemetry" for kind in ("Service", "Training", "Sampling", "Rest", "Admin")],
    [f"Backcompat{owner}Future.get_telemetry" for owner in ("TrainingClient", "SamplingClient")],
    note="the server accepts telemetry and keeps none of it",
)
def get_telemetry(world, call):
    if call.owner == "ServiceClient":
        call.subject.holder.get_session_id()
    telemetry = call()
    assert telemetry is not None
    assert telemetry._trigger_flush() is None and telemetry._wait_until_drained_sync()


@works("auth.raise_if_tinker_not_accessible")
def raise_if_tinker_not_accessible(world, call):
    with environment(world, world.member):
        call.on(tinker.auth)
    with environment(world, "tml-nobody-0123456789-0123456789"), pytest.raises(tinker.AuthenticationError):
        call.on(tinker.auth)


@client_only("auth.get_tinker_token", "auth.tinker_has_credentials")
def local_credentials(world, call):
    with environment(world, world.member):
        assert call.on(tinker.auth) == {"get_tinker_token": world.member, "tinker_has_credentials": True}[call.member]
    with environment(world, None):
        assert not call.on(tinker.auth)


def environment(world, key):
    """What the SDK takes from its environment."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TINKER_BASE_URL", world.server.url)
    patch.setenv("HOME", str(world.folder))
    patch.setattr(pathlib.Path, "home", lambda: world.folder)
    patch.delenv("TINKER_API_KEY", raising=False)
    if key is not None:
        patch.setenv("TINKER_API_KEY", key)
    return patched(patch)


class patched:
    """Undoes a patch at the end of a block."""

    def __init__(self, patch):
        self.patch = patch

    def __enter__(self):
        return self.patch

    def __exit__(self, *_):
        self.patch.undo()
