"""Agents that are programs: each episode is a process, which talks to the model through an OpenAI base URL."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence

from .chat import Message
from .config import ConfigError
from .sandbox import kill_group

ERROR_BYTES = 2000
"""Bytes from the end of standard error that an error repeats."""


class AgentProgram:
    """An agent whose episodes are processes.

    A process gets `OPENAI_BASE_URL` and `OPENAI_API_KEY` in its environment beside that of the recipe, and the task's
    messages in JSON on its standard input. What it writes to standard output is the reply that the environment scores.
    An exit code other than 0 fails the episode.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        if shutil.which(command[0]) is None:
            raise ConfigError(f"agent_command: no program {command[0]!r} is found")
        self.command, self.seconds = list(command), seconds
        self.running: set[subprocess.Popen[bytes]] = set()
        self.lock = threading.Lock()
        self.closed = False

    def __call__(self, base_url: str, api_key: str, messages: list[Message]) -> str:
        """Plays one episode. The process and what it started are killed after the time limit of episodes."""
        try:
            given = json.dumps(messages).encode()
        except TypeError as error:
            raise ConfigError(f"agent_command: a task has messages that JSON can't contain ({error})") from error
        pipe = subprocess.PIPE
        environment = os.environ | {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": api_key}
        with self.lock:
            if self.closed:
                raise RuntimeError("the run has ended")
            child = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
            )
            self.running.add(child)
        try:
            written, errors = child.communicate(given, self.seconds or None)
        finally:
            kill_group(child)
            with self.lock:
                self.running.discard(child)
        if child.returncode != 0:
            tail = errors[-ERROR_BYTES:].decode(errors="replace").strip()
            raise RuntimeError(f"the agent ended with exit code {child.returncode}: {tail}")
        return written.decode(errors="replace").strip()

    def close(self) -> None:
        """Kills the processes of all episodes; no others are started."""
        with self.lock:
            self.closed = True
            running = list(self.running)
        for child in running:
            kill_group(child)
