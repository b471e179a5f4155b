"""Random requests after the OpenAPI document, by schemathesis: whatever is sent, the server answers as the document says."""

import datetime
import json
import os
import pathlib
import subprocess
import sys

import document
from process import PATIENCE
from tenant_objects import Objects

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance",
)  # fmt: skip

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


def run(described: pathlib.Path, url: str, key: str, options: list, limit: float) -> subprocess.CompletedProcess:
    """Sends requests with a key. What differs from the document is in the output, and the exit code is not 0 then."""
    folder = described.parent
    (folder / "hooks.py").write_text(HOOKS)
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", described, "--url", url, "--header", f"x-api-key: {key}",
        "--phases", "examples,coverage,fuzzing", "--checks", ",".join(CHECKS),
        "--generation-database", "none", "--workers", 1, "--request-timeout", 60 * PATIENCE, "--no-color",
        "--continue-on-failure", "--warnings", "off",
        # They judge how fast requests are generated.
        "--suppress-health-check", "all", *options,
    ]  # fmt: skip
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=limit, cwd=folder,
        env=os.environ | {"PYTHONWARNINGS": "ignore", "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(folder)},
    )  # fmt: skip
