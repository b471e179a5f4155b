"""`RestClient` and `AdminClient`: sessions, projects, the audit log, usage, and who is calling."""

import datetime

import httpx
import pytest
import tinker
from tinker import types

from helpers import TOKENS, WAIT, rest, sample
from server import TINY
from surface.table import both, works
from surface.world import STRANGER


@works(both("RestClient.get_session"))
def get_session(world, call):
    service = world.new_service(user_metadata={"who": "me"}, display_name="a name")
    run = world.run(service)
    sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
    session = service.holder.get_session_id()
    found = call(session, access_scope="owned")
    assert (found.training_run_ids, found.sampler_ids) == ([run.model_id], [sampler._sampling_session_id])
    assert found.user_metadata == {"who": "me"}
    assert call(session, access_scope="accessible").training_run_ids == [run.model_id]
    for scope in ("owned", "accessible"):
        with pytest.raises(tinker.NotFoundError):
            call.on(rest(world.server, STRANGER), session, access_scope=scope)


@works(both("RestClient.list_sessions"))
def list_sessions(world, call):
    made = [world.new_service().holder.get_session_id() for _ in range(2)]
    pages = [call(limit=1, offset=offset, access_scope="owned").sessions[0] for offset in (0, 1)]
    assert pages == made[::-1], "the newest first"
    assert set(made) <= set(call(limit=1000, access_scope="accessible").sessions)
    assert not set(made) & set(call.on(rest(world.server, STRANGER), access_scope="accessible").sessions)


@works("RestClient.search_sessions", note="marked experimental by the SDK")
def search_sessions(world, call):
    service = world.new_service(display_name=f"sought {world.name()}", user_metadata={"sweep": world.name()})
    session = service.holder.get_session_id()
    request = types.SessionSearchRequest(user_metadata=service._user_metadata)
    assert [found.session_id for found in call(request).sessions] == [session]
    assert call.on(rest(world.server, STRANGER), request).sessions == []


@works(both("RestClient.assign_session_project"))
def assign_session_project(world, call):
    service = world.new_service(project_id="before")
    run = world.run(service)
    project = world.name()
    with pytest.raises(tinker.NotFoundError):
        call.on(rest(world.server, STRANGER), service.holder.get_session_id(), project)
    call(service.holder.get_session_id(), project)
    (moved,) = world.rest.list_training_runs(project_id=project).result(WAIT).training_runs
    assert moved.training_run_id == run.model_id


@works(both("RestClient.export_session_trace"))
def export_session_trace(world, call):
    run = world.trained(world.new_service())
    session = run.model_id.partition(":")[0]
    trace = httpx.get(call(session)).raise_for_status().content
    for name in (b"create_model 0", b"forward_backward 1", b"optim_step 2"):
        assert name in trace
    with pytest.raises(tinker.NotFoundError):
        call.on(rest(world.server, STRANGER), session)


@works(both("RestClient.get_sampler"))
def get_sampler(world, call):
    path = world.named()
    sampler = world.sampler(model_path=path)
    found = call(sampler._sampling_session_id)
    assert (found.sampler_id, found.base_model, found.model_path) == (sampler._sampling_session_id, TINY, path)
    with pytest.raises(tinker.NotFoundError):
        call.on(rest(world.server, STRANGER), sampler._sampling_session_id)


@works("RestClient.whoami")
def whoami(world, call):
    email, key = world.user()
    found = call.on(rest(world.server, key))
    assert (found.email, found.org_urn) == (email, "tml:organization:acme")
    program, stranger = call(), call.on(rest(world.server, STRANGER))
    assert (program.email, program.org_urn) == (None, found.org_urn)
    assert stranger.org_urn == "tml:organization:stranger"
    assert len({found.user_urn, program.user_urn, stranger.user_urn}) == 3
    with pytest.raises(tinker.AuthenticationError):
        call.on(rest(world.server, "tml-nobody-0123456789-0123456789"))


def admin(name: str) -> list[str]:
    """Of the client for admins and, deprecated, of the other."""
    return [*both(f"AdminClient.{name}"), *both(f"RestClient.{name}")]


def clients(world, call):
    """The call's kind of client, with an admin's key and with a member's."""
    kind = tinker.RestClient if call.owner == "RestClient" else tinker.AdminClient
    return [kind(base_url=world.server.url, api_key=key) for key in (world.chief, world.member)]


@works(admin("get_audit_log"))
def get_audit_log(world, call):
    path = world.state()
    world.rest.publish_checkpoint_from_tinker_path(path).result(WAIT)
    chief, member = clients(world, call)
    today = datetime.datetime.now(datetime.UTC).date()
    days = [today + datetime.timedelta(days=offset) for offset in (-1, 0)]
    entries = [entry for day in days for entry in call.on(chief, event_type="checkpoints", day=day).entries]
    assert [entry.event for entry in entries if entry.tinker_path == path] == ["checkpoint_publish"]
    assert path in [entry.tinker_path for entry in call.on(chief, event_type="all").entries]
    for event_type in ("projects", "teams", "organizations"):
        found = call.on(chief, event_type=event_type).entries
        assert path not in [entry.tinker_path for entry in found]
    with pytest.raises(tinker.PermissionDeniedError):
        call.on(member)


@works(admin("get_billing_usage"), note="tokens, checkpoints and storage; no prices")
def get_billing_usage(world, call):
    service = world.new_service(project_id=world.name())
    run = world.trained(service)
    sample(service.create_sampling_client(base_model=TINY).result(WAIT), TOKENS)
    chief, member = clients(world, call)
    hour = datetime.datetime.now(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    found = call.on(chief, hour - datetime.timedelta(hours=1), (hour + datetime.timedelta(hours=2)).isoformat())
    session = run.model_id.partition(":")[0]
    mine = [event for event in found.data if event.session_id == session]
    infos = [event.event_info for event in mine]
    for kind, tokens in (("training", len(TOKENS) - 1), ("sampling_prefill", len(TOKENS))):
        assert sum(info.token_count for info in infos if info.type == kind) == tokens
    assert {event.project_id for event in mine} == {service._project_id}
    with pytest.raises(tinker.PermissionDeniedError):
        call.on(member, hour - datetime.timedelta(hours=1), hour)


@works(admin("get_current_checkpoint_storage_usage"), note="no prices")
def get_current_checkpoint_storage_usage(world, call):
    project = world.name()
    path = world.state(world.trained(world.new_service(project_id=project)))
    chief, member = clients(world, call)
    (found,) = call.on(chief, project_id=project).data
    assert (found.project_id, found.checkpoint_count) == (project, 1)
    assert found.size_bytes == world.checkpoint(path).size_bytes
    assert project in {one.project_id for one in call.on(chief).data}
    with pytest.raises(tinker.PermissionDeniedError):
        call.on(member)
