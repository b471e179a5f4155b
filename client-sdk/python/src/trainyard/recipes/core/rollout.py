"""Episodes: a policy and an environment take turns; the result is tokens with the data that training needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import tinker
from tinker import types

from ..envs import Environment
from .chat import Chat
from .config import check, opt
from .images import model_input
from .seeds import seed_of


@dataclass(frozen=True)
class Limits:
    """Sampling settings and limits of an episode."""

    max_tokens: int = opt(256, "maximum tokens of an answer")
    max_turns: int = opt(1, "maximum answers of an episode")
    max_context: int = opt(4096, "maximum tokens of an episode, which ends before it would exceed them")
    temperature: float = opt(1.0, "temperature of samples")
    seconds: float = opt(3600.0, "time limit of an episode in seconds, after which it has failed; 0 sets no limit")
    failures: float = opt(0.1, "fraction of the last 200 episodes that may fail; more end the run")
    failed: Literal["drop", "score"] = opt(
        "drop", "drop: leave out groups with a failed episode; score: train on its tokens with failure_reward"
    )
    failure_reward: float = opt(0.0, "reward of a failed episode, for score")
    retries: int = opt(2, "retries of an episode after an error that retry_on names")
    retry_on: list[str] = opt(
        ["ConnectionError", "TimeoutError", "httpx.TransportError"], "names of exceptions, with or without their module"
    )

    def __post_init__(self) -> None:
        check(self.max_tokens > 0, "limits.max_tokens", "must be at least 1")
        check(self.max_turns > 0, "limits.max_turns", "must be at least 1")
        check(self.temperature > 0, "limits.temperature", "must be greater than 0: greedy samples have no gradient")
        check(self.seconds >= 0, "limits.seconds", "must be at least 0")
        check(0 <= self.failures < 1, "limits.failures", "must be a fraction from 0 to below 1")
        check(self.retries >= 0, "limits.retries", "must be at least 0")


@dataclass
class Sampled:
    """An answer: for each token its log-probability and the version of the weights (or an older one) it came from."""

    tokens: list[int]
    logprobs: list[float]
    versions: list[int]
    stopped: bool
    """Whether the answer ended with a stop token, not at the token limit."""


class Policy(Protocol):
    """A model that answers."""

    def sample(self, prompt: Sequence[int], limits: Limits, seed: int) -> Sampled: ...


class Snapshot:
    """A sampler whose weights do not change. A greedy one always takes the most likely token."""

    def __init__(self, sampler: tinker.SamplingClient, version: int, greedy: bool = False) -> None:
        self.sampler, self.version, self.greedy = sampler, version, greedy

    def sample(self, prompt: Sequence[int], limits: Limits, seed: int) -> Sampled:
        temperature = 0.0 if self.greedy else limits.temperature
        params = types.SamplingParams(max_tokens=limits.max_tokens, temperature=temperature, seed=seed)
        response = self.sampler.sample(model_input(prompt), 1, params).result()
        sequence = response.sequences[0]
        tokens, logprobs = list(sequence.tokens), list(sequence.logprobs or [])
        return Sampled(tokens, logprobs, [self.version] * len(tokens), sequence.stop_reason == "stop")


@dataclass
class Trajectory:
    """An episode as one sequence. Lists have an entry for each token; `mask` is true where the policy sampled it."""

    tokens: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    reward: float = 0.0
    turns: int = 0
    answer_tokens: int = 0
    """Tokens of the last answer."""
    truncated: bool = False
    """Whether the last answer was truncated, or no context was left."""
    failed: bool = False
    """Whether the episode failed; the tokens are those before the failure."""
    metrics: dict[str, float] = field(default_factory=dict)
    task: int = -1
    """Index of the task in the suite."""
    baseline: float | None = None
    """Reward of the greedy answer to the task, if the estimator needs it."""
    squares: list[float] = field(default_factory=list)
    """Sum of the squared probabilities of the vocabulary at each token, if the estimator needs it."""

    def observe(self, tokens: list[int]) -> None:
        """Adds tokens that the policy reads."""
        self.tokens += tokens
        self.mask += [False] * len(tokens)
        self.logprobs += [0.0] * len(tokens)
        self.versions += [0] * len(tokens)

    def act(self, sampled: Sampled) -> None:
        """Adds tokens that the policy sampled."""
        self.tokens += sampled.tokens
        self.mask += [True] * len(sampled.tokens)
        self.logprobs += sampled.logprobs
        self.versions += sampled.versions
        self.turns += 1
        self.answer_tokens = len(sampled.tokens)
        self.truncated = not sampled.stopped

    def so_far(self) -> Trajectory:
        """Returns a copy up to the last sampled token; safe while an abandoned thread still writes to the original."""
        # Versions are written last, so that all other lists have at least as many entries.
        versions = list(self.versions)
        mask = self.mask[: len(versions)]
        count = max((at + 1 for at, own in enumerate(mask) if own), default=0)
        return replace(
            self,
            tokens=self.tokens[:count],
            mask=mask[:count],
            logprobs=self.logprobs[:count],
            versions=versions[:count],
            metrics=dict(self.metrics),
        )

    @property
    def sampled(self) -> int:
        """Returns how many tokens were sampled."""
        return sum(self.mask)

    @property
    def oldest(self) -> int:
        """Returns the oldest version among the sampled tokens."""
        return min(version for version, own in zip(self.versions, self.mask, strict=True) if own)


def play(
    environment: Environment,
    policy: Policy,
    chat: Chat,
    limits: Limits,
    seed: int,
    begun: list[Trajectory] | None = None,
) -> Trajectory:
    """Plays one episode and closes the environment. `begun` is called with the sequence before it has tokens."""
    trajectory = Trajectory()
    if begun is not None:
        begun.append(trajectory)
    try:
        trajectory.observe(chat.prompt(environment.reset(), environment.tools))
        while True:
            sampled = policy.sample(trajectory.tokens, limits, seed_of(seed, trajectory.turns))
            trajectory.act(sampled)
            outcome = environment.step(chat.decode(sampled.tokens))
            trajectory.reward += outcome.reward
            trajectory.metrics |= outcome.metrics
            if outcome.done or trajectory.turns == limits.max_turns:
                return trajectory
            following = chat.following(sampled.tokens, outcome.messages)
            if len(trajectory.tokens) + len(following) + limits.max_tokens > limits.max_context:
                trajectory.truncated = True
                return trajectory
            trajectory.observe(following)
    finally:
        environment.close()
