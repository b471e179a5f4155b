"""What sessions are searched by."""

from tinker import types

from helpers import WAIT
from surface.table import works


def found(world, **conditions) -> list[str]:
    request = types.SessionSearchRequest(**conditions)
    return [session.session_id for session in world.rest.search_sessions(request).result(WAIT).sessions]


def two_sessions(world) -> list[str]:
    """That share a word of their names, and differ in everything else."""
    world.word = world.name()
    made = []
    for number, ordinal in (("1", "first"), ("2", "second")):
        fields = {"project_id": f"{world.word}-{number}", "display_name": f"{world.word} {ordinal}"}
        service = world.new_service(user_metadata={"which": f"{world.word}-{number}"}, **fields)
        made.append(service.holder.get_session_id())
    service.close("errored").result(WAIT)
    return made


@works([f"SessionSearchRequest.{name}" for name in types.SessionSearchRequest.model_fields])
def search_field(world, call):
    """Finds the first of two sessions and not the second."""
    first, second = two_sessions(world)
    word, shared = world.word, {"display_name": world.word}
    if call.value in ("limit", "cursor"):
        page = world.rest.search_sessions(types.SessionSearchRequest(limit=1, **shared)).result(WAIT)
        assert [session.session_id for session in page.sessions] == [second], "the newest first"
        assert found(world, limit=1, cursor=page.next_cursor, **shared) == [first]
        return
    conditions = {
        "session_id": {"session_id": first},
        "project_ids": {"project_ids": [f"{word}-1"]},
        "user_metadata": {"user_metadata": {"which": f"{word}-1"}},
        "display_name": {"display_name": f"first {word.upper()}"},
        "statuses": {"statuses": [{"type": "active"}], **shared},
        "owner": {"owner": {"type": "own"}, "user_metadata": {"which": f"{word}-1"}},
    }[call.value]
    assert found(world, **conditions) == [first]


@works("SearchOwner.OwnSearchOwner", "SearchOwner.AccessibleSearchOwner", "SearchOwner.UserSearchOwner")
def owner(world, call):
    made = two_sessions(world)
    kind = getattr(types, call.value)
    users = call.value == "UserSearchOwner"
    own = kind(owner_urns=["acme"]) if users else kind()
    assert set(found(world, owner=own, display_name=world.word)) == set(made)
    if users:
        assert found(world, owner=kind(owner_urns=["stranger"]), display_name=world.word) == []


@works("SessionStatusQuery.ActiveSessionStatusQuery", "SessionStatusQuery.ClientFinishedSessionStatusQuery")
def status(world, call):
    first, second = two_sessions(world)
    query = getattr(types, call.value)()
    expected = first if call.value.startswith("Active") else second
    assert found(world, statuses=[query], display_name=world.word) == [expected]


@works(
    "SessionStatusQuery.CancelledSessionStatusQuery", "SessionStatusQuery.FailedSessionStatusQuery",
    note="accepted; no session of this server has such a status",
)  # fmt: skip
def status_of_none(world, call):
    two_sessions(world)
    assert found(world, statuses=[getattr(types, call.value)()], display_name=world.word) == []


@works([f"ClientSessionFinishReasonType.{name}" for name in ("success", "errored", "interrupted")])
def finish_reason(world, call):
    service = world.new_service(display_name=world.name())
    session = service.holder.get_session_id()
    service.close(call.value).result(WAIT)
    for reason in ("success", "errored", "interrupted"):
        query = types.ClientFinishedSessionStatusQuery(reasons=[reason])
        expected = [session] if reason == call.value else []
        assert found(world, statuses=[query], display_name=service._display_name) == expected
