"""The audit log: publications, downloads, deletions and administrative acts, as the SDK's admin client reads them."""

import datetime
import urllib.request

import httpx
import pytest
import tinker

from helpers import WAIT, client, lora, rest
from tenancy import CONFIG, ROOT, admin, new_key


@pytest.fixture(scope="module")
def acme(server):
    """An admin of acme, a member, and what the member did to two checkpoints."""
    chief, _ = new_key(server, "acme", "--role", "admin")
    member, number = new_key(server, "acme")
    with client(server, member) as service:
        run = lora(service)
        kept = run.save_weights_external("kept").result(WAIT).path
        gone = run.save_state("gone").result(WAIT).path
    catalogue = rest(server, member)
    catalogue.publish_checkpoint_from_tinker_path(gone).result(WAIT)
    catalogue.unpublish_checkpoint_from_tinker_path(gone).result(WAIT)
    catalogue.set_checkpoint_ttl_from_tinker_path(kept, 3600).result(WAIT)
    urls = catalogue.get_external_weights_urls(kept).result(WAIT).urls
    assert urllib.request.urlopen(urls["adapter_config.json"], timeout=30).read()
    catalogue.delete_checkpoint_from_tinker_path(gone).result(WAIT)
    return {"chief": chief, "member": member, "number": number, "kept": kept, "gone": gone}


def log(server, key, event_type="all", day=None):
    return tinker.AdminClient(base_url=server.url, api_key=key).get_audit_log(event_type, day).result(WAIT).entries


def test_what_was_done_to_checkpoints_is_there_with_who_did_it(server, acme):
    entries = log(server, acme["chief"], "checkpoints")
    assert [(entry.event, entry.tinker_path) for entry in entries] == [
        ("checkpoint_publish", acme["gone"]),
        ("checkpoint_unpublish", acme["gone"]),
        ("checkpoint_ttl_set", acme["kept"]),
        ("checkpoint_urls_sign", acme["kept"]),
        ("checkpoint_read", acme["kept"]),
        ("checkpoint_delete", acme["gone"]),
    ]
    for entry in entries:
        details = entry.event_details
        assert details["address"] == "127.0.0.1" and details["request_id"]
        assert details["key_id"] == (None if entry.event == "checkpoint_read" else acme["number"])
        assert entry.model_id == entry.tinker_path.split("/")[2]
    assert entries[4].event_details["file"] == "adapter_config.json"
    assert [entry.timestamp for entry in entries] == sorted(entry.timestamp for entry in entries)


def test_administrative_acts_are_there_under_the_request_id_of_their_call(server, acme):
    with admin(server.url, acme["chief"]) as chief:
        assert chief.post("admin/projects", json={"id": "p"}, headers={"x-request-id": "make-p"}).status_code == 200
        assert chief.delete("admin/projects/p").status_code == 204
    projects = log(server, acme["chief"], "projects")
    assert [(entry.event, entry.event_details["subject"]) for entry in projects] == [
        ("project_create", "p"), ("project_delete", "p"),
    ]  # fmt: skip
    assert projects[0].event_details["request_id"] == "make-p"
    teams = log(server, acme["chief"], "teams")
    assert {entry.event_details["actor"] for entry in teams} == {"the command line"}
    assert [entry.event for entry in teams] == ["key_create", "key_create"]
    assert acme["member"] not in str(teams)


def test_a_day_is_one_day_and_nothing_of_others_is_there(server, acme):
    today = datetime.datetime.now(datetime.UTC).date()
    # It may have become tomorrow meanwhile.
    days = [log(server, acme["chief"], day=today - datetime.timedelta(days=back)) for back in (-1, 0, 1)]
    assert sum(map(len, days)) >= 9
    assert log(server, acme["chief"], day=datetime.date(2001, 1, 1)) == []
    assert {entry.event for entry in log(server, ROOT)} == {"organization_create"}


def test_only_admins_read_it_and_what_is_wrong_is_named(server, acme):
    url = f"{server.url}/api/v1/audit"
    ask = lambda key, **query: httpx.get(url, params=query, headers={"x-api-key": key})  # noqa: E731
    assert ask(acme["member"]).status_code == 403
    assert "event_type" in ask(acme["chief"], event_type="everything").json()["detail"]
    assert "day" in ask(acme["chief"], day="yesterday").json()["detail"]
