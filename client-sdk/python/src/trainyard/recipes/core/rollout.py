"""Episodes: a policy and an environment take turns; the result is tokens with the data that training needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import tinker
from tinker import types

from ..envs import Environment, Game
from .chat import Chat
from .config import ConfigError, check, opt
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
    sequences: Literal["episode", "answer"] = opt(
        "episode", "episode: one sequence, sampled tokens are never encoded again; answer: one for each answer"
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
    episode: int | None = None
    """Number of the episode in its group; an episode may have several sequences."""
    agent: str = ""
    """Name of the agent whose sequence it is, in a game."""
    starts: list[int] = field(default_factory=list)
    """Index of the first token of each answer."""
    numbers: list[int] = field(default_factory=list)
    """Number of each answer among all of the episode, from 0."""
    answers: int = 0
    """Answers of the episode, also of its other sequences."""

    def observe(self, tokens: list[int]) -> None:
        """Adds tokens that the policy reads."""
        self.tokens += tokens
        self.mask += [False] * len(tokens)
        self.logprobs += [0.0] * len(tokens)
        self.versions += [0] * len(tokens)

    def act(self, sampled: Sampled, number: int | None = None) -> None:
        """Adds tokens that the policy sampled. `number` is that of the answer, if the episode has several sequences."""
        self.starts.append(len(self.tokens))
        self.numbers.append(self.turns if number is None else number)
        self.answers = self.numbers[-1] + 1
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
        starts = [start for start in self.starts if start < count]
        return replace(
            self,
            starts=starts,
            numbers=self.numbers[: len(starts)],
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

    def later_answers(self) -> list[int]:
        """Returns for each token how many answers of the episode begin after it."""
        ends = [*self.starts[1:], len(self.tokens)] if self.starts else []
        first = self.starts[0] if self.starts else len(self.tokens)
        found = [self.answers] * first
        for start, end, number in zip(self.starts, ends, self.numbers, strict=True):
            found += [self.answers - 1 - number] * (end - start)
        return found

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


def play_by_answers(
    environment: Environment,
    policy: Policy,
    chat: Chat,
    limits: Limits,
    seed: int,
    begun: list[Trajectory] | None = None,
) -> list[Trajectory]:
    """Plays one episode as `play` does, with a sequence for each answer: its prompt is the conversation so far as the
    chat template renders it, which may leave out the reasoning of earlier answers."""
    sequences = [] if begun is None else begun
    reward, metrics = 0.0, dict[str, float]()
    try:
        messages = environment.reset()
        while True:
            prompt = chat.prompt(messages, environment.tools)
            if sequences and len(prompt) + limits.max_tokens > limits.max_context:
                sequences[-1].truncated = True
                break
            number = len(sequences)
            sequences.append(Trajectory())
            sequences[-1].observe(prompt)
            sampled = policy.sample(prompt, limits, seed_of(seed, number))
            sequences[-1].act(sampled, number)
            reply = chat.decode(sampled.tokens)
            outcome = environment.step(reply)
            reward += outcome.reward
            metrics |= outcome.metrics
            if outcome.done or len(sequences) == limits.max_turns:
                break
            messages = [*messages, {"role": "assistant", "content": reply}, *outcome.messages]
    finally:
        environment.close()
    share(sequences, reward, metrics)
    for one in sequences:
        one.truncated = sequences[-1].truncated
    return sequences


def play_game(
    game: Game,
    policy: Policy,
    chat: Chat,
    limits: Limits,
    seed: int,
    begun: list[Trajectory] | None = None,
) -> list[Trajectory]:
    """Plays one game and closes it. Each agent that had a turn has a sequence, with its own reward."""
    if limits.sequences == "answer":
        raise ConfigError("limits.sequences: answer is not available for games, in which each agent has one sequence")
    if limits.max_turns == 1:
        raise ConfigError("limits.max_turns: a game has more than one answer")
    sequences = [] if begun is None else begun
    of_agent = dict[str, tuple[Trajectory, list[int]]]()
    rewards, metrics = Counter[str](), dict[str, float]()
    try:
        turn = game.reset()
        for number in range(limits.max_turns):
            own, last = of_agent.get(turn.agent, (None, []))
            following = chat.following(last, turn.messages) if own else chat.prompt(turn.messages, None)
            if own is None:
                own = Trajectory(agent=turn.agent)
                sequences.append(own)
            elif len(own.tokens) + len(following) + limits.max_tokens > limits.max_context:
                own.truncated = True
                break
            own.observe(following)
            sampled = policy.sample(own.tokens, limits, seed_of(seed, number))
            own.act(sampled, number)
            of_agent[turn.agent] = own, sampled.tokens
            turn = game.step(chat.decode(sampled.tokens))
            rewards.update(turn.rewards)
            metrics |= turn.metrics
            if turn.done:
                break
    finally:
        game.close()
    for one in sequences:
        one.reward, one.metrics = rewards[one.agent], metrics
    return sequences


def share(sequences: Sequence[Trajectory], reward: float, metrics: dict[str, float]) -> None:
    """Gives all sequences of an episode its reward and metrics."""
    for one in sequences:
        one.reward, one.metrics = reward, metrics


def by_agent(group: Sequence[Trajectory]) -> dict[str, list[int]]:
    """Returns the places of each agent's sequences in a group; outside games, all are those of one agent."""
    found: dict[str, list[int]] = {}
    for at, one in enumerate(group):
        found.setdefault(one.agent, []).append(at)
    return found


def by_episode(group: Sequence[Trajectory]) -> list[list[int]]:
    """Returns the places of each episode's sequences in a group, of each agent by itself, in the order of their last
    answers."""
    found: dict[tuple[int, str], list[int]] = {}
    for at, one in enumerate(group):
        # A sequence without a number is an episode of its own.
        found.setdefault((-1 - at if one.episode is None else one.episode, one.agent), []).append(at)
    return [sorted(places, key=lambda at: max(group[at].numbers, default=-1)) for places in found.values()]


def last_of_episodes(group: Sequence[Trajectory]) -> list[Trajectory]:
    """Returns the sequence of each episode and agent that has its last answer."""
    return [group[places[-1]] for places in by_episode(group)]
