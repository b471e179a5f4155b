"""The official command line."""

import csv
import datetime
import io
import json
import re

import httpx
from safetensors.numpy import load

import wire as raw
from helpers import WAIT
from hf_hub import hub
from server import TINY
from surface.table import client_only, works
from surface.world import LONG


@works("tinker auth login", "tinker auth logout")
def login(world, command):
    """With a key of the store, which the server knows by its user."""
    home = world.new_home()
    login, logout = ["auth", "login"], ["auth", "logout"]
    email, key = world.user()
    told = world.command_line(*login, key=None, home=home, stdin=f"{key}\n")
    assert f"Logged in as {email} (acme)" in told
    assert json.loads((home / ".tinker" / "credentials.json").read_text())["default"]
    assert TINY in world.command_line("model", "list", key=None, home=home)
    unknown = world.command_line(*login, key=None, home=world.new_home(), stdin="tml-no\n", fails=True)
    assert "Could not validate" in unknown
    assert "Removed credential" in world.command_line(*logout, key=None, home=home)
    assert "No default credential" in world.command_line(*logout, key=None, home=home, fails=True)
    assert raw.Wire(world.server, key).http.get("training_runs").status_code == 200, "a pasted key stays valid"


@works("tinker auth status")
def status(world, command):
    assert "Tinker accessible: yes" in command()
    assert "401" in command(key="tml-nobody-0123456789-0123456789", fails=True)


@works("tinker auth whoami")
def whoami(world, command):
    email, key = world.user()
    told = json.loads(command(key=key))
    assert (told["email"], told["org_urn"]) == (email, "tml:organization:acme")
    assert told["user_urn"] in command(key=key, form="table")
    assert json.loads(command())["email"] is None, "the key of a program"
    assert "401" in command(key="tml-nobody-0123456789-0123456789", fails=True)


def window() -> list[str]:
    """Whole hours around the present moment."""
    hour = datetime.datetime.now(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    return [(hour + datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ") for hours in (-1, 2)]


@works("tinker billing usage", note="no prices")
def usage(world, command):
    service = world.new_service(user_metadata={"team": "a"})
    run = world.trained(service)
    session = run.model_id.partition(":")[0]
    rows, sessions = world.folder / "usage.csv", world.folder / "sessions.csv"
    command(*window(), "--csv", rows, "--sessions-csv", sessions, key=world.chief)
    found = [row for row in csv.DictReader(rows.open()) if row["session_id"] == session]
    assert {row["type"] for row in found} >= {"training"}
    metadata = {row["session_id"]: row["user_metadata"] for row in csv.DictReader(sessions.open())}
    assert json.loads(metadata[session]) == {"team": "a"}
    assert session in command(*window(), key=world.chief)
    assert "403" in command(*window(), fails=True)


@works("tinker billing checkpoint-storage", note="no prices")
def checkpoint_storage(world, command):
    project = world.name()
    world.state(world.trained(world.new_service(project_id=project)))
    text = command("--project-id", project, "--csv", "-", key=world.chief)
    assert [row["checkpoint_count"] for row in csv.DictReader(io.StringIO(text))] == ["1"]
    assert project in command(key=world.chief)


@works("tinker checkpoint list")
def list_checkpoints(world, command):
    run = world.trained()
    path, other = world.state(run), world.state()
    of_run = json.loads(command("--run-id", run.model_id))["checkpoints"]
    assert [found["tinker_path"] for found in of_run] == [path]
    newest = json.loads(command("--limit", "1"))["checkpoints"]
    assert [found["tinker_path"] for found in newest] == [other]
    assert {path, other} <= {found["tinker_path"] for found in json.loads(command("--limit", "0"))["checkpoints"]}


@works("tinker checkpoint info")
def info(world, command):
    path = world.state()
    shown = json.loads(command(path))
    assert (shown["tinker_path"], shown["lora_rank"], shown["checkpoint_type"]) == (path, 4, "training")


@works("tinker checkpoint publish", "tinker checkpoint unpublish")
def publish(world, command):
    path = world.state()
    publishes = command.name.endswith(" publish")
    if not publishes:
        world.rest.publish_checkpoint_from_tinker_path(path).result(WAIT)
    command(path)
    assert world.checkpoint(path).public is publishes


@works("tinker checkpoint set-ttl")
def set_ttl(world, command):
    path = world.state()
    command(path, "--ttl", "7200")
    assert world.checkpoint(path).expires_at is not None
    command(path, "--remove")
    assert world.checkpoint(path).expires_at is None
    assert "ttl_seconds" in command(path, "--ttl", "5", fails=True)


@works("tinker checkpoint delete")
def delete(world, command):
    run = world.trained()
    kept, sampler, last = world.state(run), world.named(run), world.state(run)
    filters = ["--type", "sampler_weights", "--before", "2100-01-01", "--after", "2020-01-01"]
    command("--run-id", run.model_id, *filters, "--yes")
    left = {found.tinker_path for found in world.rest.list_checkpoints(run.model_id).result(WAIT).checkpoints}
    assert left == {kept, last} and sampler not in left
    command(last, form="table", stdin="y\n")
    assert world.checkpoint(last) is None and world.checkpoint(kept) is not None


@works(
    "tinker checkpoint download",
    note="a training checkpoint through a temporary export; sampler checkpoints are refused by the SDK",
)
def download(world, command):
    run = world.trained()
    path, external = world.state(run), world.export(run)
    folder = world.new_home()
    contents = []
    for which in (path, external):
        command(which, "--output", folder)
        assert "already exists" in command(which, "--output", folder, fails=True)
        command(which, "--output", folder, "--force")
        made = folder / which.removeprefix("tinker://").replace("/", "_")
        contents.append(load((made / "adapter_model.safetensors").read_bytes()))
    assert contents[0].keys() == contents[1].keys()
    assert all((contents[0][name] == contents[1][name]).all() for name in contents[0])
    assert "cannot be downloaded" in command(world.named(run), fails=True)
    assert not [found for found in world.checkpoints() if found.endswith("/external_weights/download")]


@works("tinker checkpoint push-hf", note="to the hub that `HF_ENDPOINT` names")
def push_hf(world, command):
    path = world.state()
    with hub() as target:
        home = str(world.new_home())
        names = {"HF_ENDPOINT": target.url, "HF_TOKEN": "hf_test", "HF_HOME": home, "HF_HUB_DISABLE_XET": "1"}
        patterns = ["--allow-pattern", "adapter_*", "--ignore-pattern", "*.safetensors"]
        command(path, "--repo", "tester/a", "--public", "--revision", "v1", "--commit-message", "up", *patterns, **names)
        command(path, "--repo", "tester/b", "--create-pr", "--no-model-card", **names)
        command(path, "--repo", "tester/c", **names)
        first, second, third = (target.repositories[f"tester/{name}"] for name in "abc")
        assert [made.get("visibility") == "private" for made in target.made] == [False, True, True], target.made
        commits = target.commits
    assert commits[0]["summary"] == "up"
    assert "commit/v1" in commits[0]["path"] and "create_pr=1" in commits[1]["path"]
    assert (set(first), set(third) - set(second)) == ({"adapter_config.json"}, {"README.md"})
    assert json.loads(first["adapter_config.json"])["r"] == 4 and load(second["adapter_model.safetensors"])
    assert path in third["README.md"].decode()


@works("tinker model list", unused=["substring"])
def list_models(world, command):
    assert [model["model_name"] for model in json.loads(command())["models"]] == [TINY, LONG]
    assert [model["model_name"] for model in json.loads(command("PEFT"))["models"]] == [LONG]
    assert TINY in command(form="table")


@works("tinker run list")
def list_runs(world, command):
    run = world.run()
    assert [found["training_run_id"] for found in json.loads(command("--limit", "1"))["runs"]] == [run.model_id]
    columns = "id,model,owner,lora,updated,status,checkpoint,checkpoint_time"
    table = command("--limit", "1", "--columns", columns, form="table", COLUMNS="300")
    assert "Owner" in table and "acme" in table and run.model_id in table


@works("tinker run info")
def run_info(world, command):
    path = world.state(run := world.trained())
    shown = json.loads(command(run.model_id))
    assert (shown["training_run_id"], shown["last_checkpoint"]["tinker_path"]) == (run.model_id, path)


@works("tinker session export-trace")
def export_trace(world, command):
    run = world.trained(world.new_service())
    session = run.model_id.partition(":")[0]
    trace = world.folder / "a.pftrace"
    command(session, "--output", trace)
    assert b"forward_backward 1" in trace.read_bytes()
    url = re.search(r"https?://\S+", command(session, "--url-only", form="table")).group()
    assert b"forward_backward 1" in httpx.get(url).raise_for_status().content


@client_only("tinker version")
def version(world, command):
    assert "0.38.0" in command(form="table")
