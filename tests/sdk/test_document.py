"""The OpenAPI document against a running server: it is valid, and the server answers nothing that it does not say."""

import json
import pathlib

import openapi_spec_validator
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

import chat_model
import document
import folders
import random_requests
from cuda_device import is_simulated
from process import PATIENCE
from server import KEY, SMOL
from tenant_objects import Objects

# The examples name this model.
MODELS = {SMOL: chat_model.write(folders.new() / "tiny-chat")}
CONFIG = f"""
[[tenants]]
name = "local"
operator = true
keys = [{{ key = "{KEY}", role = "admin" }}]
"""
EXAMPLES, FULL_EXAMPLES, SIMULATED_EXAMPLES = 4, 12, 3
"""Random requests of each operation, also with `--full` and on a simulated GPU. Those with the smallest and largest values of each
field come on top: thousands in all."""
SEED = 20
ALIKE = {
    "POST /v1/chat/completions": "POST /oai/api/v1/chat/completions",
    "POST /v1/completions": "POST /oai/api/v1/completions",
    "POST /api/v1/forward": "POST /api/v1/forward_backward",
}
"""Operations that only `--full` tests, with those of the same bodies that stand for them: a fifth of all requests."""
REFUSED = {"DELETE /api/v1/auth/apikey/me"}
"""Operations that refuse the key of the test, which is in the configuration file."""

pytestmark = pytest.mark.timeout(400)


def test_the_document_is_valid():
    described = document.load()
    assert described["openapi"].startswith("3.1.")
    openapi_spec_validator.validate(described, cls=OpenAPIV31SpecValidator)


@pytest.mark.deployments("sqlite")
def test_the_server_does_what_the_document_says(server, tmp_path, pytestconfig):
    """No fault, no status, content type, header or body beside the described ones, whatever is sent."""
    mine, other = (Objects(server, "local", KEY, SMOL) for _ in range(2))
    described = tmp_path / "openapi.json"
    described.write_text(random_requests.with_real_ids(document.FILE.read_text(), mine, other))
    report = tmp_path / "report.ndjson"
    full = pytestconfig.getoption("full")
    examples, left_out = (FULL_EXAMPLES, set()) if full else (EXAMPLES, set(ALIKE))
    options = ["--max-examples", SIMULATED_EXAMPLES if is_simulated() else examples, "--seed", SEED, "--report-ndjson-path", report]
    options += [word for operation in sorted(left_out) for word in ("--exclude-path", operation.split()[1])]
    done = random_requests.run(described, server.url, KEY, options, limit=360 * PATIENCE)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    refused = {f"{o.method} {o.path}" for o in document.operations(document.load())} - accepted(report)
    assert refused <= REFUSED | left_out, "the examples are refused, so that only errors are compared with the document"


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
