"""The environment `nemo_gym`, with a server that answers as resources servers of NeMo Gym 0.4 do."""

import json
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from local_server import serving
from scripted import call, played, suite_of, tiny_chat, user, written

from trainyard.recipes.core.config import ConfigError  # isort: skip

ADD = {"type": "function", "name": "increment_counter", "description": "Counts up.", "strict": True,
       "parameters": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}}  # fmt: skip
GET = {"type": "function", "name": "get_counter_value", "description": "", "parameters": None}
RECORD = {
    "responses_create_params": {"input": user("Add 4."), "tools": [ADD, GET]},
    "initial_count": 3,
    "expected_count": 7,
}


class Counter(BaseHTTPRequestHandler):
    """A counter per session, whose cookie the first answer sets."""

    counters: dict[str, int] = {}
    bodies: list[dict] = []
    """What was to be verified."""

    def do_GET(self):
        self.answer({"openapi": "3.1.0"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        cookie = SimpleCookie(self.headers.get("cookie", ""))
        session = cookie["session"].value if "session" in cookie else f"s{len(self.counters)}"
        counters = self.counters
        if self.path == "/seed_session":
            counters[session] = body["initial_count"]
            self.answer({}, session=session)
        elif self.path == "/increment_counter" and isinstance(body.get("count"), int):
            counters[session] += body["count"]
            self.answer({"success": True})
        elif self.path == "/get_counter_value":
            self.answer({"count": counters[session]})
        elif self.path == "/verify" and "expected_count" in body:
            self.bodies.append(body)
            right = counters[session] == body["expected_count"]
            self.answer({**body, "reward": float(right), "accuracy": right, "distance": 7 - counters[session]})
        else:
            self.answer({"detail": "Unprocessable"}, 422)

    def answer(self, body, status=200, session=None):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        if session:
            self.send_header("set-cookie", f"session={session}; path=/; httponly; samesite=lax")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture(scope="module")
def chat():
    return tiny_chat()


@pytest.fixture
def gym():
    Counter.counters, Counter.bodies = {}, []
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Counter)) as url:
        yield url


def test_an_episode_has_a_session_whose_state_is_verified(chat, gym, tmp_path):
    suite = suite_of("nemo_gym", url=gym, data=written(tmp_path / "train.jsonl", RECORD))
    for count, reward in ((4, 1.0), (5, 0.0)):
        lines = ["Now." + call("increment_counter", count=count), call("get_counter_value"), "<think>So.</think>Done."]
        one, seen = played(chat, suite, 0, *lines)
        assert (one.reward, one.turns, one.metrics) == (reward, 3, {"accuracy": reward, "distance": 4.0 - count})
        assert "Add 4." in seen[0] and "Counts up." in seen[0]
        assert '{"success": true}' in seen[1] and f'{{"count": {3 + count}}}' in seen[2]
    assert len(Counter.counters) == 2, "both episodes had one session"
    body = Counter.bodies[0]
    assert {key: body[key] for key in RECORD} == RECORD
    output = body["response"]["output"]
    kinds = ["message", "function_call", "function_call_output"] + ["function_call", "function_call_output"]
    assert [item["type"] for item in output] == [*kinds, "reasoning", "message"]
    assert output[0]["content"][0]["text"] == "Now." and output[-1]["content"][0]["text"] == "Done."
    assert output[1]["call_id"] == output[2]["call_id"] != output[3]["call_id"]
    assert json.loads(output[1]["arguments"]) == {"count": 4}
    assert output[5]["summary"] == [{"type": "summary_text", "text": "So."}]


def test_only_the_tools_of_the_record_are_called(chat, gym, tmp_path):
    """The verifier is not one of them, and the model sees what the server says of a wrong call."""
    suite = suite_of("nemo_gym", url=gym, data=written(tmp_path / "train.jsonl", RECORD))
    one, seen = played(chat, suite, 0, call("verify") + call("increment_counter", count="x"), "No.")
    assert one.reward == 0.0 and len(Counter.bodies) == 1
    assert "unknown tool 'verify'; expected one of increment_counter, get_counter_value" in seen[1]
    assert "Unprocessable" in seen[1]


def test_the_last_permitted_answer_is_verified_with_its_calls(chat, gym, tmp_path):
    suite = suite_of("nemo_gym", url=gym, data=written(tmp_path / "train.jsonl", RECORD), max_steps=2)
    one, _ = played(chat, suite, 0, call("increment_counter", count=3), call("increment_counter", count=1))
    assert (one.reward, one.turns) == (1.0, 2)
    assert Counter.bodies[0]["response"]["output"][-1]["type"] == "function_call_output"


def test_inputs_of_the_responses_api_become_messages(chat, gym, tmp_path):
    part = {"type": "input_text", "text": "What is it?"}
    items = [
        {"role": "developer", "content": "Be short."},
        {"type": "message", "role": "user", "content": [part]},
        {"type": "function_call", "name": "get_counter_value", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "it is 12"},
    ]
    records = [RECORD | {"responses_create_params": {"input": "Hello.", "instructions": "Be kind."}}]
    records.append(RECORD | {"responses_create_params": {"input": items, "tools": [GET]}})
    suite = suite_of("nemo_gym", url=gym, data=written(tmp_path / "train.jsonl", *records))
    prompts = [suite.make(index).reset() for index in range(2)]
    assert prompts[0] == [{"role": "system", "content": "Be kind."}, *user("Hello.")]
    call_ = {"type": "function", "function": {"name": "get_counter_value", "arguments": {}}}
    assert prompts[1] == [
        {"role": "system", "content": "Be short."},
        *user("What is it?"),
        {"role": "assistant", "content": "", "tool_calls": [call_]},
        {"role": "tool", "content": "it is 12"},
    ]


def params(**fields):
    return {"responses_create_params": {"input": "x"} | fields}


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        (
            {"prompt": "x"},
            {},
            "environment.options.data: record 1 of .*: expected 'responses_create_params' with 'input'",
        ),
        (params(tools=[{"type": "web_search"}]), {}, "record 1 of .*: a tool of type 'web_search' is not supported"),
        (params(input=[{"type": "computer_call"}]), {}, "record 1 of .*: an input of type 'computer_call' is not"),
        (params(input=[{"role": "user", "content": [{"type": "input_image"}]}]), {}, "content of type 'input_image'"),
        (params(input=[{"type": "function_call", "name": "f", "arguments": "{"}]), {}, "is malformed: JSONDecodeError: "),
        (params(input=[{"content": "x"}]), {}, "is malformed: KeyError: 'role'"),
        (params(), {"url": "http://127.0.0.1:9"}, "environment.options.url: http://127.0.0.1:9: "),
        (params(), {"max_steps": -1}, "environment.options.max_steps: must be at least 0"),
        (params(), {"agent": "x"}, "environment.options: .*agent"),
    ],
)
def test_wrong_settings_are_named(gym, tmp_path, record, options, message):
    with pytest.raises(ConfigError, match=message):
        suite_of("nemo_gym", **{"url": gym, "data": written(tmp_path / "train.jsonl", record)} | options)


def test_a_server_that_refuses_a_record_fails_the_episode(chat, gym, tmp_path):
    record = {key: value for key, value in RECORD.items() if key != "expected_count"}
    suite = suite_of("nemo_gym", url=gym, data=written(tmp_path / "train.jsonl", record))
    error, _ = played(chat, suite, 0, "Done.")
    assert error
