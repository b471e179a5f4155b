"""Preference optimization on pairs of answers: DPO, IPO and SimPO, and KTO as a custom loss on the server.

    python -m trainyard.recipes.dpo --folder runs/dpo --data pairs.jsonl --validation held_out.jsonl --loss dpo

The losses of pairs depend on two sequences. A forward pass gives the log-probabilities of both, from which the
derivative of the loss with respect to each follows; a second pass with `cross_entropy` and these derivatives as weights
has the gradient of the loss. KTO scores each answer separately and so runs on the server in one pass, as a loss that
the `tinker` package traces with PyTorch and uploads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Literal

import tinker

from .core import data, datums
from .core.config import ConfigError, check, opt, run_main
from .core.images import model_input
from .core.preferences import Pair, logistic, pairs, sequences
from .core.run import Common, Run, opened

Loss = Literal["dpo", "ipo", "simpo", "kto"]


@dataclass(frozen=True)
class Config(Common):
    """Settings of preference optimization."""

    data: str = opt("", "pairs: records with chosen and rejected (texts or messages), and prompt if they lack it")
    validation: str = opt("", "held-out pairs, for loss and accuracy")
    loss: Loss = opt("dpo", "dpo, ipo, simpo (without a reference), or kto (on the server; needs PyTorch here)")
    beta: float = opt(0.1, "beta: how strongly the policy is held to the reference; for simpo the scale of rewards")
    gamma: float = opt(0.5, "target reward margin of simpo")
    label_smoothing: float = opt(0.0, "probability that the labels of a pair are swapped, for dpo")
    sft_weight: float = opt(0.0, "weight of the cross-entropy per token of the chosen answer, added to the loss")
    batch_size: int = opt(8, "pairs of a step")
    max_length: int = opt(2048, "maximum tokens of an answer with its prompt; longer ones are truncated")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.data != "", "data", "pairs are required")
        check(self.beta > 0, "beta", "must be greater than 0")
        check(0 <= self.label_smoothing < 0.5, "label_smoothing", "must be from 0 to below 0.5")
        check(self.sft_weight >= 0, "sft_weight", "must be at least 0")
        check(self.loss != "kto" or not self.sft_weight, "sft_weight", "kto scores answers, not pairs; choose dpo")
        check(self.batch_size > 0, "batch_size", "must be at least 1")


@dataclass
class Scored:
    """Log-probabilities of both answers of a pair: sums over their tokens, now and under the reference."""

    chosen: float
    rejected: float
    chosen_reference: float = 0.0
    rejected_reference: float = 0.0


def sums(run: Run, batch: Sequence[Pair]) -> list[float]:
    """Returns the log-probability of each answer of `sequences` under the current weights."""
    examples = sequences(batch)
    output = run.training.forward([datums.supervised(example) for example in examples], "cross_entropy").result()
    values = datums.logprobs_of(output)
    return [float(lp @ example.weights[1:]) for lp, example in zip(values, examples, strict=True)]


def reference_sums(reference: tinker.SamplingClient, batch: Sequence[Pair]) -> list[float]:
    """Returns the log-probability of each answer under the reference."""
    examples = sequences(batch)
    pending = [reference.compute_logprobs(model_input(example.tokens)) for example in examples]
    return [
        sum(weight * (lp or 0.0) for weight, lp in zip(example.weights, future.result(), strict=True))
        for example, future in zip(examples, pending, strict=True)
    ]


def scored(now: Sequence[float], reference: Sequence[float] | None) -> list[Scored]:
    """Returns log-probabilities by pair."""
    half = len(now) // 2
    before = reference or [0.0] * len(now)
    return [Scored(now[at], now[at + half], before[at], before[at + half]) for at in range(half)]


def lengths(pair: Pair) -> tuple[float, float]:
    """Returns the numbers of targets of the two answers."""
    return sum(pair.chosen.weights[1:]), sum(pair.rejected.weights[1:])


def judged(pair: Pair, score: Scored, config: Config) -> tuple[float, float, float, float]:
    """Returns the loss, its derivatives with respect to the two log-probabilities, and the margin by which the chosen
    answer is preferred."""
    loss, slope, other, margin = preferred(pair, score, config)
    # Pang et al. 2024, arXiv:2404.19733.
    share = config.sft_weight / lengths(pair)[0]
    return loss - share * score.chosen, slope - share, other, margin


def preferred(pair: Pair, score: Scored, config: Config) -> tuple[float, float, float, float]:
    """Returns the loss of preferences alone, as `judged` does."""
    chosen, rejected = score.chosen - score.chosen_reference, score.rejected - score.rejected_reference
    size, other = lengths(pair)
    if config.loss == "ipo":
        # Azar et al. 2023, on means over tokens, so that long answers do not dominate.
        margin = chosen / size - rejected / other
        gap = margin - 1 / (2 * config.beta)
        return gap * gap, 2 * gap / size, -2 * gap / other, margin
    if config.loss == "simpo":
        # Meng et al. 2024: mean log-probabilities, no reference.
        margin = config.beta * (score.chosen / size - score.rejected / other)
        loss, slope = logistic(margin - config.gamma, 0.0)
        return loss, slope * config.beta / size, -slope * config.beta / other, margin
    # Rafailov et al. 2023.
    margin = config.beta * (chosen - rejected)
    loss, slope = logistic(margin, config.label_smoothing)
    return loss, slope * config.beta, -slope * config.beta, margin


class Pairwise:
    """Losses of pairs, in two passes."""

    def __init__(self, run: Run, config: Config, reference: tinker.SamplingClient | None) -> None:
        self.run, self.config, self.reference = run, config, reference

    def measured(self, batch: Sequence[Pair]) -> tuple[list[tuple[float, float, float, float]], dict[str, float]]:
        reference = reference_sums(self.reference, batch) if self.reference else None
        scores = scored(sums(self.run, batch), reference)
        found = [judged(pair, score, self.config) for pair, score in zip(batch, scores, strict=True)]
        metrics = {
            "loss": mean(loss for loss, *_ in found),
            "margin": mean(margin for *_, margin in found),
            "accuracy": mean(margin > 0 for *_, margin in found),
        }
        return found, metrics

    def step(self, batch: Sequence[Pair], step: int) -> dict[str, float]:
        found, metrics = self.measured(batch)
        slopes = [slope for _, slope, _, _ in found] + [slope for _, _, slope, _ in found]
        # The slope of cross-entropy by a log-probability is minus its weight.
        examples = zip(sequences(batch), slopes, strict=True)
        self.run.training.forward_backward(
            [datums.supervised(example, -slope / len(batch)) for example, slope in examples], "cross_entropy"
        ).result()
        return metrics | (self.run.optimize(step).result().metrics or {})


class Kto:
    """KTO (Ethayarajh et al. 2024) as a custom loss on the server.

    The reference point is the mean log-ratio of the previous batch, at least 0.
    """

    def __init__(self, run: Run, config: Config, reference: tinker.SamplingClient) -> None:
        self.run, self.config, self.reference = run, config, reference
        self.point = float(run.state.get("point", 0.0))
        ranks: dict[str, Literal[0, 1, 2]] = {
            "logprobs": 1, "mask": 1, "reference": 0, "sign": 0, "point": 0, "beta": 0, "scale": 0,
        }  # fmt: skip
        try:
            self.loss = run.service.create_custom_loss(kto, ranks).result()
        except ImportError as error:
            raise ConfigError(f"loss: kto is traced by PyTorch, which is not installed: {error}") from error

    def step(self, batch: Sequence[Pair], step: int) -> dict[str, float]:
        examples, reference = sequences(batch), reference_sums(self.reference, batch)
        signs = [1.0] * len(batch) + [-1.0] * len(batch)
        constants = {"point": self.point, "beta": self.config.beta, "scale": 1 / len(examples)}
        given = [
            datums.datum(
                example.tokens,
                mask=datums.floats(example.weights[1:]),
                **{key: datums.scalar(value) for key, value in {"reference": lp, "sign": sign, **constants}.items()},
            )
            for example, lp, sign in zip(examples, reference, signs, strict=True)
        ]
        pending = self.run.training.forward_backward_custom(given, self.loss)
        stepped = self.run.optimize(step)
        output = pending.result()
        now = [float(lp @ one.weights[1:]) for lp, one in zip(datums.logprobs_of(output), examples, strict=True)]
        ratios = [lp - before for lp, before in zip(now, reference, strict=True)]
        used, self.point = self.point, max(0.0, mean(ratios))
        half = len(batch)
        preferred = [a > b for a, b in zip(ratios[:half], ratios[half:], strict=True)]
        metrics = {"loss": output.metrics["loss:sum"], "accuracy": mean(preferred), "point": used}
        return metrics | (stepped.result().metrics or {})


def kto(logprobs: Any, mask: Any, reference: Any, sign: Any, point: Any, beta: Any, scale: Any) -> Any:
    """One minus the value of an answer; `sign` is 1 for desirable answers and -1 for others."""
    ratio = (logprobs * mask).sum() - reference
    value = (beta * sign * (ratio - point)).sigmoid()
    return scale * (1 - value), {"custom/value:mean": value}


def reference_of(run: Run, config: Config) -> tuple[tinker.SamplingClient | None, str]:
    """Returns the path of the run's initial weights, saved at its first step; simpo needs none."""
    if config.loss == "simpo":
        return None, ""
    path = str(run.state.get("reference") or run.training.save_weights_for_sampler("reference").result().path)
    return run.service.create_sampling_client(model_path=path).result(), path


def main(config: Config) -> None:
    records = data.read(config.data, "data")
    others = data.read(config.validation, "validation") if config.validation else []
    with opened("dpo", config) as run:
        train_set = pairs(records, "data", run.chat, config.max_length)
        held_out = pairs(others, "validation", run.chat, config.max_length) if others else []
        reference, path = reference_of(run, config)
        pairwise = Pairwise(run, config, reference)
        unpaired = Kto(run, config, reference) if config.loss == "kto" and reference else None
        batches = data.batches(len(train_set), config.batch_size, config.seed, run.first_step)
        for step, indices in zip(run.steps(), batches, strict=False):
            metrics: dict[str, float] = {}
            if step == 0 and held_out:
                before = pairwise.measured(held_out)[1]
                metrics |= {f"held_out/{key}_before": value for key, value in before.items()}
            metrics |= (unpaired or pairwise).step([train_set[index] for index in indices], step)
            if held_out and run.evaluates(step):
                metrics |= {f"held_out/{key}": value for key, value in pairwise.measured(held_out)[1].items()}
            run.record(step, metrics, ("loss", "accuracy", "held_out/accuracy"))
            run.after(step, {"reference": path, "point": unpaired.point if unpaired else 0.0})


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.dpo")


if __name__ == "__main__":
    raise SystemExit(cli())
