"""The OpenAPI document, walked: operations, and the places in their requests that a client fills with text or a number."""

import dataclasses
import json
import re

from server import REPOSITORY

FILE = REPOSITORY / "openapi" / "openapi.json"
METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
JSON = "application/json"


@dataclasses.dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    description: dict

    @property
    def bodies(self) -> dict:
        """Schema and example by content type."""
        return self.description.get("requestBody", {}).get("content", {})

    def example(self):
        """The request's example; `None` where it has no body of JSON."""
        return json.loads(json.dumps(self.bodies.get(JSON, {}).get("example")))


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a value stands in a request: `path`, `query`, `header` or `body`, and the names down to it."""

    where: str
    name: str

    @property
    def leaf(self) -> str:
        return re.sub(r"(\[\]|\{\})+$", "", self.name).rpartition(".")[2]

    def __str__(self):
        return f"{self.where}.{self.name}"


def load() -> dict:
    return json.loads(FILE.read_text())


def operations(document: dict) -> list[Operation]:
    found = []
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                found.append(Operation(item[method]["operationId"], method.upper(), path, item[method]))
    return found


def places(document: dict, operation: Operation) -> list[Place]:
    """Every place of a request that is not of a closed set of values: what may hold an id."""
    found = []
    for parameter in operation.description.get("parameters", []):
        if is_open(resolve(document, parameter["schema"]), parameter["name"]):
            found.append(Place(parameter["in"], parameter["name"]))
    if JSON in operation.bodies:
        names = dict.fromkeys(leaves(document, operation.bodies[JSON]["schema"], ""))
        found += [Place("body", name) for name in names]
    return found


def resolve(document: dict, schema: dict) -> dict:
    while "$ref" in schema:
        node = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    return schema


def leaves(document: dict, schema: dict, name: str, above=()):
    """The names of a schema's open leaves. A schema within itself is walked once."""
    if "$ref" in schema:
        if schema["$ref"] in above:
            return
        above = (*above, schema["$ref"])
        schema = resolve(document, schema)
    parts = [part for key in ("allOf", "oneOf", "anyOf") for part in schema.get(key, [])]
    for part in parts:
        yield from leaves(document, part, name, above)
    for key, value in schema.get("properties", {}).items():
        yield from leaves(document, value, f"{name}.{key}" if name else key, above)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from leaves(document, schema[key], name + mark, above)
    closed = parts or "properties" in schema or isinstance(schema.get("items"), dict)
    if name and not closed and not isinstance(schema.get("additionalProperties"), dict) and is_open(schema, name):
        yield name


def is_open(schema: dict, name: str) -> bool:
    """Whether a value may be an id: text or anything, or a number that is called one."""
    if "enum" in schema or "const" in schema:
        return False
    types = schema.get("type", ["string"])
    types = {types} if isinstance(types, str) else set(types)
    return bool(types & {"string", "object", "array"}) or ("integer" in types and name.endswith("id"))
