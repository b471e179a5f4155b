"""One update of a policy: the gradient of an objective for a batch of episodes, in one pass or in two."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import tinker
from tinker import types

from . import datums
from .algorithms import Objective, Rejection
from .losses import Floats, Terms, Tokens, around, computed, kept, kl, without
from .objective import answered, loss_config, policy_datum, sampled_tokens, sampler_kl, scales, weighted
from .rollout import Trajectory


@dataclass
class Batch:
    """Data of an update. Lists have an entry for each sequence, and the lists within them one for each token."""

    trajectories: list[Trajectory]
    advantages: list[list[float]]
    sampler_logprobs: list[list[float]]
    """Log-probabilities at sampling time; those of the trajectories are the denominator of the ratios."""
    now: list[Floats] | None = None
    """Log-probabilities of all tokens but the first under the current weights, if known."""
    references: list[list[float]] | None = None
    """Log-probabilities under the reference, if there is one."""
    shares: list[list[float]] | None = None
    """Where the proximal policy is between the sampling weights (0) and the current ones (1), if it is interpolated."""
    weight_cap: float = np.inf
    """Largest weight of a stale sample where the proximal policy is interpolated."""

    def part(self, places: Sequence[int]) -> Batch:
        return Batch(
            [self.trajectories[at] for at in places],
            [self.advantages[at] for at in places],
            [self.sampler_logprobs[at] for at in places],
            None if self.now is None else [self.now[at] for at in places],
            None if self.references is None else [self.references[at] for at in places],
            None if self.shares is None else [self.shares[at] for at in places],
            self.weight_cap,
        )


class Gradient:
    """A gradient that was requested from the server; the optimizer step may be sent before it is known."""

    def __init__(self, batch: Batch, pending: tinker.APIFuture[types.ForwardBackwardOutput]) -> None:
        self.batch, self.pending = batch, pending
        self.observing: tinker.APIFuture[types.ForwardBackwardOutput] | None = None
        self.means: list[Mean] = []
        self.metrics: dict[str, float] = {}

    def result(self) -> dict[str, float]:
        """Waits for the gradient, and returns its metrics."""
        output = self.pending.result()
        drift = {"sampler_kl": sampler_kl(self.batch.trajectories, output)}
        found = {"loss": output.metrics["loss:sum"]} | drift | self.metrics | self._observed()
        for mean in self.means:
            found[mean.name] = mean.value(output)
            if "loss" in self.metrics:  # The loss was computed here, without what the server added.
                found["loss"] += mean.sign * mean.weight * found[mean.name]
        return found

    def _observed(self) -> dict[str, float]:
        return {"echo": self.observing.result().metrics["loss:sum"]} if self.observing else {}


@dataclass
class Mean:
    """A mean over the positions where the policy sampled, of what the server computes from its whole distributions and
    adds to the loss with a weight, or subtracts from it."""

    name: Literal["entropy", "kl_loss"]
    weight: float
    shares: list[Floats]
    """What each position counts in the mean."""

    @property
    def sign(self) -> int:
        return -1 if self.name == "entropy" else 1

    def asked(self, examples: Sequence[types.Datum]) -> list[types.Datum]:
        """The examples with the input that asks for it."""
        name = "entropy_weights" if self.name == "entropy" else "kl_weights"
        pairs = zip(examples, self.shares, strict=True)
        return [datums.with_weights(one, name, (self.weight * shares).tolist()) for one, shares in pairs]

    def value(self, output: types.ForwardBackwardOutput) -> float:
        found = datums.values_of(output, "entropies" if self.name == "entropy" else "kl")
        return float(sum(shares @ values for shares, values in zip(self.shares, found, strict=True)))


class Updates:
    """Requests the gradients of an objective."""

    def __init__(
        self,
        training: tinker.TrainingClient,
        objective: Objective,
        rejection: Rejection,
        max_tokens: int,
        mask_truncated: bool = False,
    ) -> None:
        self.training, self.objective, self.rejection, self.max_tokens = training, objective, rejection, max_tokens
        self.mask_truncated = mask_truncated

    def gradient(self, batch: Batch, chance: random.Random) -> Gradient:
        """Requests the gradient of a batch. `chance` is for losses that leave out tokens at random."""
        factors = scales(batch.trajectories, self.objective.aggregation, self.max_tokens)
        if self.mask_truncated:
            pairs = zip(batch.trajectories, factors, strict=True)
            factors = [0.0 if one.truncated else factor for one, factor in pairs]
        if self.objective.one_pass and not self.rejection.active and batch.shares is None:
            return self._in_one_pass(batch, factors)
        return self._in_two_passes(batch, factors, chance)

    def _in_one_pass(self, batch: Batch, factors: Sequence[float]) -> Gradient:
        examples = [
            policy_datum(one, [factor * value for value in values], self.objective)
            for one, values, factor in zip(batch.trajectories, batch.advantages, factors, strict=True)
        ]
        found = self._requested(batch, factors, examples, _name(self.objective), loss_config(self.objective))
        observers = [one for one in batch.trajectories if any(answered(one))]
        if self.objective.echo and observers:
            count = sum(one.sampled for one in observers)
            rows = weighted(observers, np.zeros(count), self._observed(batch))
            # Gradients add up until the optimizer step.
            found.observing = self.training.forward_backward(rows, "cross_entropy")
        return found

    def _in_two_passes(self, batch: Batch, factors: Sequence[float], chance: random.Random) -> Gradient:
        now = batch.now or forward(self.training, batch.trajectories)
        tokens = sampled_tokens(batch.trajectories, now, batch.advantages, factors, batch.references)
        metrics: dict[str, float] = {}
        if batch.shares is not None:
            tokens, weights = around(tokens, _of_sampled(batch, batch.shares), batch.weight_cap)
            metrics |= {"weight": float(weights.mean()), "weight_max": float(weights.max())} if weights.size else {}
        if self.rejection.active:
            sampled = replace(tokens, old=_of_sampled(batch, batch.sampler_logprobs))
            learned = kept(sampled, self.rejection)
            tokens = without(tokens, learned)
            metrics["rejected"] = 1 - float(learned.mean()) if learned.size else 0.0
        terms = computed(tokens, self.objective, chance)
        metrics |= _described(tokens, terms)
        slopes = terms.slopes
        if self.objective.estimates_kl:
            beside = kl(tokens, self.objective.kl_estimator)
            slopes = slopes + self.objective.kl_loss * beside.slopes
            metrics["kl_loss"] = float(beside.values.sum())
            metrics["loss"] += self.objective.kl_loss * metrics["kl_loss"]
        observed = self._observed(batch)
        rows = weighted(batch.trajectories, -slopes, observed)
        found = self._requested(batch, factors, rows, "cross_entropy")
        found.metrics = metrics
        if observed:
            seen = [np.asarray(answered(one)[1:], np.bool_) for one in batch.trajectories]
            found.metrics["echo"] = -observed * float(sum(p[mask].sum() for p, mask in zip(now, seen, strict=True)))
        return found

    def _requested(
        self,
        batch: Batch,
        factors: Sequence[float],
        examples: list[types.Datum],
        loss: types.LossFnType,
        config: dict[str, Any] | None = None,
    ) -> Gradient:
        """The gradient of a loss on the batch's examples, with the means that the objective has besides."""
        pairs = zip(batch.trajectories, factors, strict=True)
        shares: list[Floats] = [factor * np.asarray(one.mask[1:], np.float64) for one, factor in pairs]
        means = [Mean(name, weight, shares) for name, weight in self.objective.means if weight]
        for mean in means:
            examples = mean.asked(examples)
        found = Gradient(batch, self.training.forward_backward(examples, loss, config))
        found.means = means
        return found

    def _observed(self, batch: Batch) -> float:
        """The weight of each token that the environment added: the loss is their mean times `echo`."""
        count = sum(sum(answered(one)) for one in batch.trajectories)
        return self.objective.echo / count if count else 0.0


def forward(training: tinker.TrainingClient, trajectories: Sequence[Trajectory]) -> list[Floats]:
    """Returns the log-probability of each token but the first of each sequence."""
    output = training.forward([datums.datum(one.tokens) for one in trajectories], "cross_entropy").result()
    return datums.logprobs_of(output)


def _of_sampled(batch: Batch, lists: Sequence[Sequence[float]]) -> Floats:
    """The entries of sampled tokens."""
    every = zip(batch.trajectories, lists, strict=True)
    return np.asarray([value for one, own in every for value, on in zip(own, one.mask, strict=True) if on], np.float64)


def _described(tokens: Tokens, terms: Terms) -> dict[str, float]:
    """The loss, and the share of the tokens with an advantage that have no slope."""
    counted = (tokens.advantages * tokens.scale) != 0
    still = float((terms.slopes[counted] == 0).mean()) if counted.any() else 0.0
    return {"loss": float(terms.values.sum()), "clipped": still}


def _name(objective: Objective) -> types.LossFnType:
    name = objective.loss
    assert name in ("importance_sampling", "ppo", "cispo", "gspo"), "one_pass is true of these alone"
    return name
