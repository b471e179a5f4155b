"""Episodes that may fail: their time limit, repeated attempts, and how many failures a run tolerates."""

from __future__ import annotations

import functools
import itertools
import json
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path

import tinker

from ..envs import AnyEpisode
from .agents import Proxy, Refused, play_any
from .chat import Chat
from .config import ConfigError, RecipeError, described
from .rollout import Limits, Policy, Sampled, Trajectory
from .threads import EpisodeTimeout, Threads

WINDOW = 200
"""Number of latest episodes to which the fraction `limits.failures` applies."""
ROW = 30
"""Consecutive unusable groups after which a run ends, whatever the fraction of failures."""
FIRST_DELAY, LONGEST_DELAY = 1.0, 30.0
"""Seconds before an episode is retried: the first delay, doubled up to the longest."""

Group = list[Trajectory]
Make = Callable[[], AnyEpisode]


class Abandoned(Refused):
    """The episode has ended: its thread gets no more answers of the model."""


@dataclass
class Episode:
    """The sequences of an episode, and the error that ended it if it failed."""

    trajectories: list[Trajectory]
    error: BaseException | None = None

    @property
    def timed_out(self) -> bool:
        return isinstance(self.error, EpisodeTimeout)


class Lease:
    """The policy as one episode sees it. Errors of the policy are recorded, to distinguish them from errors of the
    environment."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.sampling = self.ended = False
        self.error: Exception | None = None

    def sample(self, prompt: Sequence[int], limits: Limits, seed: int) -> Sampled:
        self._check()
        self.sampling = True
        try:
            sampled = self.policy.sample(prompt, limits, seed)
        except Exception as error:
            self.error = error
            raise
        finally:
            self.sampling = False
        self._check()
        return sampled

    def _check(self) -> None:
        if self.ended:
            raise Abandoned("the episode is over")

    @property
    def broken(self) -> Exception | None:
        """Returns an error of the policy that is unrelated to the episode, such as a lost server."""
        return None if self.error is None or blames_request(self.error) else self.error


class Episodes:
    """Plays episodes, each in a thread of its own, which is abandoned at its time limit.

    An abandoned thread can't be stopped: it continues until the environment returns, and then closes the environment.
    """

    def __init__(self, chat: Chat, limits: Limits) -> None:
        self.chat, self.limits = chat, limits
        self.proxy = Proxy()
        self.threads = Threads()

    def play(self, make: Make, policy: Policy, seed: int) -> Episode:
        """Plays one episode, and retries it after errors that `limits.retry_on` names. Errors of the policy are
        raised."""
        for attempt in itertools.count():
            lease = Lease(policy)
            begun: list[Trajectory] = []
            try:
                trajectories = self._within(lease, functools.partial(self._play, make, lease, seed, begun))
            except (ConfigError, CancelledError):
                raise
            except (Exception, SystemExit) as error:
                if lease.broken is error:
                    raise
                if lease.broken is not None:
                    raise lease.broken from error
                if attempt < self.limits.retries and is_named(error, self.limits.retry_on):
                    self.threads.pause(min(FIRST_DELAY * 2.0**attempt, LONGEST_DELAY))
                    continue
                return Episode([one.so_far() for one in begun], error)
            if lease.broken is not None:
                raise lease.broken
            return Episode(trajectories)
        raise AssertionError("unreachable: attempts are counted without a limit")

    def _play(self, make: Make, lease: Lease, seed: int, begun: list[Trajectory]) -> list[Trajectory]:
        return play_any(make(), self.proxy, lease, self.chat, self.limits, seed, begun)

    def _within(self, lease: Lease, work: Callable[[], list[Trajectory]]) -> list[Trajectory]:
        try:
            return self.threads.within(self.limits.seconds, work, lambda: self._late(lease))
        finally:
            lease.ended = True

    def _late(self, lease: Lease) -> str:
        busy = "the model" if lease.sampling else "the environment"
        return f"no end after limits.seconds = {self.limits.seconds:g} s, still waiting for {busy}"

    def close(self) -> None:
        """Abandons the episodes that are being played."""
        self.threads.close()
        self.proxy.close()

    def __enter__(self) -> Episodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def blames_request(error: Exception) -> bool:
    """Returns whether the server refused a request because of its content, such as a prompt beyond the model's
    context."""
    if isinstance(error, tinker.RequestFailedError):
        return error.category is tinker.types.RequestErrorCategory.User
    return isinstance(error, tinker.BadRequestError | tinker.UnprocessableEntityError)


def is_named(error: BaseException, names: Sequence[str]) -> bool:
    """Returns whether an exception, or one of its base classes, has one of these names, with or without its module."""
    kinds = type(error).__mro__
    return any(name in (kind.__name__, f"{kind.__module__}.{kind.__qualname__}") for kind in kinds for name in names)


@dataclass
class Tally:
    """Counts failed episodes, decides whether their groups are used, and ends a run in which too many fail."""

    limits: Limits
    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))
    row: int = 0
    shown: bool = False

    def group(self, task: int, episodes: Sequence[Episode], prefix: str) -> Group | None:
        """Returns the sequences to train on, or `None` if the group is dropped."""
        failed = [one for one in episodes if one.error is not None]
        for one in failed:
            self._report(task, one, prefix)
        self.recent += [one.error is not None for one in episodes]
        scored = self._scored(episodes) if self.limits.failed == "score" or not failed else []
        if not scored and not failed:
            raise ConfigError("environment: no episode of a task called the model")
        self.row = 0 if scored else self.row + 1
        self._check(failed)
        return scored or None

    def _scored(self, episodes: Sequence[Episode]) -> Group:
        group: Group = []
        for number, episode in enumerate(episodes):
            answers = max((one.answers for one in episode.trajectories), default=0)
            for one in episode.trajectories:
                one.episode, one.answers = number, answers
                if episode.error is not None:
                    one.failed, one.reward = True, self.limits.failure_reward
                if one.sampled:
                    group.append(one)
        return group

    def _check(self, failed: Sequence[Episode]) -> None:
        count = sum(self.recent)
        if not failed or (count <= self.limits.failures * WINDOW and self.row < ROW):
            return
        error = failed[-1].error
        if count > self.limits.failures * WINDOW:
            found = f"{count} of the last {len(self.recent)} episodes failed"
            allowed = f"limits.failures = {self.limits.failures:g} allows {self.limits.failures * WINDOW:g} of {WINDOW}"
        else:
            found, allowed = f"{self.row} consecutive groups had failed episodes", f"at most {ROW - 1} are replaced"
        raise RecipeError(f"{found}, {allowed}; the last error: {described(error)}; {self._file} has all") from error

    @property
    def _file(self) -> Path:
        return self.folder / "failures.jsonl"

    def _report(self, task: int, episode: Episode, prefix: str) -> None:
        """Adds an error to the run's `failures.jsonl`; the first one is shown too."""
        error = episode.error
        if not self.shown:
            self.shown = True
            print(f"an episode of task {task} failed: {described(error)}; see {self._file}", file=sys.stderr)
        self.counts[f"{prefix}/failed"] += 1
        self.counts[f"{prefix}/timed_out"] += episode.timed_out
        text = "".join(traceback.format_exception(error))
        line = {"time": time.time(), "task": task, "set": prefix, "error": described(error), "traceback": text}
        with self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def metrics(self, prefix: str) -> dict[str, float]:
        """Returns how many episodes failed, and how many of these timed out, since the last call with this prefix."""
        found = {f"{prefix}/{name}": float(self.counts[f"{prefix}/{name}"]) for name in ("failed", "timed_out")}
        for name in found:
            del self.counts[name]
        return found
