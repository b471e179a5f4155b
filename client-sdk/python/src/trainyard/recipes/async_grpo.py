"""Asynchronous reinforcement learning: rollouts continue while training steps run.

    python -m trainyard.recipes.async_grpo --folder runs/async --environment.name arithmetic --staleness 2

Episodes are sampled continuously by an in-flight sampler, whose weights change in the middle of an answer when a step
is done. Each token has the version of the newest weights at the time of its request; it may come from newer ones. A
step does not train on tokens whose version is more than `staleness` steps old.
"""

from __future__ import annotations

import functools
import itertools
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Literal

import numpy as np
import tinker
from tinker import types

from . import grpo
from .core import data
from .core.agents import Agent, AgentEpisode
from .core.algorithms import LOSS_SETTINGS, Objective
from .core.attempts import Episode, Episodes, Group, Tally
from .core.config import check, opt, run_main
from .core.episodes import Player, load_suites, snapshot, summary
from .core.images import model_input
from .core.rollout import Limits, Sampled
from .core.run import Run, opened
from .core.seeds import seed_of
from .core.updates import Batch, forward
from .core.values import RewardModel
from .envs import BlackBox, Environment, Suite, imported


@dataclass(frozen=True)
class Config(grpo.Config):
    """Settings of `grpo`, and the allowed staleness of rollouts."""

    staleness: int = opt(
        1, "largest staleness in steps: how much older than the trained weights the sampling weights may be"
    )
    segment_tokens: int = opt(
        0, "tokens per sampling request; the weights' version is known per request; 0 requests all tokens at once"
    )
    correction: Literal["decoupled", "aipo", "none"] = opt(
        "decoupled", "weighting of stale samples: decoupled PPO (AReaL), AIPO (LlamaRL), or the unchanged objective"
    )
    weight_cap: float = opt(2.0, "largest weight of a stale sample, for decoupled and aipo")
    agent: str = opt(
        "", "MODULE:FUNCTION of an agent that uses an OpenAI base URL, in place of the built-in loop of turns"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.staleness >= 0, "staleness", "must be at least 0")
        check(self.segment_tokens >= 0, "segment_tokens", "must be at least 0")
        check(self.weight_cap > 0, "weight_cap", "must be greater than 0")
        check(
            self.curriculum.rest == 0,
            "curriculum.rest",
            "async_grpo starts tasks before the results of earlier ones are known; use grpo or agent_env",
        )
        check(
            self.replace_from == 0,
            "replace_from",
            "async_grpo takes groups as they are finished, so others take the place of those; use grpo or agent_env",
        )
        check(
            self.chosen.advantage != "remax",
            "advantage",
            "remax needs a greedy episode of each task, which async_grpo does not sample; use grpo or agent_env",
        )
        if self.correction == "aipo":
            self._check_aipo()

    def _check_aipo(self) -> None:
        """AIPO is a loss of its own, so that of the settings has no place."""
        names = {"loss", *(name for known in LOSS_SETTINGS.values() for name in known)}
        for name in sorted(names & self.given.keys()):
            check(False, name, "correction = aipo has its own loss and clipping; choose decoupled or none")
        has = self.chosen
        check(has.of_server, "algorithm", f"the loss {has.loss} and correction = aipo are mutually exclusive")

    @property
    def objective(self) -> Objective:
        """Returns the objective. AIPO is REINFORCE with weights truncated at the cap: the loss `cispo` without a lower
        bound."""
        if self.correction == "aipo":
            return replace(self.chosen, loss="cispo", clip_low=1.0, clip_high=self.weight_cap - 1)
        return self.chosen


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
    config: Config
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
        allowed = self.config.groups * (done + self.config.staleness + 1) + self.dropped
        # What would be used after the last step is not begun.
        needed = self.config.groups * (self.config.steps - self.run.first_step) + self.dropped
        while self._started < min(allowed, needed):
            self._group(self._started, next(self.tasks))
            self._started += 1

    def _group(self, number: int, task: int) -> None:
        size = self.config.group_size
        seed = seed_of(self.config.seed, self.run.first_step * self.config.groups + number)
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

    def _make(self, task: int) -> Environment | BlackBox:
        episode = self.suite.make(task)
        return AgentEpisode(episode, self.agent) if self.agent and isinstance(episode, Environment) else episode

    def take(self, version: int, learner: grpo.Learner) -> list[Group]:
        """Waits for the groups of the step that begins with a version, and returns them, oldest first.

        Groups that failed or are too old, and with dynamic sampling those without a gradient, are replaced by others.
        """
        chosen: list[Finished] = []
        while len(chosen) < self.config.groups:
            self._receive(version)
            self._waiting.sort(key=lambda group: (group.oldest, group.number))
            while self._waiting and len(chosen) < self.config.groups:
                group = self._waiting.pop(0)
                stale = version - group.oldest > self.config.staleness
                empty = learner.objective.dynamic_sampling and not learner.informative(group.episodes)
                if stale or empty:
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


class Learner(grpo.Learner):
    """Corrects for samples of older weights."""

    config: Config

    def corrected(self, batch: Batch) -> dict[str, float]:
        """Decoupled PPO (Fu et al. 2025): ratios are clipped around the weights before the step, and the ratio of these
        to the sampling weights is a factor of the advantage."""
        if self.config.correction != "decoupled":
            return {}
        batch.now = forward(self.run.training, batch.trajectories)
        weights = []
        for at, (one, proximal) in enumerate(zip(batch.trajectories, batch.now, strict=True)):
            logprobs = [0.0, *proximal.tolist()]
            for index, own in enumerate(one.mask):
                if own:
                    weight = float(np.exp(min(logprobs[index] - one.logprobs[index], 20.0)))
                    batch.advantages[at][index] *= min(weight, self.config.weight_cap)
                    weights.append(weight)
            batch.trajectories[at] = replace(
                one, logprobs=[lp if own else 0.0 for lp, own in zip(logprobs, one.mask, strict=True)]
            )
        return {"weight": mean(weights), "weight_max": max(weights)}


def ages(groups: Sequence[Group], version: int) -> dict[str, float]:
    """Returns the staleness of a step's tokens."""
    every = [one for group in groups for one in group]
    found = [version - v for one in every for v, own in zip(one.versions, one.mask, strict=True) if own]
    mixed = mean(len({v for v, own in zip(one.versions, one.mask, strict=True) if own}) > 1 for one in every)
    return {"staleness": mean(found), "staleness_max": float(max(found)), "mixed_versions": mixed}


def main(config: Config) -> None:
    suites = load_suites(config)
    agent: Agent | None = None
    if config.agent:
        module, _, function = config.agent.partition(":")
        agent = imported(module, function, "agent")
    with opened("async_grpo", config) as run:
        player, learner = Player(run, config, suites), Learner(run, config)
        consumed = int(run.state.get("tasks", 0))
        before: dict[str, float] = {}
        if run.first_step == 0 and config.eval_tasks:
            found = player.held_out(snapshot(run, 0))
            before = {f"{key}_before": value for key, value in found.items()}
        tasks = itertools.islice(data.shuffled(len(player.suite), config.seed), consumed, None)
        policy = InFlight(run, config.segment_tokens)
        rollouts = Rollouts(run, config, player.suite, policy, tasks, player.tally, agent, player.reward_model)
        try:
            rollouts.start(run.first_step)
            for step in run.steps():
                began = time.monotonic()
                groups = rollouts.take(step, learner)
                metrics = before | summary(groups) | ages(groups, step) | player.tally.metrics("env")
                before = {}
                metrics |= {"dropped": float(rollouts.dropped), "seconds_waiting": time.monotonic() - began}
                learner.prepare(groups, policy.sampler)
                metrics |= learner.update(step, groups)
                policy.publish(step + 1)
                rollouts.start(step + 1)
                if config.eval_tasks and run.evaluates(step):
                    metrics |= player.held_out(snapshot(run, step + 1))
                run.record(step, metrics, ("reward", "held_out/reward", "staleness_max"))
                # Groups that were dropped are not played again; those in flight are.
                run.after(step, {"tasks": consumed + rollouts.used + rollouts.dropped} | learner.state)
        finally:
            rollouts.close()


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.async_grpo")


if __name__ == "__main__":
    raise SystemExit(cli())
