"""`RestClient`: runs and checkpoints."""

import json

import httpx
import pytest
import tinker

from helpers import TOKENS, WAIT, datum, forward, logprobs, rest
from server import TINY
from surface.table import both, works
from surface.world import LONG, STRANGER


def ids(response) -> set[str]:
    return {run.training_run_id for run in response.training_runs}


def paths(response) -> set[str]:
    return {found.tinker_path for found in response.checkpoints}


@works("RestClient.get_server_capabilities")
def get_server_capabilities(world, call):
    assert {model.model_name for model in call().supported_models} == {TINY, LONG}


@works(both("RestClient.get_training_run"))
def get_training_run(world, call):
    run = world.trained()
    found = call(run.model_id, access_scope="owned")
    assert (found.training_run_id, found.base_model, found.lora_rank) == (run.model_id, TINY, 4)
    assert_scope(world, call, world.state(run), lambda path: path.split("/")[2])


@works(both("RestClient.get_training_run_by_tinker_path"))
def get_training_run_by_tinker_path(world, call):
    path = world.state()
    assert call(path, access_scope="owned").last_checkpoint.tinker_path == path
    assert_scope(world, call, path, lambda path: path)


def assert_scope(world, call, path, argument):
    """Another tenant sees the run of a public checkpoint, by saying so."""
    theirs = rest(world.server, STRANGER)
    with pytest.raises(tinker.NotFoundError):
        call.on(theirs, argument(path), access_scope="accessible")
    world.rest.publish_checkpoint_from_tinker_path(path).result(WAIT)
    found = call.on(theirs, argument(path), access_scope="accessible")
    assert (found.model_owner, found.last_checkpoint.tinker_path) == ("acme", path)
    with pytest.raises(tinker.NotFoundError):
        call.on(theirs, argument(path), access_scope="owned")


@works("RestClient.get_weights_info_by_tinker_path")
def get_weights_info_by_tinker_path(world, call):
    info = call(world.state())
    assert (info.base_model, info.is_lora, info.lora_rank, info.train_mlp) == (TINY, True, 4, True)


@works(both("RestClient.list_training_runs"))
def list_training_runs(world, call):
    """Newest first, of a project, and those of others with public checkpoints."""
    project = world.name()
    service = world.new_service(project_id=project)
    first, second = world.run(service), world.run(service)
    pages = [ids(call(limit=1, offset=offset, access_scope="owned", project_id=project)) for offset in (0, 1, 2)]
    assert sorted(map(len, pages)) == [0, 1, 1] and pages[0] | pages[1] == {first.model_id, second.model_id}
    path = world.state(first)
    world.rest.publish_checkpoint_from_tinker_path(path).result(WAIT)
    theirs = rest(world.server, STRANGER)
    assert first.model_id in ids(call.on(theirs, limit=1000, access_scope="accessible"))
    assert first.model_id not in ids(call.on(theirs, limit=1000, access_scope="owned"))


@works(both("RestClient.list_checkpoints"))
def list_checkpoints(world, call):
    run = world.trained()
    expected = {world.state(run), world.named(run), world.export(run)}
    found = call(run.model_id)
    assert paths(found) == expected
    assert {one.checkpoint_type for one in found.checkpoints} == {"training", "sampler", "external"}


@works(both("RestClient.list_user_checkpoints"))
def list_user_checkpoints(world, call):
    run = world.trained()
    expected = {world.state(run), world.state(run)}
    assert paths(call(limit=2, offset=0)) == expected
    assert not paths(call(limit=1000, offset=2)) & expected


@works(both("RestClient.get_external_weights_urls"))
def get_external_weights_urls(world, call):
    urls = call(world.export()).urls
    assert set(urls) >= {"adapter_config.json", "adapter_model.safetensors"}
    assert json.loads(httpx.get(urls["adapter_config.json"]).content)["r"] == 4


@works(both("RestClient.delete_checkpoint", "RestClient.delete_checkpoint_from_tinker_path"))
def delete_checkpoint(world, call):
    path = world.state()
    run, _, identifier = path.removeprefix("tinker://").partition("/")
    by_path = "tinker_path" in call.member
    arguments = [path] if by_path else [run, identifier]
    with pytest.raises(tinker.NotFoundError):
        call.on(rest(world.server, STRANGER), *arguments)
    assert world.checkpoint(path) is not None
    call(*arguments)
    assert world.checkpoint(path) is None


@works(both("RestClient.copy_weights"))
def copy_weights(world, call):
    run = world.trained()
    path = world.state(run)
    project = world.name()
    copied = call(path, project, ttl_seconds=7200)
    assert copied.split("/")[2] in ids(world.rest.list_training_runs(project_id=project).result(WAIT))
    assert world.checkpoint(copied).expires_at is not None
    theirs = rest(world.server, STRANGER)
    with pytest.raises(tinker.NotFoundError):
        call.on(theirs, path, "theirs")
    shared = call.on(theirs, path, "theirs", weights_access_token=world.member)
    loaded = world.new_service(STRANGER).create_training_client_from_state(shared).result(WAIT)
    data = [datum(TOKENS)]
    assert (logprobs(forward(loaded, data))[0] == logprobs(forward(run, data))[0]).all()


@works(both("RestClient.publish_checkpoint_from_tinker_path", "RestClient.unpublish_checkpoint_from_tinker_path"))
def publish(world, call):
    path = world.state()
    publishes = call.member.startswith("publish")
    if not publishes:
        world.rest.publish_checkpoint_from_tinker_path(path).result(WAIT)
    with pytest.raises(tinker.NotFoundError):
        call.on(rest(world.server, STRANGER), path)
    assert world.checkpoint(path).public is not publishes
    call(path)
    assert world.checkpoint(path).public is publishes


@works(both("RestClient.set_checkpoint_ttl_from_tinker_path"))
def set_ttl(world, call):
    path = world.state()
    call(path, 7200)
    assert world.checkpoint(path).expires_at is not None
    call(path, None)
    assert world.checkpoint(path).expires_at is None
    with pytest.raises(tinker.BadRequestError, match="ttl_seconds"):
        call(path, 1)
