"""Another tenant's id is answered as one that does not exist: every operation of the document with an id in its path,
query or body, byte for byte apart from the id.

Each place of a request that may hold text is either in `KINDS`, with what it names, or in `PLAIN`; a place in neither fails.
"""

import json
import re
import urllib.parse

import pytest

import chat_model
import document
import folders
import wire as raw
from document import Operation, Place
from tenant_objects import ALPHA, BETA, CONFIG, MODEL, TOKENS, Objects, nobodys  # noqa: F401

MODELS = {MODEL: chat_model.write(folders.new() / "tiny-chat")}
DOCUMENT = document.load()
OPERATIONS = document.operations(DOCUMENT)
OCTETS = "application/octet-stream"

pytestmark = pytest.mark.timeout(240)

KINDS = {
    "agent_session_id": "agents",
    "branch": "turn",
    "cursor.last_checkpoint_uuid": "state",
    "cursor.last_session_id": "session",
    "destination_project_id": "label",
    "email": "email",
    "key_id": "key",
    "loss_fn_config": "loss",
    "model_id": "run",
    "organisation": "tenant",
    "owner_urns": "tenant",
    "project_id": "project",
    "project_ids": "project",
    "request_id": "future",
    "retrieved_request_ids": "future",
    "run_id": "run",
    "sampler_id": "sampler",
    "sampling_session_id": "sampler",
    "session_id": "session",
    "source_path": "state",
    "tenant": "tenant",
    "tinker_path": "state",
    "turn_id": "turn",
    "upload_id": "upload",
    "admin_create_key:user": "email",
    "admin_create_organisation:name": "tenant",
    "admin_create_project:id": "project",
    "agent_session_create:model_path": "named",
    "anthropic_count_tokens:model": "named",
    "anthropic_messages:model": "named",
    "create_sampling_session:model_path": "named",
    "create_session:project_id": "label",
    "load_weights:path": "state",
    "oai_chat_completions:model": "named",
    "oai_completions:model": "named",
    "oai_responses:model": "named",
    "session_project:project_id": "label",
}
"""What a place names, by its name or by operation and name: an attribute of `Objects`. A `label` is a project that requests
put objects into; none is asked for what is in it."""

PLAIN = set(
    """
    access_scope age_encryption_recipients annotations arguments audio base_model base_models cache_control chat_template_kwargs
    call_id conversation generate_summary image_url include instructions moderation output previous_response_id
    prompt_cache_options prompt_cache_retention schema summary truncation
    checkpoint_type cloned_sampler_id container content context_management custom_loss_seq_id data day description detail display display_name
    by dtype effort ending_before event_type events file format from_time function_call functions graph id input input_schema inputs
    json_schema kind last_created_at logit_bias loss_fn mcp_servers metadata modalities model_seq_id name note
    metrics optimizer_params owner path platform prediction prev_cursor prompt prompt_cache_key reasoning_content reasoning_effort refusal
    media_type url
    response_format role safety_identifier sampling_session_seq_id scopes sdk_version seq_id service_tier shape signature
    sparse_col_indices sparse_crow_indices starting_on stop stop_sequences suffix system tags target_prompt_logprobs text
    thinking to_time tokens tool_call_id tool_choice tool_use_id tools type user user_metadata verbosity web_search_options
    weights_access_token x-idempotency-key x-tinker-weights-access-token
    """.split()  # noqa: SIM905
)
"""What names no object of a tenant. A weights access token is a key: whoever has it may. Numbers that repetitions have in
common are each tenant's own."""

FREE = {
    ("admin_change_limits", "path.organisation"),
    # The tests of creations have made projects of these ids, which are each tenant's own.
    ("admin_delete_project", "path.project_id"),
    ("admin_create_organisation", "body.name"),
    ("agent_sessions", "query.project_id"),
    ("checkpoints_search", "body.cursor.last_checkpoint_uuid"),
    ("copy_weights", "body.destination_project_id"),
    ("create_session", "body.project_id"),
    ("external_weights_upload_start", "body.destination_project_id"),
    ("retrieve_futures", "body.retrieved_request_ids[]"),
    ("session_project", "body.project_id"),
    ("sessions_search", "body.cursor.last_session_id"),
    ("telemetry", "body.session_id"),
}
"""Places where an id of one's own is answered like any: labels, what is taken without an answer, and what is refused for
all but operators."""

CONSUMING = {
    "admin_change_user", "agent_session_end", "admin_delete_project", "admin_revoke_key", "checkpoint_delete",
    "external_weights_upload_finish", "session_finish", "session_project",
}  # fmt: skip
"""Operations after which the object is another: each of their requests has a fresh one."""


def known_kind(operation: Operation, place: Place) -> str | None:
    identity = operation.id.removeprefix("short_")
    name = place.name.replace("[]", "").replace("{}", "")
    for key in (f"{identity}:{name}", name, place.leaf):
        if key in KINDS:
            return KINDS[key]
    return None


def kind_of(operation: Operation, place: Place) -> str | None:
    """What a place names; `None` where that is no object of a tenant."""
    kind = known_kind(operation, place)
    if kind is not None:
        return kind
    assert place.leaf in PLAIN, f"{operation.method} {operation.path}: {place} is in no table: does it name an object?"
    return None


CASES = [
    (operation, place, kind)
    for operation in OPERATIONS
    for place in document.places(DOCUMENT, operation)
    if (kind := kind_of(operation, place)) is not None
]


@pytest.fixture(scope="module")
def alpha(server):
    return Objects(server, ALPHA)


@pytest.fixture(scope="module")
def beta(server):
    return Objects(server, BETA)


@pytest.fixture(scope="module", autouse=True)
def untouched(alpha):
    """Nothing that was asked for changed or shows with its owner."""
    before = alpha.listed()
    yield
    assert alpha.listed() == before


SIGNED = {"download": "download", "trace_download": "trace", "upload_file": "uploading"}
"""Operations whose URLs are signed: where the parameters of such a URL are."""


class Request:
    """A request that is good for a tenant, made from the document's example."""

    def __init__(self, operation: Operation, mine: Objects, place: Place):
        self.operation, self.mine, self.place = operation, mine, place
        self.body = operation.example()
        self.parameters = {"path": {}, "query": {}}
        for parameter in operation.description.get("parameters", []):
            name, where = parameter["name"], parameter["in"]
            if parameter["required"] or name == place.name:
                self.parameters[where][name] = self.parameter(parameter)
        if self.body is not None:
            self.fill(self.body, "")
            self.adjust()

    def parameter(self, described: dict):
        name, where, identity = described["name"], described["in"], self.operation.id
        if identity in SIGNED and where == "query":
            return getattr(self.mine, SIGNED[identity])[name]
        if kind := known_kind(self.operation, Place(where, name)):
            return getattr(self.mine, kind)
        exported = identity in ("download", "external_weights_urls")
        return ("external" if exported else "state") if name == "name" else described["example"]

    def fill(self, node: dict, above: str):
        """Replaces the ids and numbers of the example by the tenant's."""
        for name, value in node.items():
            path = f"{above}.{name}" if above else name
            if isinstance(value, dict):
                self.fill(value, path)
            elif isinstance(value, str) and name in ("base_model", "model"):
                node[name] = MODEL
            elif isinstance(value, str) and (kind := known_kind(self.operation, Place("body", path))):
                node[name] = getattr(self.mine, kind)
            elif name == "max_tokens":
                # What is sampled is not looked at.
                node[name] = min(value, 4)
            elif name == "seq_id":
                node[name] = self.mine.next_seq if "model_id" in node else self.mine.number()
            elif name.endswith("_seq_id"):
                node[name] = self.mine.number()

    def adjust(self):
        """What the place needs beside it, and what the example has that goes with other objects."""
        mine, body = self.mine, self.body
        match self.operation.id.removeprefix("short_"), self.place.name:
            case "agent_rewards", place if place != "branch":
                del body["branch"]
            case "admin_create_key", "organisation":
                del body["user"]
            case "admin_create_project" | "admin_create_user" as name, "organisation":
                new = f"new-{mine.number()}"
                body |= {"id": new} if name == "admin_create_project" else {"email": f"{new}@new.example"}
            case "copy_weights", "session_id":
                del body["destination_project_id"]
                body["model_seq_id"] = mine.number()
            case "create_sampling_session", "model_path":
                del body["base_model"]
            case "forward" | "forward_backward" as name, place if "loss_fn_config" in place:
                body[f"{name}_input"] |= {"loss_fn": "custom", "loss_fn_config": {"loss_id": mine.loss}}
                for datum in body[f"{name}_input"]["data"]:
                    datum["loss_fn_inputs"].pop("weights", None)
            case "load_weights", "model_id" | "path":
                if self.place.name == "model_id":
                    del body["session_id"], body["model_seq_id"]
                    body |= {"model_id": mine.run, "seq_id": mine.next_seq}
            case "retrieve_futures", _:
                body["timeout"] = 0
            case "checkpoints_search" | "sessions_search", place:
                body.clear()
                if place == "owner.owner_urns[]":
                    body["owner"] = {"type": "user", "owner_urns": []}
                if place.startswith("cursor."):
                    body["cursor"] = {"last_created_at": "2099-01-01T00:00:00Z"}

    def put(self, value):
        """Puts an id into the place."""
        if self.place.where != "body":
            self.parameters[self.place.where][self.place.name] = value
            return self
        node, *names = self.body, *self.place.name.split(".")
        for name in names[:-1]:
            node = node[name]
        last = names[-1]
        if last.endswith("{}"):
            node[last[:-2]]["loss_id"] = value
        elif last.endswith("[]"):
            node[last[:-2]] = [value]
        else:
            node[last] = value
        return self

    def send(self, query=()):
        path = self.operation.path
        for name, value in self.parameters["path"].items():
            path = path.replace(f"{{{name}}}", urllib.parse.quote(str(value), safe=""))
        query = urllib.parse.urlencode(self.parameters["query"] | dict(query))
        url = urllib.parse.urljoin(str(self.mine.wire.http.base_url), path) + (f"?{query}" if query else "")
        if OCTETS in self.operation.bodies:
            return send(self.mine, self.operation.method, url, {}, content=self.mine.files.get(self.parameters["path"]["file"], b""))
        return send(self.mine, self.operation.method, url, self.body or {}, json=self.body)


def send(mine, method, url, named, headers=(), **body):
    """The request, and what becomes of it where a future was accepted. `named` has the run and its number."""
    headers = {"x-request-id": "the-same"} | dict(headers)
    answer = mine.wire.http.request(method, url, headers=headers, **body)
    if answer.status_code == 200 and raw.is_json(answer) and "/retrieve_future" not in url:
        mine.accepted(named)
        if future := answer.json().get("request_id"):
            return answer, mine.wire.result(future)
    return (answer,)


SIGNATURE = re.compile(r"expires=\d+&signature=[\w-]+")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


UNLIKE = {"content-length", "date", "traceparent", "x-request-id"}
"""Headers that follow from the rest of the answer, or are new in each."""


def seen(answers, given) -> list:
    """Answers without the id that was given, in any spelling, without what is new in each, and without the time."""
    spellings = {str(given), urllib.parse.quote(str(given), safe=""), json.dumps(str(given))[1:-1]}
    parts = []
    for answer in answers:
        headers = {k: v for k, v in answer.headers.items() if k not in UNLIKE}
        parts.append([answer.status_code, json.dumps(headers), answer.text])
    for spelling in sorted(spellings, key=len, reverse=True):
        parts = [[status, *(text.replace(spelling, "<id>") for text in texts)] for status, *texts in parts]
    for unit in (SIGNATURE, UUID, TIME):
        parts = [[status, *(unit.sub("<new>", text) for text in texts)] for status, *texts in parts]
    return parts


def check(make, theirs, own, is_free):
    """Another's id and nobody's are answered alike, and one's own otherwise: the request gets as far as the id."""
    none = nobodys(theirs)
    missing, foreign = seen(make(none), none), seen(make(theirs), theirs)
    assert foreign == missing
    assert all(status < 500 for status, *_ in missing), missing
    if not is_free:
        mine = seen(make(own), own)
        assert mine != missing, "an own id is answered alike: the request is refused for another reason"
        assert mine[0][0] < 300 or missing[0][0] < 300, mine


@pytest.mark.parametrize(("operation", "place", "kind"), CASES, ids=lambda value: getattr(value, "id", str(value)))
def test_anothers_id_is_one_of_nobody(server, alpha, beta, operation, place, kind):
    mine = Objects(server, BETA) if operation.id in CONSUMING else beta
    is_free = (operation.id, str(place)) in FREE
    has_scope = any(parameter["name"] == "access_scope" for parameter in operation.description.get("parameters", []))
    for query in [{}, {"access_scope": "accessible"}] if has_scope else [{}]:
        make = lambda value: Request(operation, mine, place).put(value).send(query)  # noqa: B023, E731
        check(make, getattr(alpha, kind), getattr(mine, kind), is_free)


COMPATIBLE = [operation for operation in OPERATIONS if operation.path.startswith(("/oai/", "/anthropic/", "/v1/"))]


@pytest.mark.parametrize("operation", COMPATIBLE, ids=lambda operation: operation.id)
def test_a_base_model_with_anothers_checkpoint(alpha, beta, operation):
    """The second form of a model's name."""
    if operation.method == "GET":
        listed = beta.wire.http.get(urllib.parse.urljoin(str(beta.wire.http.base_url), operation.path)).text
        assert beta.named in listed and alpha.run not in listed
        return
    place = Place("body", "model")
    make = lambda value: Request(operation, beta, place).put(value).send()  # noqa: E731
    check(make, f"{MODEL};{alpha.named}", f"{MODEL};{beta.named}", False)


MESSAGE_KINDS = {"model_id": "run", "sequence_id": "sequence", "text": "loss"}
"""The text fields of the protobuf request: what they name."""
MESSAGE_PLAIN = {"loss_fn", "format", "key"}


def texts(descriptor, above=()) -> set[str]:
    found = set()
    for field in descriptor.fields:
        if field.message_type is not None and field.message_type not in above:
            found |= texts(field.message_type, (*above, descriptor))
        elif field.type == field.TYPE_STRING:
            found.add(field.name)
    return found


def test_every_other_body_is_covered():
    """Bodies that the document does not describe by a schema are files, which name nothing, and messages whose text fields
    are all known."""
    other = {kind for operation in OPERATIONS for kind in operation.bodies} - {document.JSON}
    assert other == {raw.PROTOBUF, OCTETS}
    assert texts(raw.pb.ForwardBackwardRequest.DESCRIPTOR) == MESSAGE_KINDS.keys() | MESSAGE_PLAIN


@pytest.mark.parametrize("field", MESSAGE_KINDS)
def test_protobuf_bodies(alpha, beta, field):
    kind = MESSAGE_KINDS[field]

    def make(value):
        message = raw.message(value if field == "model_id" else beta.run, beta.next_seq, [[*TOKENS, 9]])
        (datum,) = message.data
        if field == "text":
            message.loss_fn = "custom"
            message.loss_fn_config_v2["loss_id"].text = value
            del datum.loss_fn_inputs["weights"]
        if field == "sequence_id":
            message.loss_fn = "stable_reinforce"
            del datum.loss_fn_inputs["weights"]
            for name in ("logprobs", "advantages"):
                raw.put(datum, name, [0.0] * len(TOKENS), "<f4", raw.pb.DTYPE_FLOAT32)
            for spans, offset in ((datum.model_input_spans, 0), (datum.loss_fn_input_spans, 1)):
                prompt = spans.add().prompt_tokens
                prompt.sequence_id, prompt.offset, prompt.length = value, offset, len(TOKENS) - offset
            sampled = datum.loss_fn_input_spans.add().sampled_tokens
            sampled.sequence_id, sampled.length = value, 1
        named = {"model_id": message.model_id, "seq_id": message.seq_id}
        body, headers = message.SerializeToString(), {"content-type": raw.PROTOBUF}
        return send(beta, "POST", "forward_backward", named, headers, content=body)

    check(make, getattr(alpha, kind), getattr(beta, kind), False)
