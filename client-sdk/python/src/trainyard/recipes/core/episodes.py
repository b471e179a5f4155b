"""Playing the tasks of an environment: settings, concurrent episodes, rewards, and the metrics of evaluations."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from statistics import mean, pstdev

import tinker
from tinker import types

from ..envs import EnvironmentConfig, Suite, load_suite
from .attempts import Episode, Episodes, Group, Tally
from .config import ConfigError, opt
from .data import Tasks
from .images import model_input
from .rollout import Limits, Policy, Snapshot, Trajectory, last_of_episodes
from .run import Common, Run
from .seeds import seed_of
from .values import RewardModel

CANDIDATES = 20
"""Number of most likely tokens whose probabilities are requested."""


@dataclass(frozen=True)
class Playing(Common):
    """Settings of recipes that learn from episodes."""

    environment: EnvironmentConfig = opt(EnvironmentConfig(), "")
    limits: Limits = opt(Limits(), "")
    concurrency: int = opt(64, "concurrent episodes")
    eval_tasks: int = opt(16, "held-out tasks of an evaluation")
    reward_model: str = opt("", "tinker:// path of a reward model, whose score of an episode is added to its reward")
    reward_weight: float = opt(1.0, "factor on the reward model's score")

    @property
    def own_environment(self) -> EnvironmentConfig:
        """The environment of the run."""
        return self.environment


def load_suites(config: Playing) -> tuple[Suite, Suite]:
    """Returns the tasks to train on, and the held-out tasks."""
    return load_suite(config.environment), load_suite(config.environment, held_out=True)


class Player:
    """Plays the tasks of a run's environment, for training and held out."""

    def __init__(self, run: Run, config: Playing, suites: tuple[Suite, Suite]) -> None:
        self.run, self.config = run, config
        self.suite, self.test = suites
        path, weight = config.reward_model, config.reward_weight
        self.reward_model = RewardModel(run.service, path, weight) if path else None
        self.tally = Tally(config.limits, run.folder)

    def play(self, policy: Policy, tasks: Sequence[int], seed: int, size: int, held_out: bool = False) -> list[Group]:
        """Plays `size` episodes of each task concurrently. Failed groups are left out."""
        suite, config = self.test if held_out else self.suite, self.config
        # Episodes are closed first, so that no thread of the pool waits for one when an error ends the run.
        with ThreadPoolExecutor(config.concurrency) as pool, Episodes(self.run.chat, config.limits) as episodes:
            futures: list[list[Future[Episode]]] = [
                [
                    pool.submit(episodes.play, functools.partial(suite.make, task), policy, seed_of(seed, at, episode))
                    for episode in range(size)
                ]
                for at, task in enumerate(tasks)
            ]
            played = [[future.result() for future in group] for group in futures]
        prefix = "held_out" if held_out else "env"
        judged = [self.tally.group(task, group, prefix) for task, group in zip(tasks, played, strict=True)]
        for task, group in zip(tasks, judged, strict=True):
            for one in group or ():
                one.task = task
        groups = [group for group in judged if group is not None]
        if self.reward_model:
            self.reward_model.score(groups)
        return groups

    def play_full(self, policy: Policy, tasks: Tasks, count: int, seed: int, size: int) -> list[Group]:
        """Plays `count` tasks; failed ones are replaced by the next ones."""
        groups = self.play(policy, tasks.take(count), seed, size)
        for again in itertools.count(1):
            missing = count - len(groups)
            if not missing:
                break
            groups += self.play(policy, tasks.take(missing), seed_of(seed, "in place of failed ones", again), size)
        return groups

    def held_out(self, policy: Policy) -> dict[str, float]:
        """Returns rewards of the first held-out tasks, with the same seeds each time."""
        tasks = range(min(len(self.test), self.config.eval_tasks))
        groups = self.play(policy, tasks, seed_of(self.config.seed, "held out"), 1, held_out=True)
        found = summary(groups) if groups else {}
        means = {f"held_out/{key}": found[key] for key in ("reward", "answer_tokens") if key in found}
        return means | self.tally.metrics("held_out")


def summary(groups: Sequence[Group]) -> dict[str, float]:
    """Returns means over the episodes."""
    every = [one for group in groups for one in group]
    rewards = [[one.reward for one in last_of_episodes(group)] for group in groups]
    means = {
        "reward": mean(reward for own in rewards for reward in own),
        "reward_spread": mean(map(pstdev, rewards)),
        "answer_tokens": mean(one.sampled for one in every),
        "turns": mean(one.turns for one in every),
        "truncated": mean(one.truncated for one in every),
        "surprise": -sum(sum(one.logprobs) for one in every) / max(sum(one.sampled for one in every), 1),
    }
    keys = {key for one in every for key in one.metrics}
    return means | {f"env/{key}": mean(one.metrics[key] for one in every if key in one.metrics) for key in sorted(keys)}


def sampler(run: Run, path: str) -> tinker.SamplingClient:
    """Returns a sampler of a checkpoint, or of the run's base model."""
    if path:
        return run.service.create_sampling_client(model_path=path).result()
    return run.service.create_sampling_client(base_model=run.model).result()


def snapshot(run: Run, version: int) -> Snapshot:
    """Returns a sampler of the current weights."""
    return Snapshot(run.training.save_weights_and_get_sampling_client().result(), version)


def reference_logprobs(reference: tinker.SamplingClient, trajectories: Sequence[Trajectory]) -> list[dict[int, float]]:
    """Returns, for each trajectory and sampled token, its log-probability under the reference."""
    pending = [reference.compute_logprobs(model_input(one.tokens)) for one in trajectories]
    return [
        {at: lp for at, lp in enumerate(future.result()) if one.mask[at] and lp is not None}
        for one, future in zip(trajectories, pending, strict=True)
    ]


def log_ratios(trajectories: Sequence[Trajectory], references: Sequence[Mapping[int, float]]) -> list[dict[int, float]]:
    """Returns, for each trajectory and sampled token, the log-ratio to the reference (k1)."""
    return [
        {at: one.logprobs[at] - lp for at, lp in own.items()} for one, own in zip(trajectories, references, strict=True)
    ]


def fill_squares(sampler: tinker.SamplingClient, trajectories: Sequence[Trajectory]) -> None:
    """Sets `squares` from the most likely tokens. The others add at most the probability of the last of these times the
    remaining probability."""
    params = types.SamplingParams(max_tokens=1, temperature=1.0, seed=0)
    pending = [
        sampler.sample(model_input(one.tokens), 1, params, topk_prompt_logprobs=CANDIDATES) for one in trajectories
    ]
    for one, future in zip(trajectories, pending, strict=True):
        rows = future.result().topk_prompt_logprobs
        if rows is None:
            raise ConfigError(
                "algorithm: optimal_token needs top-k log-probabilities of prompts, which the server does not return"
            )
        one.squares = [math.fsum(math.exp(2 * lp) for _, lp in row or ()) for row in rows]


def mean_of(distances: Sequence[Mapping[int, float]]) -> float:
    """The mean over all tokens."""
    every = [distance for own in distances for distance in own.values()]
    return mean(every) if every else 0.0
