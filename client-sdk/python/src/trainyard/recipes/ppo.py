"""PPO with a critic: generalised advantage estimation on the values of a second model.

    python -m trainyard.recipes.ppo --folder runs/ppo --environment.name arithmetic --tasks 32 --steps 50

The critic is a model with a scalar head, an extension of this server. Rewards come from the environment, from a model
that `reward_model` trained, or both; `kl` takes the distance to a reference from the reward of each token.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev, pvariance

import tinker
from tinker import types

from .core import data, datums
from .core.algorithms import Aggregation
from .core.config import check, opt, run_main
from .core.episodes import (
    Player,
    Playing,
    load_suites,
    log_ratios,
    mean_of,
    reference_logprobs,
    sampler,
    snapshot,
    summary,
)
from .core.objective import sampler_kl, scales
from .core.rollout import Trajectory
from .core.run import Adam, Run, opened
from .core.seeds import seed_of
from .core.values import VALUE_MSE, valued, values_of


@dataclass(frozen=True)
class CriticConfig:
    """The value model."""

    model: str = opt("", "its base model, with the tokenizer of the policy's; default: that of the policy")
    load: str = opt("", "tinker:// path of a training checkpoint to start from; default: the base model")
    rank: int = opt(32, "rank of its LoRA adapter; 0 trains all parameters if the server supports that")
    adam: Adam = opt(Adam(), "")
    value_clip: float = opt(
        0.2, "largest change of a value in a step, beyond which its gradient is zero; 0 does not clip"
    )
    warmup_steps: int = opt(0, "initial steps in which only the critic is trained")

    def __post_init__(self) -> None:
        check(self.rank >= 0, "critic.rank", "must be at least 0")
        check(not (self.load and self.model), "critic.model", "the checkpoint of critic.load has its own base model")
        check(self.value_clip >= 0, "critic.value_clip", "must be at least 0")


@dataclass(frozen=True)
class Config(Playing):
    """Settings of PPO."""

    critic: CriticConfig = opt(CriticConfig(), "")
    tasks: int = opt(32, "tasks of a step")
    episodes: int = opt(1, "episodes of each task")
    gamma: float = opt(1.0, "discount factor per token (gamma)")
    gae_lambda: float = opt(0.95, "lambda of GAE: 1 relies on rewards, 0 on the critic")
    whiten: bool = opt(True, "normalise the advantages of a step to mean 0 and standard deviation 1")
    clip_low: float = opt(0.2, "the smallest ratio is 1 - clip_low")
    clip_high: float = opt(0.2, "the largest ratio is 1 + clip_high")
    aggregation: Aggregation = opt("token", "mean over tokens, sequences or tasks, or a constant divisor")
    epochs: int = opt(1, "passes over the samples of a step")
    minibatches: int = opt(1, "optimizer updates of an epoch")
    kl: float = opt(0.0, "weight of the KL to the reference, subtracted from the rewards of tokens")
    reference: str = opt("", "tinker:// path of the reference's sampler weights; default: the base model")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.tasks > 0, "tasks", "must be at least 1")
        check(self.episodes > 0, "episodes", "must be at least 1")
        check(0 <= self.gamma <= 1, "gamma", "from 0 to 1")
        check(0 <= self.gae_lambda <= 1, "gae_lambda", "from 0 to 1")
        check(0 <= self.clip_low <= 1, "clip_low", "from 0 to 1")
        check(self.clip_high >= 0, "clip_high", "must be at least 0")
        check(self.epochs > 0, "epochs", "must be at least 1")
        check(0 < self.minibatches <= self.tasks * self.episodes, "minibatches", "must be from 1 to tasks * episodes")
        check(self.kl >= 0, "kl", "must be at least 0")


@dataclass
class Scored:
    """An episode with what PPO needs of each of its tokens; entries of tokens that were not sampled are 0."""

    trajectory: Trajectory
    values: list[float]
    """The critic's value before the token is sampled."""
    advantages: list[float]
    returns: list[float]


def estimated(
    trajectory: Trajectory, rewards: Sequence[float], values: Sequence[float], gamma: float, lam: float
) -> Scored:
    """Generalised advantage estimation (Schulman et al. 2016) over the sampled tokens, of all turns; after the last of
    them nothing more is expected."""
    count = len(trajectory.tokens)
    scored = Scored(trajectory, [0.0] * count, [0.0] * count, [0.0] * count)
    following, running = 0.0, 0.0
    for at in reversed(range(count)):
        if trajectory.mask[at]:
            running = rewards[at] + gamma * following - values[at] + gamma * lam * running
            following = values[at]
            scored.values[at], scored.advantages[at], scored.returns[at] = values[at], running, running + values[at]
    return scored


def token_rewards(trajectory: Trajectory, distances: dict[int, float], kl: float) -> list[float]:
    """The episode's reward at its last sampled token, and the punishment of the distance to the reference at each."""
    rewards = [0.0] * len(trajectory.tokens)
    for at, distance in distances.items():
        rewards[at] -= kl * distance
    last = max(at for at, own in enumerate(trajectory.mask) if own)
    rewards[last] += trajectory.reward
    return rewards


def whiten(batch: Sequence[Scored]) -> None:
    """Shifts and scales all advantages to mean 0 and standard deviation 1."""
    every = sampled(batch, [one.advantages for one in batch])
    center, scale = fmean(every), pstdev(every) or 1.0
    for one in batch:
        one.advantages = [
            (value - center) / scale if own else 0.0
            for value, own in zip(one.advantages, one.trajectory.mask, strict=True)
        ]


def sampled(batch: Sequence[Scored], lists: Sequence[Sequence[float]]) -> list[float]:
    """The entries of sampled tokens."""
    return [
        value
        for one, values in zip(batch, lists, strict=True)
        for value, own in zip(values, one.trajectory.mask, strict=True)
        if own
    ]


class Learner:
    """Turns episodes into updates of the policy and of the critic."""

    def __init__(self, run: Run, config: Config) -> None:
        self.run, self.config = run, config
        self.critic = run.add_critic("critic", config.critic.load, config.critic.rank, config.critic.model)
        self.reference: tinker.SamplingClient | None = sampler(run, config.reference) if config.kl else None

    def values(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """What the critic expects before each token: the value of the token before it."""
        found = values_of(self.critic, [one.tokens[:-1] for one in trajectories])
        return [[0.0, *values.tolist()] for values in found]

    def score(self, trajectories: Sequence[Trajectory]) -> tuple[list[Scored], dict[str, float]]:
        """Values, advantages and returns under the critic as it is now."""
        config = self.config
        distances: list[dict[int, float]] = [{} for _ in trajectories]
        if self.reference:
            distances = log_ratios(trajectories, reference_logprobs(self.reference, trajectories))
        batch = [
            estimated(one, token_rewards(one, own, config.kl), values, config.gamma, config.gae_lambda)
            for one, own, values in zip(trajectories, distances, self.values(trajectories), strict=True)
        ]
        values, returns = sampled(batch, [one.values for one in batch]), sampled(batch, [one.returns for one in batch])
        spread = pvariance(returns)
        errors = [expected - value for expected, value in zip(returns, values, strict=True)]
        metrics = {
            "value": fmean(values),
            "return": fmean(returns),
            "explained_variance": 1 - pvariance(errors) / spread if spread else 0.0,
        }
        if self.reference:
            metrics["kl"] = mean_of(distances)
        if config.whiten:
            whiten(batch)
        return batch, metrics

    def corrected(self, batch: Sequence[Scored]) -> dict[str, float]:
        """For recipes whose samples are older than the weights: may change log-probabilities and advantages."""
        return {}

    def update(self, step: int, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """The optimizer steps of both models on the episodes of a step."""
        batch, metrics = self.score(trajectories)
        metrics |= self.corrected(batch)
        size = -(-len(batch) // self.config.minibatches)
        for epoch in range(self.config.epochs):
            order = list(range(len(batch)))
            random.Random(seed_of(self.config.seed, step, epoch, "minibatches")).shuffle(order)
            for first in range(0, len(order), size):
                metrics |= self.apply(step, [batch[at] for at in sorted(order[first : first + size])])
        return metrics

    def apply(self, step: int, batch: Sequence[Scored]) -> dict[str, float]:
        """One optimizer step of each model; the server computes both at the same time."""
        config = self.config
        critic = self.critic.forward_backward(self.critic_examples(batch), VALUE_MSE, self.critic_loss)
        critic_step = self.critic.optim_step(config.critic.adam.at(step, config.steps))
        metrics: dict[str, float] = {}
        if step >= config.critic.warmup_steps:
            clips = {"clip_low_threshold": 1 - config.clip_low, "clip_high_threshold": 1 + config.clip_high}
            policy = self.run.training.forward_backward(self.policy_examples(batch), "ppo", clips)
            policy_step = self.run.optimize(step)
            output = policy.result()
            drift = sampler_kl([one.trajectory for one in batch], output)
            metrics |= {"loss": output.metrics["loss:sum"], "sampler_kl": drift}
            metrics |= policy_step.result().metrics or {}
        metrics["value_loss"] = critic.result().metrics["loss:sum"]
        found = critic_step.result().metrics or {}
        return metrics | {f"critic/{key}": value for key, value in found.items()}

    @property
    def critic_loss(self) -> dict[str, float | str] | None:
        clip = self.config.critic.value_clip
        return {"value_clip": clip} if clip else None

    def critic_examples(self, batch: Sequence[Scored]) -> list[types.Datum]:
        """The loss is the mean over the sampled tokens."""
        share = 1 / max(sum(one.trajectory.sampled for one in batch), 1)
        clips = self.config.critic.value_clip > 0
        return [
            valued(
                one.trajectory.tokens[:-1],
                one.returns[1:],
                [share * own for own in one.trajectory.mask[1:]],
                one.values[1:] if clips else None,
            )
            for one in batch
        ]

    def policy_examples(self, batch: Sequence[Scored]) -> list[types.Datum]:
        trajectories = [one.trajectory for one in batch]
        factors = scales(trajectories, self.config.aggregation, self.config.limits.max_tokens)
        return [
            datums.policy(one.trajectory.tokens, one.trajectory.logprobs, [factor * value for value in one.advantages])
            for one, factor in zip(batch, factors, strict=True)
        ]


def main(config: Config) -> None:
    suites = load_suites(config)
    with opened("ppo", config) as run:
        player, learner = Player(run, config, suites), Learner(run, config)
        taken = int(run.state.get("tasks", run.first_step * config.tasks))
        tasks = data.Tasks(len(player.suite), config.seed, taken)
        for step in run.steps():
            policy = snapshot(run, step)
            metrics: dict[str, float] = {}
            if step == 0 and config.eval_tasks:
                metrics |= {f"{key}_before": value for key, value in player.held_out(policy).items()}
            groups = player.play_full(policy, tasks, config.tasks, seed_of(config.seed, step), config.episodes)
            metrics |= summary(groups) | player.tally.metrics("env")
            metrics |= learner.update(step, [one for group in groups for one in group])
            if config.eval_tasks and run.evaluates(step):
                metrics |= player.held_out(snapshot(run, step + 1))
            run.record(step, metrics, ("reward", "held_out/reward", "explained_variance"))
            run.after(step, {"tasks": tasks.taken})


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.ppo")


if __name__ == "__main__":
    raise SystemExit(cli())
