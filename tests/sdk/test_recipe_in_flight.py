"""Rollouts in flight without a server: their staleness, corrections for it, and agents that are processes."""

import os
import random
import sys
import textwrap
import threading
import time
import types

import numpy as np
import pytest

from recipes import Scripted, chat_of_tiny_model

from trainyard.recipes import async_grpo, async_ppo  # isort: skip
from trainyard.recipes.core import data, in_flight, losses  # isort: skip
from trainyard.recipes.core.agent_program import AgentProgram  # isort: skip
from trainyard.recipes.core.agents import AgentEpisode, Proxy, play_any  # isort: skip
from trainyard.recipes.core.attempts import Tally  # isort: skip
from trainyard.recipes.core.config import ConfigError, load  # isort: skip
from trainyard.recipes.core.rollout import Limits, Sampled  # isort: skip
from trainyard.recipes.envs import Environment, EnvironmentConfig, Outcome, load_suite  # isort: skip


@pytest.fixture(scope="module")
def chat():
    return chat_of_tiny_model()


class Slow:
    """A policy with a version that changes while answers are going on; some take long."""

    def __init__(self):
        self.version = 0

    def sample(self, prompt, limits, seed):
        versions = []
        for _ in range(3):
            versions.append(self.version)
            time.sleep((seed % 7) ** 3 / 30_000)
        return Sampled([7, 8, 9], [-1.0] * 3, versions, True)


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_staleness_keeps_its_bound(chat, staleness, tmp_path):
    """With answers that take very different times, and groups that are dropped for being too old or without a gradient."""
    config = async_grpo.Config(
        folder="x", steps=12, groups=3, group_size=2, staleness=staleness, dynamic_sampling=True, concurrency=8
    )
    run = types.SimpleNamespace(first_step=0, chat=chat, config=config)
    policy, suite, rewards = Slow(), load_suite(EnvironmentConfig("arithmetic")), random.Random(5)
    useful = lambda group: rewards.random() < 0.8 and len(group) == 2  # noqa: E731
    tally = Tally(config.limits, tmp_path)
    rollouts = in_flight.Rollouts(run, config, 3, 2, suite, policy, data.shuffled(len(suite), 0), tally)
    try:
        rollouts.start(0)
        for step in range(config.steps):
            groups = rollouts.take(step, useful)
            assert len(groups) == 3
            assert in_flight.ages(groups, step)["staleness_max"] <= staleness
            policy.version = step + 1
            rollouts.start(step + 1)
        assert rollouts.used == 36
    finally:
        rollouts.close()


def test_an_interpolated_proximal_policy_shares_the_way_between_clip_and_weight():
    """A token of age 1 is weighed as on-policy PPO weighs it, an older one mostly by its weight, up to the cap."""
    assert [async_grpo.between(version, 5) for version in (5, 4, 3, 1)] == [0.0, 0.0, 0.5, 0.75]
    now, old = np.log([0.5, 0.5, 0.5]), np.log([0.4, 0.4, 0.01])
    ones = np.ones(3)
    tokens = losses.Tokens(now, old, ones * 2, ones, np.zeros(3, np.int64))
    moved, weights = losses.around(tokens, np.asarray([0.0, 0.5, 0.5]), 2.0)
    expected = np.asarray([1.0, 1.25**0.5, 50**0.5])
    np.testing.assert_allclose(weights, expected, rtol=1e-12)
    np.testing.assert_allclose(moved.ratio, [1.25, 1.25**0.5, 50**0.5], rtol=1e-12)
    np.testing.assert_allclose(moved.advantages, 2 * np.minimum(expected, 2.0), rtol=1e-12)


class Asked(Environment):
    """Scores a reply by its length."""

    def reset(self):
        return [{"role": "user", "content": "Hi"}]

    def step(self, reply):
        return Outcome(float(len(reply)))


PROGRAM = """
    import json, os, sys, urllib.request
    messages = json.load(sys.stdin)
    for _ in range(2):
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps({"model": "any", "messages": messages}).encode(),
            {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
        )
        reply = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
        messages += [reply, {"role": "user", "content": "And?"}]
    print(reply["content"])
"""


def program(tmp_path, text, seconds=60.0):
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(text))
    return AgentProgram([sys.executable, str(path)], seconds)


def test_a_process_is_an_agent(chat, tmp_path):
    with Proxy() as proxy:
        episode = AgentEpisode(Asked(), program(tmp_path, PROGRAM))
        (one,) = play_any(episode, proxy, Scripted(chat, "Hello.", "Well."), chat, Limits(max_turns=2), 0)
    assert one.reward == len("Well.") and one.turns == 2
    assert chat.tokenizer.decode(one.tokens).endswith("Hello.<|end|><|user|>And?<|end|><|assistant|>Well.<|end|>")


def test_a_process_that_fails_or_hangs_fails_its_episode(tmp_path):
    with pytest.raises(RuntimeError, match="exit code 3: no tools"):
        program(tmp_path, "import sys; print('no tools', file=sys.stderr); sys.exit(3)")("http://x", "k", [])
    hanging = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(Exception, match="timed out"):
        program(tmp_path, hanging, seconds=2.0)("http://x", "k", [])
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    with pytest.raises(ConfigError, match="JSON can't contain"):
        program(tmp_path, "")("http://x", "k", [{"role": "user", "content": [{"type": "image", "image": b"x"}]}])


def test_the_end_of_a_run_ends_the_processes_of_agents(tmp_path):
    agent = program(tmp_path, "import time; time.sleep(600)")
    ended = []

    def play():
        with pytest.raises(RuntimeError, match="exit code -9"):
            agent("http://x", "k", [])
        ended.append(True)

    playing = threading.Thread(target=play)
    playing.start()
    while not agent.running:
        time.sleep(0.01)
    agent.close()
    playing.join(60)
    assert ended
    with pytest.raises(RuntimeError, match="the run has ended"):
        agent("http://x", "k", [])


@pytest.mark.parametrize(
    ("recipe", "flags", "named"),
    [
        (async_grpo, ["--agent=a:b", '--agent_command=["true"]'], ["agent_command", "agent is set, too"]),
        (async_grpo, ["--correction=linear"], ["correction", "'loglinear'"]),
        (async_ppo, ["--correction=loglinear"], ["correction", "'decoupled'"]),
        (async_ppo, ["--staleness=-1"], ["staleness", "at least 0"]),
        (async_ppo, ["--weight_cap=0"], ["weight_cap", "greater than 0"]),
    ],
)
def test_settings_are_checked(recipe, flags, named):
    with pytest.raises(ConfigError) as refused:
        load(recipe.Config, ["--folder=f", *flags], {}, "x")
    assert all(text in str(refused.value) for text in named), refused.value


def test_a_program_that_does_not_exist_is_named():
    config = load(async_grpo.Config, ["--folder=f", '--agent_command=["no-such-agent"]'], {}, "x")
    with pytest.raises(ConfigError, match="agent_command: no program 'no-such-agent' is found"):
        config.load_agent()
