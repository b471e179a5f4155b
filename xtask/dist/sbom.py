"""The bill of materials of the server's program, in CycloneDX."""

import json
import time
import uuid

from crates import Crate
from package import Release

SPEC_VERSION = "1.6"


def build(release: Release, crates: list[Crate]) -> bytes:
    """The document; the same packages give the same bytes."""
    server, *others = crates
    graph = [{"ref": crate.reference, "dependsOn": list(crate.uses)} for crate in crates]
    identity = json.dumps([server.version, graph, [crate.checksum for crate in crates]])
    document = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, identity)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.moment)),
            "component": component(server) | {"type": "application"},
        },
        "components": [component(crate) for crate in others],
        "dependencies": graph,
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def component(crate: Crate) -> dict:
    """A package as the document lists it."""
    entry = {
        "type": "library",
        "bom-ref": crate.reference,
        "name": crate.name,
        "version": crate.version,
        "description": crate.description,
        "scope": "required",
        "purl": crate.reference,
    }
    if crate.license:
        entry["licenses"] = [{"expression": crate.license}]
    if crate.checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
    return entry
