"""Agent sessions as clients see them: a model with a template for tools, a session, and checks of what it recorded."""

import json
import pathlib

import anthropic
import httpx
import numpy as np
import openai

import chat_model
import folders
from helpers import KEY, WAIT, assert_agree, prompt
from process import PATIENCE
from server import GOLDEN

TEMPLATE = """\
{%- if tools %}{{ '[tools]\\n' + (tools | tojson) + '\\n' }}{% endif %}
{%- for message in messages %}
    {{- '[' + message.role + ']\\n' + message.content }}
    {%- for call in message.tool_calls or [] %}
        {{- '\\n<tool_call>\\n' + (call.function | tojson) + '\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|end|> \\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '[assistant]\\n' }}{% endif %}"""


def write(name: str, template: str) -> pathlib.Path:
    """The tiny chat model with another template and a longer context."""
    folder = chat_model.write(folders.new() / name)
    config = json.loads((GOLDEN / "llama" / "config.json").read_text())
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 32_768}))
    described = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(described | {"chat_template": template}))
    return folder


MODEL = "tiny-agent"
FOLDER = write(MODEL, TEMPLATE)
SEED = 11
PARAMETERS = {
    "type": "object",
    "properties": {"place": {"enum": ["here", "there"]}, "count": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["place", "count"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Löök.", "parameters": PARAMETERS}}
    for name in ("look", "take")
]


class Session:
    """An agent session of a server, with the key that made it."""

    def __init__(self, server, key=KEY, model=MODEL, sampler=None, **limits):
        self.url = f"{server.url}/api/v1/agent_sessions"
        self.headers = {"x-api-key": key}
        weights = {"sampling_session_id": sampler} if sampler else {"base_model": model}
        made = self.post("", **weights, limits=limits)
        self.id, self.base_url, self.key = made["agent_session_id"], made["base_url"], made["api_key"]
        self.anthropic_base_url = made["anthropic_base_url"]

    def post(self, path, **body) -> dict:
        answer = httpx.post(f"{self.url}{path}", headers=self.headers, json=body, timeout=60 * PATIENCE)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path="") -> dict:
        answer = httpx.get(f"{self.url}/{self.id}{path}", headers=self.headers, timeout=60 * PATIENCE)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def end(self):
        assert httpx.delete(f"{self.url}/{self.id}", headers=self.headers).status_code == 204

    def reward(self, reward, **of):
        self.post(f"/{self.id}/rewards", reward=reward, **of)

    def trajectories(self) -> list[dict]:
        return self.get("/trajectories")["trajectories"]

    def openai(self):
        return openai.OpenAI(base_url=self.base_url, api_key=self.key, max_retries=0, timeout=120 * PATIENCE)

    def anthropic(self):
        return anthropic.Anthropic(base_url=self.anthropic_base_url, api_key=self.key, max_retries=0)


def whole(trajectory) -> list[int]:
    """All tokens of a branch."""
    datum = trajectory["datum"]
    (chunk,) = datum["model_input"]["chunks"]
    return chunk["tokens"] + datum["loss_fn_inputs"]["target_tokens"]["data"][-1:]


def sampled(trajectory) -> list[int]:
    """Positions of sampled tokens."""
    return [at for turn in trajectory["turns"] for at in range(turn["start"], turn["start"] + turn["tokens"])]


def column(trajectory, name) -> np.ndarray:
    """An input of the loss, aligned with the tokens of the branch."""
    return np.array([0.0] + trajectory["datum"]["loss_fn_inputs"][name]["data"], np.float32)


def assert_scored(sampler, trajectory):
    """What was recorded is what the trainer says of the same tokens, to the bit."""
    tokens, at = whole(trajectory), sampled(trajectory)
    scored = sampler.compute_logprobs(prompt(tokens)).result(WAIT)
    assert_agree([column(trajectory, "logprobs")[at]], [np.array([scored[place] for place in at], np.float32)])
