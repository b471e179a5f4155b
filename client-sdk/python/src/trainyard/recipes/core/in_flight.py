"""Rollouts that continue while training steps run, with a bound on how old their weights may be."""

from __future__ import annotations

import functools
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any, Protocol

import numpy as np
import tinker
from tinker import types

from ..envs import AnyEpisode, BlackBox, Game, Suite, imported
from . import data
from .agent_program import AgentProgram
from .agents import Agent, AgentEpisode
from .attempts import Episode, Episodes, Group, Tally
from .config import ConfigError, check, opt
from .episodes import Player, Playing, snapshot, summary
from .images import model_input
from .losses import BOUND, Floats
from .rollout import Limits, Sampled, Trajectory
from .run import Run
from .seeds import seed_of
from .updates import forward
from .values import RewardModel


@dataclass(frozen=True)
class Flying(Playing):
    """Settings of rollouts in flight."""

    staleness: int = opt(
        1, "largest staleness in steps: how much older than the trained weights the sampling weights may be"
    )
    segment_tokens: int = opt(
        0, "tokens per sampling request; the weights' version is known per request; 0 requests all tokens at once"
    )
    weight_cap: float = opt(2.0, "largest weight of a stale sample, for a correction")
    agent: str = opt(
        "", "MODULE:FUNCTION of an agent that uses an OpenAI base URL, in place of the built-in loop of turns"
    )
    agent_command: list[str] = opt(
        [], "program that is the agent, with its arguments; each episode is a process of its own"
    )

    def check_flight(self) -> None:
        check(self.staleness >= 0, "staleness", "must be at least 0")
        check(self.segment_tokens >= 0, "segment_tokens", "must be at least 0")
        check(self.weight_cap > 0, "weight_cap", "must be greater than 0")
        check(not (self.agent and self.agent_command), "agent_command", "agent is set, too; only one can be the agent")

    def load_agent(self) -> Agent | None:
        """Returns the agent in place of the built-in loop of turns, if there is one."""
        if self.agent_command:
            return AgentProgram(self.agent_command, self.limits.seconds)
        if not self.agent:
            return None
        module, _, function = self.agent.partition(":")
        return imported(module, function, "agent")


class Learning(Protocol):
    """What learns from groups of episodes."""

    @property
    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""

    def useful(self, group: Group) -> bool:
        """Returns whether there is something to learn from a group; another takes the place of one that is not."""

    def learn(self, step: int, groups: list[Group], policy: tinker.SamplingClient) -> dict[str, float]:
        """Makes the updates of a step, and returns their metrics."""


class InFlight:
    """A policy whose weights follow the training run, also in the middle of an answer."""

    def __init__(self, run: Run, segment: int) -> None:
        self.run, self.segment = run, segment
        self.version = run.first_step
        self.sampler = self._published()

    def _published(self) -> tinker.SamplingClient:
        return self.run.training.save_weights_and_get_sampling_client(kind="inflight").result()

    def publish(self, version: int) -> None:
        """Publishes the current weights to all samplers. The version changes after the weights, so it is never too
        high."""
        self.sampler = self._published()
        self.version = version

    def sample(self, prompt: Sequence[int], limits: Limits, seed: int) -> Sampled:
        answer = Sampled([], [], [], False)
        while not answer.stopped and len(answer.tokens) < limits.max_tokens:
            left = limits.max_tokens - len(answer.tokens)
            version = self.version
            params = types.SamplingParams(
                max_tokens=min(left, self.segment or left),
                temperature=limits.temperature,
                seed=seed_of(seed, len(answer.tokens)),
            )
            tokens = model_input([*prompt, *answer.tokens])
            sequence = self.sampler.sample(tokens, 1, params).result().sequences[0]
            answer.tokens += sequence.tokens
            answer.logprobs += sequence.logprobs or []
            answer.versions += [version] * len(sequence.tokens)
            answer.stopped = sequence.stop_reason == "stop"
        return answer


@dataclass
class Finished:
    """A group whose episodes have all ended."""

    number: int
    episodes: Group

    @property
    def oldest(self) -> int:
        return min(one.oldest for one in self.episodes)


@dataclass
class Ended:
    """The episodes of a group, before failed ones are separated."""

    number: int
    task: int
    episodes: list[Episode]


@dataclass
class Rollouts:
    """Samples groups in threads. At most `groups * (version + staleness + 1)` are started, not counting dropped
    ones."""

    run: Run
    config: Flying
    groups: int
    """Groups of a step."""
    size: int
    """Episodes of a group."""
    suite: Suite
    policy: InFlight
    tasks: Iterator[int]
    tally: Tally
    agent: Agent | None = None
    reward_model: RewardModel | None = None
    dropped: int = 0
    used: int = 0
    _started: int = 0
    _ready: queue.SimpleQueue[Ended | BaseException] = field(default_factory=queue.SimpleQueue)
    _waiting: list[Finished] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.config.concurrency, thread_name_prefix="rollout")
        self.episodes = Episodes(self.run.chat, self.config.limits)

    def start(self, version: int) -> None:
        """Starts as many groups as the staleness bound allows after the weights got a version."""
        done = version - self.run.first_step
        allowed = self.groups * (done + self.config.staleness + 1) + self.dropped
        # What would be used after the last step is not begun.
        needed = self.groups * (self.config.steps - self.run.first_step) + self.dropped
        while self._started < min(allowed, needed):
            self._group(self._started, next(self.tasks))
            self._started += 1

    def _group(self, number: int, task: int) -> None:
        size = self.size
        seed = seed_of(self.config.seed, self.run.first_step * self.groups + number)
        episodes: list[Episode] = []
        lock = threading.Lock()

        def ended(future: Future[Episode]) -> None:
            error = None if future.cancelled() else future.exception()
            if error is not None:
                self._ready.put(error)
            if error is not None or future.cancelled():
                return
            with lock:
                episodes.append(future.result())
                complete = len(episodes) == size
            if complete:
                self._ready.put(Ended(number, task, episodes))

        for episode in range(size):
            self.pool.submit(self._episode, task, seed_of(seed, episode)).add_done_callback(ended)

    def _episode(self, task: int, seed: int) -> Episode:
        return self.episodes.play(functools.partial(self._make, task), self.policy, seed)

    def _make(self, task: int) -> AnyEpisode:
        episode = self.suite.make(task)
        if self.agent is None or isinstance(episode, BlackBox):
            return episode
        if isinstance(episode, Game):
            raise ConfigError("agent: not available for games, whose agents are all played by the policy")
        return AgentEpisode(episode, self.agent)

    def take(self, version: int, useful: Callable[[Group], bool]) -> list[Group]:
        """Waits for the groups of the step that begins with a version, and returns them, oldest first.

        Groups that failed or are too old, and those that are not useful, are replaced by others.
        """
        chosen: list[Finished] = []
        while len(chosen) < self.groups:
            self._receive(version)
            self._waiting.sort(key=lambda group: (group.oldest, group.number))
            while self._waiting and len(chosen) < self.groups:
                group = self._waiting.pop(0)
                stale = version - group.oldest > self.config.staleness
                if stale or not useful(group.episodes):
                    self._drop(version)
                else:
                    chosen.append(group)
        self.used += len(chosen)
        return [group.episodes for group in sorted(chosen, key=lambda group: group.number)]

    def _drop(self, version: int) -> None:
        self.dropped += 1
        self.start(version)

    def _receive(self, version: int) -> None:
        """Takes all groups that have ended, at least one if none is waiting."""
        while not self._waiting or not self._ready.empty():
            item = self._ready.get()
            if isinstance(item, BaseException):
                raise item
            group = self.tally.group(item.task, item.episodes, "env")
            if group is None:
                self._drop(version)
                continue
            if self.reward_model:
                self.reward_model.score([group])
            for one in group:
                one.task = item.task
            # Episodes end in any order.
            self._waiting.append(Finished(item.number, sorted(group, key=lambda one: one.tokens)))

    def close(self) -> None:
        self.episodes.close()
        self.pool.shutdown(wait=True, cancel_futures=True)


def ages(groups: Sequence[Group], version: int) -> dict[str, float]:
    """Returns the staleness of a step's tokens."""
    every = [one for group in groups for one in group]
    found = [version - v for one in every for v, own in zip(one.versions, one.mask, strict=True) if own]
    mixed = mean(len({v for v, own in zip(one.versions, one.mask, strict=True) if own}) > 1 for one in every)
    return {"staleness": mean(found), "staleness_max": float(max(found)), "mixed_versions": mixed}


def proximal(
    training: tinker.TrainingClient, trajectories: Sequence[Trajectory], cap: float
) -> tuple[list[Trajectory], list[list[float]], list[Floats], dict[str, float]]:
    """Recomputes the proximal policy of decoupled PPO (Fu et al. 2025): ratios are clipped around the weights before
    the step, and the ratio of these to the sampling weights is a factor of the advantage.

    Returns the sequences with the proximal log-probabilities, the factor of each token, at most `cap`, the
    log-probabilities of all tokens but the first, and metrics.
    """
    now = forward(training, trajectories)
    moved, factors, weights = [], [], []
    for one, values in zip(trajectories, now, strict=True):
        logprobs = [0.0, *values.tolist()]
        own = [
            float(np.exp(min(after - before, BOUND))) if on else 0.0
            for after, before, on in zip(logprobs, one.logprobs, one.mask, strict=True)
        ]
        weights += [weight for weight, on in zip(own, one.mask, strict=True) if on]
        factors.append([min(weight, cap) for weight in own])
        moved.append(replace(one, logprobs=[lp if on else 0.0 for lp, on in zip(logprobs, one.mask, strict=True)]))
    return moved, factors, now, {"weight": mean(weights), "weight_max": max(weights)}


def train(
    run: Run, player: Player, config: Flying, groups: int, size: int, learner: Learning, agent: Agent | None
) -> None:
    """The loop of recipes with rollouts in flight: take finished groups, learn, publish the weights.

    A step has `groups` groups of `size` episodes.
    """
    consumed = int(run.state.get("tasks", 0))
    before: dict[str, float] = {}
    if run.first_step == 0 and config.eval_tasks:
        found = player.held_out(snapshot(run, 0))
        before = {f"{key}_before": value for key, value in found.items()}
    tasks = itertools.islice(data.shuffled(len(player.suite), config.seed), consumed, None)
    policy = InFlight(run, config.segment_tokens)
    rollouts = Rollouts(
        run, config, groups, size, player.suite, policy, tasks, player.tally, agent, player.reward_model
    )
    try:
        rollouts.start(run.first_step)
        for step in run.steps():
            began = time.monotonic()
            taken = rollouts.take(step, learner.useful)
            metrics = before | summary(taken) | ages(taken, step) | player.tally.metrics("env")
            before = {}
            metrics |= {"dropped": float(rollouts.dropped), "seconds_waiting": time.monotonic() - began}
            metrics |= learner.learn(step, taken, policy.sampler)
            policy.publish(step + 1)
            rollouts.start(step + 1)
            if config.eval_tasks and run.evaluates(step):
                metrics |= player.held_out(snapshot(run, step + 1))
            run.record(step, metrics, ("reward", "held_out/reward", "staleness_max"))
            # Groups that were dropped are not played again; those in flight are.
            run.after(step, {"tasks": consumed + rollouts.used + rollouts.dropped} | learner.state)
    finally:
        if isinstance(agent, AgentProgram):
            agent.close()
        rollouts.close()
