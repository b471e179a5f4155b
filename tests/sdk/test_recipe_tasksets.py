"""Tasksets of the package `verifiers` 0.3 as environments, where the package is installed."""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import chat_model
import folders
import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes.core.chat import Chat  # isort: skip
from trainyard.recipes.core.config import ConfigError  # isort: skip
from trainyard.recipes.envs import EnvironmentConfig, load_suite  # isort: skip
from trainyard.recipes.core.attempts import Episodes  # isort: skip
from trainyard.recipes.core.rollout import Limits, Sampled  # isort: skip

TASKSET = '''
import httpx
import verifiers.v1 as vf


class Data(vf.TaskData):
    wanted: str


class Said(vf.Task[Data, vf.State]):
    @vf.reward
    async def right(self, trace) -> float:
        return float(self.data.wanted in trace.last_reply)

    @vf.metric
    async def length(self, trace) -> float:
        return float(len(trace.last_reply))


class Sayings(vf.Taskset[Said, vf.TasksetConfig]):
    def load(self):
        for number in range(6):
            yield Said(Data(idx=number, prompt=f"Say {number}.", wanted=str(number)), self.config.task)


class Asking(vf.Harness[vf.HarnessConfig]):
    """Asks once, in the process of the test."""

    SUPPORTS_MCP = False
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        body = {"model": ctx.model, "messages": [{"role": "user", "content": data.prompt}]}
        if data.wanted == "3":
            raise RuntimeError("the harness is broken")
        async with httpx.AsyncClient(timeout=20) as http:
            headers = {"Authorization": f"Bearer {secret}"}
            response = await http.post(f"{endpoint}/chat/completions", json=body, headers=headers)
            response.raise_for_status()
        return vf.ProgramResult(0, "", "")


__all__ = ["Sayings", "Asking"]
'''


@pytest.fixture(scope="module")
def chat():
    folder = chat_model.write(folders.new() / "tiny-chat")
    return Chat(chat_model.tokenizer(folder))


class Echo:
    """A policy that says the digit of the prompt."""

    def __init__(self, chat):
        self.chat = chat

    def sample(self, prompt, limits, seed):
        digit = next(text for text in self.chat.decode(prompt) if text.isdigit())
        tokens = self.chat.encode(f"It is {digit}.<|end|>")
        return Sampled(tokens, [-1.0] * len(tokens), [0] * len(tokens), True)


@pytest.fixture
def taskset(tmp_path, monkeypatch):
    pytest.importorskip("verifiers.v1")
    (tmp_path / "tiny_sayings.py").write_text(TASKSET)
    monkeypatch.syspath_prepend(tmp_path)
    yield {"id": "tiny-sayings", "arguments": {"agent": {"runtime": {"type": "subprocess"}}}, "held_out_tasks": 2}
    sys.modules.pop("tiny_sayings", None)


def test_tasks_of_a_taskset_are_played_and_recorded(chat, taskset):
    suite = load_suite(EnvironmentConfig("verifiers", taskset))
    held_out = load_suite(EnvironmentConfig("verifiers", taskset), held_out=True)
    assert (len(suite), len(held_out)) == (4, 2)
    with Episodes(chat, Limits(max_turns=2, seconds=60.0)) as episodes:
        for tasks, index, number in ((suite, 0, 2), (held_out, 1, 1)):
            episode = episodes.play(lambda tasks=tasks, index=index: tasks.make(index), Echo(chat), 0)
            assert episode.error is None, episode.error
            (one,) = episode.trajectories
            assert chat.decode(one.tokens).endswith(f"It is {number}.")
            assert (one.reward, one.turns, one.metrics["length"]) == (1.0, 1, 8.0)
        # At the same time, each in an event loop of its own.
        with ThreadPoolExecutor(8) as pool:
            playing = [pool.submit(episodes.play, partial(suite.make, at % 4), Echo(chat), 0) for at in range(8)]
            ended = [future.result() for future in playing]
    assert [[one.reward for one in episode.trajectories] for episode in ended] == [[1.0], [], [1.0], [1.0]] * 2
    assert "the harness is broken" in str(ended[1].error)


def test_settings_of_a_taskset_are_checked(taskset):
    wrong = taskset | {"arguments": {"agent": {"no_such_setting": 1}}}
    with pytest.raises(ConfigError, match=r"environment.options.arguments: .*no_such_setting"):
        load_suite(EnvironmentConfig("verifiers", wrong))


ENVIRONMENT = """
import verifiers as vf
from datasets import Dataset


def load_environment(count):
    rows = [{"prompt": [{"role": "user", "content": f"Say {i}."}], "answer": str(i)} for i in range(count)]
    reward = lambda completion, answer, **_: float(answer in str(completion[-1]))
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[reward]))
"""


def test_environments_of_the_first_interface_are_played_too(chat, tmp_path, monkeypatch):
    pytest.importorskip("verifiers")
    (tmp_path / "tiny_first_env.py").write_text(ENVIRONMENT)
    monkeypatch.syspath_prepend(tmp_path)
    suite = load_suite(EnvironmentConfig("verifiers", {"id": "tiny-first-env", "arguments": {"count": 3}}))
    assert len(suite) == 3
    with Episodes(chat, Limits(max_turns=2, seconds=60.0)) as episodes:
        episode = episodes.play(lambda: suite.make(2), Echo(chat), 0)
    assert episode.error is None, episode.error
    assert [(one.reward, one.turns) for one in episode.trajectories] == [(1.0, 1)]


def test_without_the_package_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "verifiers", None)
    with pytest.raises(ConfigError, match="the package verifiers is not installed; run: pip install verifiers"):
        load_suite(EnvironmentConfig("verifiers", {"id": "x"}))
