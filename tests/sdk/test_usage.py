"""Usage adds up, to the token, with what requests did: by the SDK's admin client, its command line, and as CSV."""

import csv
import datetime
import io

import httpx
import pytest
import tinker as sdk

from helpers import ADAM, TOKENS, WAIT, client, datum, lora, rest, sample
from tenancy import CONFIG, ROOT, admin, new_key, tinker, trainyard

PROMPT = [1 + i % 90 for i in range(70)]
"""More than two blocks of the prefix cache."""


def window() -> tuple[str, str]:
    """Whole hours around the present moment."""
    hour = datetime.datetime.now(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    return tuple((hour + datetime.timedelta(hours=hours)).isoformat().replace("+00:00", "Z") for hours in (-1, 2))


@pytest.fixture(scope="module")
def acme(server):
    """An admin, a member, and the counts of what the member did."""
    trainyard(server, "tenants", "add-user", "acme", "ann@acme.example")
    chief, _ = new_key(server, "acme", "--role", "admin")
    member, _ = new_key(server, "acme", "--user", "ann@acme.example")
    done = {"training": 0, "prefill": 0, "sampled": 0, "checkpoints": 0}
    with client(server, member, project_id="summaries", user_metadata={"team": "a"}) as service:
        run = lora(service)
        data = [datum(TOKENS), datum(TOKENS[:5])]
        lengths = sum(len(d.model_input.to_ints()) for d in data)
        results = [run.forward_backward(data, "cross_entropy"), run.forward(data, "cross_entropy"), run.optim_step(ADAM)]
        for result in results:
            result.result(WAIT)
        done["training"] = 2 * lengths
        # What fails uses nothing.
        with pytest.raises(sdk.RequestFailedError):
            run.forward_backward([datum([1, 10_000_000, 2])], "cross_entropy").result(WAIT)
        sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        for n in (1, 2, 2):
            answer = sample(sampler, PROMPT, n, seed=3)
            done["prefill"] += len(PROMPT)
            done["sampled"] += sum(len(sequence.tokens) for sequence in answer.sequences)
        kept, gone = (run.save_state(name).result(WAIT).path for name in ("kept", "gone"))
        rest(server, member).delete_checkpoint_from_tinker_path(gone).result(WAIT)
        done["checkpoints"] = 2
        session = run.model_id.split(":")[0]
    return {"chief": chief, "member": member, "done": done, "kept": kept, "session": session}


def usage(server, key):
    return sdk.AdminClient(base_url=server.url, api_key=key).get_billing_usage(*window()).result(WAIT)


def total(events, kind, field="token_count", **filters) -> float:
    infos = [event.event_info for event in events]
    infos = [i for i in infos if i.type == kind and all(getattr(i, name) == value for name, value in filters.items())]
    return sum(getattr(info, field) for info in infos)


def test_tokens_are_those_of_the_requests(server, acme):
    found = usage(server, acme["chief"])
    done, events = acme["done"], found.data
    assert total(events, "training") == done["training"]
    assert total(events, "sampling_prefill") == done["prefill"]
    assert total(events, "sampling_prefill", cached=True) >= 2 * 64, "repeated prompts come from the prefix cache"
    assert total(events, "sampling_sample") == done["sampled"]
    assert total(events, "checkpoint", "count") == done["checkpoints"]
    assert total(events, "storage", "gigabyte_hours") > 0
    for event in events:
        assert (event.session_id, event.project_id, event.user_id) == (acme["session"], "summaries", "ann@acme.example")
        assert event.bucket_end - event.bucket_start == datetime.timedelta(hours=1)
    assert found.sessions[acme["session"]].user_metadata == {"team": "a"}


def test_the_export_has_every_request(server, acme):
    start, end = window()
    with admin(server.url, acme["chief"]) as chief:
        answer = chief.get("admin/usage.csv", params={"starting_on": start, "ending_before": end})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["kind"] for row in rows] == ["forward_backward", "forward", "sample", "sample", "sample"]
    added = {name: sum(int(row[name]) for row in rows) for name in ("trained", "prefill", "cached", "sampled")}
    done = acme["done"]
    assert (added["trained"], added["prefill"] + added["cached"], added["sampled"]) == (
        done["training"], done["prefill"], done["sampled"],
    )  # fmt: skip


def test_storage_is_that_of_the_checkpoints(server, acme):
    (checkpoint,) = rest(server, acme["member"]).list_user_checkpoints().result(WAIT).checkpoints
    assert checkpoint.tinker_path == acme["kept"]
    client_of = sdk.AdminClient(base_url=server.url, api_key=acme["chief"])
    (found,) = client_of.get_current_checkpoint_storage_usage().result(WAIT).data
    assert (found.checkpoint_count, found.size_bytes) == (1, checkpoint.size_bytes)
    assert (found.project_id, found.user_email) == ("summaries", "ann@acme.example")
    assert client_of.get_current_checkpoint_storage_usage("other").result(WAIT).data == []


def test_the_official_command_line_shows_it(server, acme, tmp_path):
    text = tinker(server.url, acme["chief"], tmp_path, "billing", "usage", *window(), "--csv", "-")
    rows = list(csv.DictReader(io.StringIO(text)))
    trained = sum(int(row["token_count"]) for row in rows if row["type"] == "training")
    assert trained == acme["done"]["training"]
    text = tinker(server.url, acme["chief"], tmp_path, "billing", "checkpoint-storage", "--csv", "-")
    assert [row["checkpoint_count"] for row in csv.DictReader(io.StringIO(text))] == ["1"]


def test_only_admins_read_it_and_of_their_own_organisation(server, acme):
    start, end = window()
    query = {"starting_on": start, "ending_before": end}
    for path in ("billing/usage/events", "billing/usage/checkpoints/current", "admin/usage.csv"):
        with admin(server.url, acme["member"]) as member:
            assert member.get(path, params=query).status_code == 403
        with admin(server.url, acme["chief"]) as chief:
            there, nowhere = (chief.get(path, params=query | {"organisation": name}) for name in ("ops", "nowhere"))
            assert (there.status_code, nowhere.status_code) == (404, 404)
    assert usage(server, ROOT).data == []
    with admin(server.url, ROOT) as root:
        assert root.get("billing/usage/events", params=query | {"organisation": "acme"}).json()["data"]
    wrong = httpx.get(
        f"{server.url}/api/v1/billing/usage/events", params=query | {"starting_on": "yesterday"},
        headers={"x-api-key": ROOT},
    )  # fmt: skip
    assert (wrong.status_code, "starting_on" in wrong.json()["detail"]) == (400, True)
