"""Agents as black boxes: programs that talk to an OpenAI base URL, behind which a proxy records tokens.

An agent is a Python function `agent(base_url, api_key, messages) -> reply`. Each episode has a base URL of its own. The
proxy answers from the policy that is trained, with the sampling settings of the recipe, and keeps the tokens and
log-probabilities of all answers. Requests that continue an earlier conversation continue its sequence: what was
sampled is never encoded again.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..envs import AnyEpisode, BlackBox, Environment, Game, Outcome
from .chat import Chat, Message, tool_calls
from .images import parts_of
from .rollout import Limits, Policy, Trajectory, play, play_by_answers, play_game, share
from .seeds import seed_of

Agent = Callable[[str, str, list[Message]], str]
MODEL = "policy"
IGNORED = {"model", "messages", "tools", "max_tokens", "max_completion_tokens", "user", "temperature", "top_p", "seed"}
"""Fields of a request that are read, or that the recipe sets itself."""
NEUTRAL: dict[str, Any] = {"stream": False, "n": 1, "tool_choice": "auto", "logprobs": False, "stop": None}
"""Other fields, each with the only value that is accepted because it changes nothing."""


class Refused(Exception):
    """A request that the proxy does not support; the text gives the reason."""


@dataclass
class Conversation:
    """A sequence, and the messages that it has so far."""

    messages: list[Message]
    trajectory: Trajectory
    last: list[int]
    """Tokens of the last answer."""


@dataclass
class Session:
    """State of an agent in one episode."""

    policy: Policy
    chat: Chat
    limits: Limits
    seed: int
    conversations: list[Conversation] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: int = 0
    begun: list[Trajectory] = field(default_factory=list)
    """The sequences, as they grow."""

    @property
    def is_over(self) -> bool:
        """Whether the recipe has given the episode up, while it may still run."""
        return bool(getattr(self.policy, "ended", False))

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Returns one chat completion."""
        messages, tools = checked(body)
        with self.lock:
            if self.answers == self.limits.max_turns:
                raise Refused(f"the episode has reached its limit of {self.limits.max_turns} answers")
            conversation = self._conversation(messages, tools)
            wanted = body.get("max_completion_tokens") or body.get("max_tokens") or self.limits.max_tokens
            limits = replace(self.limits, max_tokens=min(int(wanted), self.limits.max_tokens))
            trajectory = conversation.trajectory
            if len(trajectory.tokens) + limits.max_tokens > limits.max_context:
                trajectory.truncated = True
                raise Refused(f"context_length_exceeded: an episode has {limits.max_context} tokens at most")
            sampled = self.policy.sample(trajectory.tokens, limits, seed_of(self.seed, self.answers))
            trajectory.act(sampled, self.answers)
            self.answers += 1
            conversation.last = sampled.tokens
            text = self.chat.decode(sampled.tokens)
            reply = message_of(text)
            conversation.messages = [*messages, reply]
            reason = "length" if not sampled.stopped else ("tool_calls" if "tool_calls" in reply else "stop")
            prompt = len(trajectory.tokens) - len(sampled.tokens)
            return completion(reply, reason, prompt, len(sampled.tokens))

    def _conversation(self, messages: list[Message], tools: list[Message] | None) -> Conversation:
        """The conversation that these messages continue, or a new one."""
        plain = [flat(message) for message in messages]
        for known in reversed(self.conversations if self.limits.sequences == "episode" else []):
            count = len(known.messages)
            if len(plain) > count and plain[:count] == [flat(message) for message in known.messages]:
                further = [templated(message) for message in messages[count:]]
                known.trajectory.observe(self.chat.following(known.last, further))
                return known
        begun = Conversation(messages, Trajectory(), [])
        begun.trajectory.observe(self.chat.prompt([templated(message) for message in messages], tools))
        self.conversations.append(begun)
        self.begun.append(begun.trajectory)
        return begun


def checked(body: dict[str, Any]) -> tuple[list[Message], list[Message] | None]:
    """Returns messages and tools of a request; refuses unsupported fields that would change the answer."""
    for key, value in body.items():
        if key not in IGNORED and (key not in NEUTRAL or value not in (None, NEUTRAL[key])):
            raise Refused(f"{key}: {value!r} is not supported by the recording proxy")
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) and "role" in one for one in messages):
        raise Refused("messages: expected a list of messages")
    tools = body.get("tools")
    return messages, tools if isinstance(tools, list) and tools else None


def flat(message: Message) -> tuple[str, str]:
    """Returns a message in a normal form, so that two forms of the same message are equal."""
    return str(message["role"]), str(templated(message)["content"]).strip()


def templated(message: Message) -> Message:
    """Returns a message with its tool calls in the text, as the model wrote them."""
    content = message.get("content") or ""
    if parts_of(message):
        return {"role": message["role"], "content": content}
    if not isinstance(content, str):
        content = "".join(part.get("text", "") for part in content)
    calls = message.get("tool_calls") or []
    written = [
        {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"] or "{}")}
        for call in calls
    ]
    text = "\n".join(
        [part for part in [content] if part] + [f"<tool_call>\n{json.dumps(c)}\n</tool_call>" for c in written]
    )
    return {"role": message["role"], "content": text}


def message_of(text: str) -> Message:
    """Returns an answer in the form of the API: tool calls separated from the text before them."""
    calls = tool_calls(text)
    if not calls:
        return {"role": "assistant", "content": text}
    listed = [
        {
            "id": f"call-{uuid.uuid4().hex[:12]}", "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for call in calls
    ]  # fmt: skip
    return {"role": "assistant", "content": text.split("<tool_call>")[0].strip() or None, "tool_calls": listed}


def completion(message: Message, reason: str, prompt: int, sampled: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": sampled, "total_tokens": prompt + sampled}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": int(time.time())}
    return {**head, "model": MODEL, "choices": [choice], "usage": usage}


class Proxy:
    """Serves `/<session>/v1/chat/completions` on a local port until it is closed."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self.sessions))
        self.server.daemon_threads = True
        # It looks that often, in seconds, whether it was closed: `close` waits for it after each batch of episodes.
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def open(self, session: Session) -> tuple[str, str]:
        """Opens an episode; returns its base URL, and the name to close it with."""
        name = uuid.uuid4().hex
        self.sessions[name] = session
        return f"http://127.0.0.1:{self.server.server_address[1]}/{name}/v1", name

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def handler(sessions: dict[str, Session]) -> type[BaseHTTPRequestHandler]:
    """Returns the request handler for a table of sessions."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            session = sessions.get(self.path.split("/")[1]) if self.path.endswith("/v1/models") else None
            known = session is not None and not session.is_over
            models = {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "recipe"}]}
            self._send(200, models) if known else self._fail(404, f"no such path: {self.path}")

        def do_POST(self) -> None:
            try:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            except ValueError:
                return self._fail(400, "the body is not JSON")
            parts = self.path.strip("/").split("/")
            session = sessions.get(parts[0])
            if session is None or parts[1:] != ["v1", "chat", "completions"]:
                return self._fail(404, f"no such path: {self.path}")
            try:
                return self._send(200, session.answer(body))
            except Refused as error:
                return self._fail(400, str(error))
            except Exception as error:
                # The recipe learns of it from the policy; the agent gets an answer in place of a lost connection.
                return self._fail(502, f"the model did not answer: {type(error).__name__}: {error}")

        def _fail(self, status: int, text: str) -> None:
            self._send(status, {"error": {"message": text, "type": "invalid_request_error", "code": None}})

        def _send(self, status: int, body: dict[str, Any]) -> None:
            encoded = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing: the recipe has its own output."""

    return Handler


@dataclass
class AgentEpisode(BlackBox):
    """An agent on a task of an environment, which scores its final reply."""

    environment: Environment
    agent: Agent

    def run(self, base_url: str, api_key: str, model: str) -> Outcome:
        return self.environment.step(self.agent(base_url, api_key, self.environment.reset()))

    def close(self) -> None:
        self.environment.close()


def play_any(
    episode: AnyEpisode,
    proxy: Proxy,
    policy: Policy,
    chat: Chat,
    limits: Limits,
    seed: int,
    begun: list[Trajectory] | None = None,
) -> list[Trajectory]:
    """Plays one episode of any kind. All sequences of a black box have the reward of the episode.

    `begun` is called with each sequence when it begins, so that it is known if the episode fails.
    """
    begun = [] if begun is None else begun
    if isinstance(episode, Environment):
        if limits.sequences == "answer":
            return play_by_answers(episode, policy, chat, limits, seed, begun)
        return [play(episode, policy, chat, limits, seed, begun)]
    if isinstance(episode, Game):
        return play_game(episode, policy, chat, limits, seed, begun)
    session = Session(policy, chat, limits, seed, begun=begun)
    url, name = proxy.open(session)
    try:
        outcome = episode.run(url, name, MODEL)
    finally:
        del proxy.sessions[name]
        episode.close()
    trajectories = [one.trajectory for one in session.conversations if one.trajectory.sampled]
    share(trajectories, outcome.reward, outcome.metrics)
    return trajectories
