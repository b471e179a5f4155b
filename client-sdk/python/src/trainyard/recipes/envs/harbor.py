"""Tasks of Harbor: an instruction, a machine in which the model runs commands, and tests that give the reward."""

from __future__ import annotations

import json
import math
import os
import re
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.chat import Message, tool_calls
from ..core.config import ConfigError, check, check_keys
from ..core.containers import Container, Engine, EngineError, Machine, engine
from .base import Environment, Outcome, tool

OPTIONS = "environment.options"
BASH = tool(
    "bash", "Runs a command of bash on the machine of the task, and returns what it prints.", command="the command"
)
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
VERIFIER = "/logs/verifier"

ENVIRONMENT = {
    "build_timeout_sec", "docker_image", "os", "cpus", "memory", "memory_mb", "storage", "storage_mb", "gpus",
    "gpu_types", "tpu", "mcp_servers", "env", "skills_dir", "healthcheck", "workdir", "allow_internet", "network_mode",
    "allowed_hosts",
}  # fmt: skip
"""Keys of `[environment]` in a task. Those of `UNSUPPORTED` are refused where they ask for something."""
UNSUPPORTED = ("gpus", "gpu_types", "tpu", "mcp_servers", "skills_dir", "healthcheck", "allowed_hosts")
AGENT, VERIFIERS = {"timeout_sec", "user"}, {"timeout_sec", "user", "env", "environment_mode"}
FILES = ("docker-compose.yaml", "docker-compose.yml")


@dataclass(frozen=True)
class Task:
    """A folder of Harbor."""

    name: str
    instruction: str
    machine: Machine
    tests: Path
    agent_seconds: float
    agent_user: str
    verifier_seconds: float
    verifier_user: str
    verifier_env: Mapping[str, str]


class Harbor:
    """The folders with a `task.toml` in `tasks`, by name. The model's calls of the tool `bash` are commands.

    The tests run after an answer without a call, after answer number `max_steps`, or when the task's time for the agent
    is over. A command may take `seconds`, and shows `output_kib`.
    """

    def __init__(
        self, tasks: str, held_out: bool = False, held_out_tasks: str = "", backend: str = "podman", rootfs: str = "",
        max_steps: int = 0, seconds: float = 60.0, output_kib: int = 16,
    ) -> None:  # fmt: skip
        check(max_steps >= 0, f"{OPTIONS}.max_steps", "must be at least 0, which means no limit")
        check(seconds > 0, f"{OPTIONS}.seconds", "must be more than 0")
        check(output_kib > 0, f"{OPTIONS}.output_kib", "must be at least 1")
        self.engine = engine(backend, rootfs, OPTIONS)
        self.limits = Limits(max_steps, seconds, output_kib << 10)
        folder = Path((held_out_tasks or tasks) if held_out else tasks)
        self.tasks = [read(found.parent, self.engine) for found in sorted(folder.glob("*/task.toml"))]
        check(bool(self.tasks), f"{OPTIONS}.tasks", f"{folder} has no folder with a task.toml")

    def __len__(self) -> int:
        return len(self.tasks)

    def make(self, index: int) -> Environment:
        return Episode(self.engine, self.tasks[index], self.limits)


@dataclass(frozen=True)
class Limits:
    """Limits of an episode that are not the task's."""

    max_steps: int
    seconds: float
    output: int


class Episode(Environment):
    """A machine, from the instruction to the reward."""

    tools = [BASH]

    def __init__(self, engine: Engine, task: Task, limits: Limits) -> None:
        self.engine, self.task, self.limits = engine, task, limits
        self.container: Container | None = None
        self.steps, self.ends = 0, math.inf

    def reset(self) -> list[Message]:
        self.container = self.engine.start(self.task.machine)
        self.ends = time.monotonic() + self.task.agent_seconds
        return [{"role": "user", "content": self.task.instruction}]

    def step(self, reply: str) -> Outcome:
        self.steps += 1
        calls = tool_calls(reply)
        messages = [{"role": "tool", "content": self._call(call)} for call in calls]
        if calls and self.steps != self.limits.max_steps and time.monotonic() < self.ends:
            return Outcome(done=False, messages=messages)
        return self._verified()

    def _call(self, call: dict[str, Any]) -> str:
        command = call["arguments"].get("command")
        if call["name"] != "bash" or not isinstance(command, str):
            return "Error: expected a call of bash with a command"
        seconds = min(self.limits.seconds, self.ends - time.monotonic())
        if seconds <= 0 or self.container is None:
            return "Error: the time of the task is over"
        ended = self.container.run(command, seconds, self.limits.output, user=self.task.agent_user)
        if ended.timed_out:
            return f"{ended.output}\n[ended after {seconds:.0f} s]"
        return ended.output if ended.code == 0 else f"{ended.output}\n[exit code {ended.code}]"

    def _verified(self) -> Outcome:
        """Runs the tests, which see what the model left, and reads the reward that they write."""
        task, container = self.task, self.container
        if container is None:
            raise EngineError("the machine has not been started")
        container.run(f"rm -rf /tests/* {VERIFIER}/reward.*", self.limits.seconds, 0, user="root")
        container.put(task.tests, "/tests")
        container.run("chmod +x /tests/test.sh", self.limits.seconds, 0, user="root")
        tests = f"/tests/test.sh > {VERIFIER}/test-stdout.txt 2>&1"
        container.run(tests, task.verifier_seconds, 0, task.verifier_env, task.verifier_user)
        shown = f"cat {VERIFIER}/reward.json 2>/dev/null || cat {VERIFIER}/reward.txt 2>/dev/null"
        text = container.run(shown, self.limits.seconds, 64 << 10).output
        rewards = rewards_of(text)
        if "reward" not in rewards and len(rewards) != 1:
            raise EngineError(
                f"{task.name}: the tests wrote several rewards, none of them named reward: {', '.join(rewards)}"
            )
        reward = rewards.pop("reward") if "reward" in rewards else next(iter(rewards.values()))
        return Outcome(reward, True, metrics=rewards)

    def close(self) -> None:
        if self.container is not None:
            self.container.close()


def rewards_of(text: str) -> dict[str, float]:
    """The rewards of `reward.json`, an object of numbers, or of `reward.txt`, a number."""
    if not text.strip():
        raise EngineError("the tests wrote neither reward.json nor reward.txt")
    try:
        found = json.loads(text)
        numbers = found if isinstance(found, dict) else {"reward": found}
        rewards = {str(name): float(value) for name, value in numbers.items()}
    except (TypeError, ValueError) as error:
        raise EngineError(f"the tests wrote no rewards: {text.strip()[:200]!r}") from error
    if not rewards or not all(map(math.isfinite, rewards.values())):
        raise EngineError(f"the tests wrote no finite rewards: {text.strip()[:200]!r}")
    return rewards


def read(folder: Path, engine: Engine) -> Task:
    """Reads a task, and refuses what it asks for and does not get."""
    where = f"{OPTIONS}.tasks: {folder}"
    try:
        config = tomllib.loads((folder / "task.toml").read_text())
        instruction = (folder / "instruction.md").read_text().strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error
    check(not config.get("steps"), where, "tasks with several steps are not supported")
    check((folder / "tests" / "test.sh").is_file(), where, "tests/test.sh is missing")
    agent, verifier = config.get("agent", {}), config.get("verifier", {})
    check_keys(agent, AGENT, f"{where}: agent")
    check_keys(verifier, VERIFIERS, f"{where}: verifier")
    mode = verifier.get("environment_mode", "shared")
    check(mode == "shared", where, f"verifier.environment_mode {mode!r} is not supported: expected 'shared'")
    machine = _machine(folder, config.get("environment", {}), where)
    agent_user, verifier_user = (str(section.get("user") or "") for section in (agent, verifier))
    refused = engine.refused(machine, [agent_user, verifier_user])
    check(not refused, where, refused)
    return Task(
        folder.name, instruction, machine, folder / "tests",
        agent_seconds=float(agent.get("timeout_sec") or math.inf), agent_user=agent_user,
        verifier_seconds=float(verifier.get("timeout_sec", 600.0)), verifier_user=verifier_user,
        verifier_env=_resolved(verifier.get("env", {}), where),
    )  # fmt: skip


def _machine(folder: Path, given: dict[str, Any], where: str) -> Machine:
    check_keys(given, ENVIRONMENT, f"{where}: environment")
    for key in UNSUPPORTED:
        check(not given.get(key), where, f"environment.{key} is not supported")
    check(
        str(given.get("os", "linux")).lower() == "linux", where, f"environment.os {given.get('os')!r} is not supported"
    )
    for name in FILES:
        check(not (folder / "environment" / name).exists(), where, f"environment/{name} is not supported")
    mode = given.get("network_mode", "no-network" if given.get("allow_internet") is False else "public")
    check(mode in ("public", "no-network"), where, f"environment.network_mode {mode!r} is not supported")
    image = str(given.get("docker_image") or "")
    build = folder / "environment" if (folder / "environment" / "Dockerfile").is_file() and not image else None
    return Machine(
        image, build, float(given.get("build_timeout_sec", 600.0)), str(given.get("workdir") or ""),
        _resolved(given.get("env", {}), where), given.get("cpus"), _mebibytes(given, where), mode == "public",
    )  # fmt: skip


def _mebibytes(given: dict[str, Any], where: str) -> int | None:
    if "memory" not in given:
        return given.get("memory_mb")
    size = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([GMK])I?B?", str(given["memory"]).strip().upper())
    if size is None:
        raise ConfigError(f"{where}: environment.memory {given['memory']!r}: expected a size such as '2G'")
    return int(float(size.group(1)) * {"G": 1024, "M": 1, "K": 1 / 1024}[size.group(2)])


def _resolved(env: dict[str, str], where: str) -> dict[str, str]:
    """Variables with those of the recipe's process in place of `${NAME}` and `${NAME:-default}`."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match.group(1), match.group(2))
        if found is None:
            raise ConfigError(f"{where}: the environment variable {match.group(1)} is not set")
        return found

    return {name: VARIABLE.sub(value, str(text)) for name, text in env.items()}
