"""Projects, searches of sessions, and their traces."""

import os
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import tinker
from tinker import types

import wire as raw
from helpers import TOKENS, WAIT, client, datum, lora, rest, sample, train
from process import PATIENCE
from server import KEY

pytestmark = pytest.mark.filterwarnings("ignore:RestClient.search_sessions is experimental")


def search(server, **conditions) -> types.SessionSearchResponse:
    return rest(server).search_sessions(types.SessionSearchRequest(**conditions)).result(WAIT)


@pytest.fixture(scope="module")
def worked(server):
    """A session in a project that has trained, saved and sampled."""
    with client(server, project_id="first", display_name="Blue whale", user_metadata={"sweep": "7"}) as service:
        run = lora(service)
        train(run, [datum(TOKENS)])
        path = run.save_weights_for_sampler("a").result(WAIT).path
        sample(service.create_sampling_client(model_path=path).result(WAIT), TOKENS)
        session = service.holder._session_id
    return session, run.model_id


def test_a_session_is_found(server, worked):
    session, _ = worked
    (found,) = search(server, session_id=session).sessions
    assert (found.session_id, found.project_id, found.display_name) == (session, "first", "Blue whale")
    assert (found.user_metadata, found.owner) == ({"sweep": "7"}, "local")
    assert found.checkpoints_count == 1 and found.checkpoint_storage_bytes > 0
    assert (found.status.type, found.status.reason.type) == ("client_finished", "success")
    assert found.created_at.tzinfo is not None


def test_every_condition(server, worked):
    session, _ = worked

    def ids(**conditions):
        return [found.session_id for found in search(server, **conditions).sessions]

    finished = {"type": "client_finished"}
    for conditions in (
        {"display_name": "WHALE blue"},
        {"user_metadata": {"sweep": "7"}},
        {"project_ids": ["first", "none"]},
        {"statuses": [finished | {"reasons": ["success"]}], "display_name": "whale"},
        {"owner": {"type": "accessible"}, "display_name": "whale"},
        {"owner": {"type": "user", "owner_urns": ["local", "other"]}, "display_name": "whale"},
    ):
        assert ids(**conditions) == [session], conditions
    for conditions in (
        {"display_name": "green whale"},
        {"user_metadata": {"sweep": "8"}},
        {"project_ids": ["none"]},
        {"statuses": [finished | {"reasons": ["errored"]}], "display_name": "whale"},
        {"statuses": [{"type": "failed"}, {"type": "cancelled"}]},
        {"owner": {"type": "user", "owner_urns": ["other"]}},
    ):
        assert ids(**conditions) == [], conditions


def test_pages(server, worked):
    """Every session once, newest first."""
    wire = raw.Wire(server)
    made = {wire.session() for _ in range(5)}
    seen, cursor = [], None
    while True:
        page = search(server, limit=2, cursor=cursor)
        assert len(page.sessions) <= 2
        seen += page.sessions
        cursor = page.next_cursor
        if cursor is None:
            break
    ids = [found.session_id for found in seen]
    assert len(ids) == len(set(ids)) and made | {worked[0]} <= set(ids)
    times = [found.created_at for found in seen]
    assert times == sorted(times, reverse=True)


def test_a_session_moves_with_its_runs(server, worked):
    session, run = worked
    mine = rest(server)

    def runs(project):
        listed = mine.list_training_runs(limit=100, project_id=project).result(WAIT)
        assert listed.cursor.total_count == len(listed.training_runs)
        return {found.training_run_id for found in listed.training_runs}

    assert runs("first") == {run} and runs("second") == set()
    mine.assign_session_project(session, "second").result(WAIT)
    assert runs("first") == set() and runs("second") == {run}
    assert search(server, project_ids=["second"]).sessions[0].session_id == session
    mine.assign_session_project(session, "first").result(WAIT)
    with pytest.raises(tinker.NotFoundError):
        mine.assign_session_project("nobody", "first").result(WAIT)
    with pytest.raises(tinker.BadRequestError, match="project_id"):
        mine.assign_session_project(session, "").result(WAIT)


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protobuf message, as far as traces use them: varints and what has a length."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        assert key & 7 in (0, 2), "neither a varint nor bytes"
        value = varint()
        if key & 7 == 2:
            at, value = at + value, message[at : at + value]
        found.append((key >> 3, value))
    return found


def slices(trace: bytes) -> list[str]:
    """The names of all slices; each begins before it ends, on a track that is described."""
    names, tracks, open_ = [], set(), {}
    for field, packet in fields(trace):
        assert field == 1
        content = dict(fields(packet))
        if 60 in content:
            tracks.add(dict(fields(content[60]))[1])
            continue
        event = dict(fields(content[11]))
        assert event[11] in tracks
        if event[9] == 1:
            names.append(event[23].decode())
            open_[event[11]] = content[8]
        else:
            assert open_.pop(event[11]) <= content[8]
    assert not open_
    return names


def test_the_trace_of_a_session(server, worked, tmp_path):
    """From the SDK and from the command line; the URL is its own authorisation."""
    session, run = worked
    url = rest(server).export_session_trace(session).result(WAIT)
    names = slices(urllib.request.urlopen(url, timeout=30).read())
    assert set(names) >= {
        "session", "create_model 0", "forward_backward 1", "optim_step 2", "save_weights_for_sampler 3", "sample 0"
    }  # fmt: skip
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url.replace(session, "x" + session[1:]), timeout=30)
    with pytest.raises(tinker.NotFoundError):
        rest(server).export_session_trace("nobody").result(WAIT)
    environment = os.environ | {"TINKER_BASE_URL": server.url, "TINKER_API_KEY": KEY, "TINKER_TELEMETRY": "0"}
    command = [sys.executable, "-m", "tinker.cli", "session", "export-trace", session, "--output", "a.pftrace"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert slices((tmp_path / "a.pftrace").read_bytes()) == names
