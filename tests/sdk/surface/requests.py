"""Requests that the SDK's source makes."""

import json
import urllib.request

import httpx

from helpers import WAIT
from server import TINY
from surface import reflection
from surface.table import TABLE, works

LATER = ["POST external_weights_upload_start", "POST external_weights_upload_finish", "POST checkpoints/search"]
"""For what version 0.39 of the SDK adds. The path of its search is not published: this one follows that of sessions."""


@works("POST auth/token", note="the SDK sends the token instead of its key")
def exchange(world, call):
    config = world.http.post("client/config", json={"sdk_version": "0.38.0"}).json()
    assert config["pjwt_auth_enabled"] is True
    token = world.http.post(call.path, json={}).json()["jwt"]
    mine = world.http.get("auth/whoami").json()
    seen = httpx.get(f"{world.server.url}/api/v1/auth/whoami", headers={"x-api-key": token}).json()
    assert seen.pop("expires_at") and mine == seen, "the token's caller is the key's, for a while"
    assert httpx.post(f"{world.server.url}/api/v1/{call.path}", json={}).status_code == 401


@works(LATER, note="for version 0.39 of the SDK")
def later(world, call):
    """An adapter that is downloaded, uploaded again and found."""
    urls = world.rest.get_external_weights_urls(world.export()).result(WAIT).urls
    files = {name: urllib.request.urlopen(url).read() for name, url in urls.items()}
    rank, project = json.loads(files["adapter_config.json"])["r"], world.name()
    body = {"base_model": TINY, "lora_config": {"rank": rank}, "destination_project_id": project}
    started = world.http.post("external_weights_upload_start", json=body).json()
    for name, url in started["urls"].items():
        httpx.put(url, content=files[name]).raise_for_status()
    ended = world.http.post("external_weights_upload_finish", json={"upload_id": started["upload_id"]}).json()
    found = world.http.post("checkpoints/search", json={"project_ids": [project]}).json()["checkpoints"]
    assert [checkpoint["tinker_path"] for checkpoint in found] == [ended["tinker_path"]]
    assert found[0]["checkpoint_type"] == "external"


def served() -> list[str]:
    """Those without an entry: the document describes each of them."""
    return sorted(name for name in reflection.calls() if name not in TABLE)
