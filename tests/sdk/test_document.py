"""The OpenAPI document against a running server: it is valid, and the server answers nothing that it does not say."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import openapi_spec_validator
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

import chat_model
import document
from cuda_device import is_simulated
from process import PATIENCE
from server import KEY, SMOL
from tenant_objects import Objects

# The examples name this model.
MODELS = {SMOL: chat_model.write(pathlib.Path(tempfile.mkdtemp()) / "tiny-chat")}
CONFIG = f"""
[[tenants]]
name = "local"
operator = true
keys = [{{ key = "{KEY}", role = "admin" }}]
"""
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance",
)  # fmt: skip
EXAMPLES = 3 if is_simulated() else 12
"""Random requests of each operation. Those with the smallest and largest values of each field come on top: some 8,000 in all."""
SEED = 20
REFUSED = {"DELETE /api/v1/auth/apikey/me"}
"""Operations that refuse the key of the test, which is in the configuration file."""

pytestmark = pytest.mark.timeout(400)


def test_the_document_is_valid():
    described = document.load()
    assert described["openapi"].startswith("3.1.")
    openapi_spec_validator.validate(described, cls=OpenAPIV31SpecValidator)


HOOKS = """
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    # Else it waits for half a minute for samples that nobody asked for.
    if case.operation.path.endswith("/retrieve_futures") and isinstance(case.body, dict):
        timeout = case.body.get("timeout")
        if timeout is None or (isinstance(timeout, int | float) and timeout > 0):
            case.body["timeout"] = 0
"""


def with_real_ids(text: str, mine: Objects, other: Objects) -> str:
    """The document with examples that name objects of this server: in paths those of another session, which may end."""
    paths, _, rest = text.partition('"components"')
    for example, real in {
        '"example": "0199c5a4-5d5e-7c1e-8f1a-2b3c4d5e6f70:train:0"': f'"example": "{other.run}"',
        '"example": "0199c5a4-5d5e-7c1e-8f1a-2b3c4d5e6f70"': f'"example": "{other.session}"',
        # Nothing can be sent to an upload that was finished.
        '"example": "0199c5a4-8f10-7c1e-8f1a-6f70a1b2c3d4"': f'"example": "{other.upload}"',
        # The later one first: what stands for the earlier one may look like it.
        "2026-11-23T00:00:00Z": datetime.date.today().isoformat() + "T23:00:00Z",
        "2026-11-22T00:00:00Z": datetime.date.today().isoformat() + "T00:00:00Z",
    }.items():
        assert example in paths
        paths = paths.replace(example, real)
    text = f'{paths}"components"{rest}'
    for example, real in {
        "0199c5a4-5d5e-7c1e-8f1a-2b3c4d5e6f70": mine.session,
        "0199c5a4-7e02-7b22-9c33-a1b2c3d4e5f6": mine.future,
        "0199c5a4-7e09-7b22-9c33-a1b2c3d4e5f6": mine.future,
        "0199c5a4-8f10-7c1e-8f1a-6f70a1b2c3d4": mine.upload,
        "ann@acme.example": mine.email,
        "summaries": mine.project,
        "step-100": "state",
        '"export"': '"external"',
        "acme": mine.tenant,
    }.items():
        assert example in text
        text = text.replace(example, real)
    described = json.loads(text)
    signed = {"download": mine.download, "trace_download": mine.trace, "upload_file": other.uploading}
    for operation in document.operations(described):
        if operation.id not in signed:
            continue
        known = signed[operation.id]
        known = known | {"run_id": mine.run, "session_id": mine.session, "expires": int(known["expires"])}
        for parameter in operation.description["parameters"]:
            parameter["example"] = known.get(parameter["name"], parameter["example"])
    for operation in document.operations(described):
        if example := operation.bodies.get(document.JSON, {}).get("example"):
            renumber(example, mine)
    return json.dumps(described)


def renumber(example: dict, mine: Objects):
    """Gives a request a number that no other has, and a new user a new name."""
    for name in example:
        if name.endswith("seq_id"):
            example[name] = mine.number()
    if "model_id" in example and "seq_id" in example:
        example["seq_id"] = mine.next_seq
        mine.next_seq += 1
    if example.keys() == {"email", "name", "role"}:
        example["email"] = "new@tenant.example"


@pytest.mark.deployments("sqlite")
def test_the_server_does_what_the_document_says(server, tmp_path):
    """No fault, no status, content type, header or body beside the described ones, whatever is sent."""
    mine, other = (Objects(server, "local", KEY, SMOL) for _ in range(2))
    described = tmp_path / "openapi.json"
    described.write_text(with_real_ids(document.FILE.read_text(), mine, other))
    (tmp_path / "hooks.py").write_text(HOOKS)
    report = tmp_path / "report.ndjson"
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", described, "--url", server.url, "--header", f"x-api-key: {KEY}",
        "--phases", "examples,coverage,fuzzing", "--checks", ",".join(CHECKS), "--max-examples", EXAMPLES,
        "--seed", SEED, "--generation-database", "none", "--workers", 1, "--request-timeout", 60 * PATIENCE, "--no-color",
        "--continue-on-failure", "--warnings", "off", "--report-ndjson-path", report,
        # They judge how fast requests are generated.
        "--suppress-health-check", "all",
    ]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=360 * PATIENCE, cwd=tmp_path,
        env=os.environ | {"PYTHONWARNINGS": "ignore", "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    refused = {f"{o.method} {o.path}" for o in document.operations(document.load())} - accepted(report)
    assert refused <= REFUSED, "the examples are refused, so that only errors are compared with the document"


def accepted(report: pathlib.Path) -> set[str]:
    """Operations that did at least once what they are for."""
    return set(succeeded(json.loads(line) for line in report.read_text().splitlines()))


def succeeded(events):
    for event in events:
        recorder = event.get("ScenarioFinished", {}).get("recorder", {})
        for interaction in recorder.get("interactions", {}).values():
            response = interaction.get("response") or {}
            if 200 <= response.get("status_code", 0) < 300:
                yield recorder["label"]
