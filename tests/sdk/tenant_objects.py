"""Real objects of a tenant, one of every kind that a request can name."""

import itertools
import json
import re
import urllib.parse
import uuid

import httpx

import chat_model
import wire as raw
from helpers import KEY
from process import PATIENCE

MODEL = chat_model.NAME
ALPHA, BETA, NOBODY = "alpha", "betas", "omega"
"""Names of equal length: two tenants, and one that does not exist."""
KEYS = {ALPHA: "tml-alpha-0123456789-0123456789", BETA: "tml-betas-0123456789-0123456789"}
CONFIG = f"""
[[tenants]]
name = "ops"
operator = true
keys = [{{ key = "{KEY}", role = "admin" }}]
""" + "".join(
    f"""
[[tenants]]
name = "{name}"
keys = [{{ key = "{key}", role = "admin" }}]
"""
    for name, key in KEYS.items()
)

TOKENS = [5, 17, 250, 3, 44, 101, 7]


class Objects:
    """What a tenant has. All checkpoints of one kind have the same name in every tenant."""

    def __init__(self, server, tenant: str, key: str | None = None, model=MODEL):
        self.tenant = tenant
        self.wire = wire = raw.Wire(server, key or KEYS[tenant])
        self._numbers = itertools.count(100)
        mark = next(_marks)
        self.project, self.label, self.email = f"p{mark}-{tenant}", f"l{mark}-{tenant}", f"ann{mark}@{tenant}.example"
        self.session = wire.ok("create_session", {"tags": [], "sdk_version": "0.38.0", "project_id": self.project})[
            "session_id"
        ]
        created = wire.create_model(self.session, model=model)
        self.run = wire.result(created.json()["request_id"]).json()["model_id"]
        self.next_seq = 1
        self.state = self._save("save_weights", "state")
        self.named = self._save("save_weights_for_sampler", "named")
        self.external = self._save("save_weights_external", "external")
        self.sampler = wire.sampling_session(self.session, 0, base_model=model).json()["sampling_session_id"]
        sample = wire.asample(self.sampler, 0, TOKENS, record_stability_info=True).json()
        self.future, (self.sequence,) = sample["request_id"], sample["sample_sequence_ids"]
        self.result = wire.result(self.future).json()
        loss = self.custom_loss_body(0)
        self.loss_future = wire.ok("create_custom_loss", loss)["request_id"]
        self.loss = wire.poll(self.loss_future).json()["loss_id"]
        agents = wire.ok("agent_sessions", {"base_model": model})
        self.agents, agent = agents["agent_session_id"], {"authorization": f"Bearer {agents['api_key']}"}
        said = {"model": "any", "prompt": "a", "max_tokens": 1}
        answer = httpx.post(f"{agents['base_url']}/completions", headers=agent, json=said, timeout=60 * PATIENCE)
        self.turn = answer.json()["id"].removeprefix("cmpl-") + ".0"
        for project in (self.project, self.label):
            wire.ok("admin/projects", {"id": project})
        wire.ok("admin/users", {"email": self.email})
        self.key = wire.ok("admin/keys", {"name": "test"})["details"]["id"]
        exported = self._get(f"training_runs/{self.run}/checkpoints/external_weights/external/external_weights_urls")["urls"]
        self.download = signed(exported["adapter_config.json"])
        self.files = {name: wire.http.get(url).content for name, url in exported.items()}
        self.upload, self.upload_urls = self._upload(model)
        self.uploading = signed(self.upload_urls["adapter_config.json"])
        self.trace = signed(self._get(f"sessions/{self.session}/trace_export")["url"])

    def number(self) -> int:
        """A number that no request of this tenant has."""
        return next(self._numbers)

    def accepted(self, body: dict):
        """Notes a request of the run that the server has accepted: the next one has the next `seq_id`."""
        if body.get("model_id") == self.run and body.get("seq_id") == self.next_seq:
            self.next_seq += 1

    def custom_loss_body(self, number: int) -> dict:
        nodes = [
            {"op": "placeholder", "name": "logprobs", "target": "logprobs", "args": [], "kwargs": {}},
            {"op": "call_method", "name": "loss", "target": "sum", "args": [{"ref": "logprobs"}], "kwargs": {}},
            {"op": "output", "name": "output", "target": "output", "kwargs": {},
             "args": [{"tuple": [{"ref": "loss"}, {"dict": {}}]}]},
        ]  # fmt: skip
        return {
            "session_id": self.session, "custom_loss_seq_id": number, "name": "sum",
            "inputs": [{"name": "logprobs", "rank": 1}], "graph": {"format": 1, "nodes": nodes},
        }  # fmt: skip

    def listed(self) -> dict:
        """All that the tenant sees of its own, apart from what goes on by itself."""
        seen = {
            path: self._get(path)
            for path in (
                "sessions?limit=1000", "training_runs?limit=1000", "checkpoints?limit=1000", f"sessions/{self.session}",
                f"samplers/{self.sampler}", "admin/projects", "admin/users", "admin/keys", "audit",
            )
        }  # fmt: skip
        for run in seen["training_runs?limit=1000"]["training_runs"]:
            run.pop("last_request_time")
        seen["result"] = self.wire.poll(self.future).json()
        asked = {"content-range": "bytes */*"}
        seen["upload"] = [self.wire.http.put(url, headers=asked).json() for url in self.upload_urls.values()]
        return seen

    def _save(self, kind: str, name: str) -> str:
        body = {"model_id": self.run, "seq_id": self.next_seq, "path": name}
        request = self.wire.ok(kind, body)["request_id"]
        self.accepted(body)
        return self.wire.result(request).json()["path"]

    def _upload(self, model: str) -> tuple[str, dict]:
        """An upload whose files have arrived, which is not finished; its id, and the URL of each file."""
        body = {"base_model": model, "lora_config": {"rank": json.loads(self.files["adapter_config.json"])["r"]}}
        started = self.wire.ok("external_weights_upload_start", body)
        for name, url in started["urls"].items():
            answer = self.wire.http.put(url, content=self.files[name])
            assert answer.status_code == 200, answer.text
        return started["upload_id"], started["urls"]

    def _get(self, path: str) -> dict:
        answer = self.wire.http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()


_marks = itertools.count(10)


def signed(url: str) -> dict:
    """The parameters of a signed URL."""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def nobodys(value):
    """An id of the same form and length that nobody has."""
    if isinstance(value, int):
        return value + 1
    for tenant in KEYS:
        value = value.replace(tenant, NOBODY)
    for part in re.split("[:.]", value.replace("tinker://", "")):
        try:
            known = uuid.UUID(part)
        except ValueError:
            continue
        other = f"{str(known)[:14]}{uuid.uuid4().hex[:4]}-{str(known)[19:24]}{uuid.uuid4().hex[:12]}"
        return value.replace(part, other)
    return value
