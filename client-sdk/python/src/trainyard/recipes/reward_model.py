"""A reward model from preferences: Bradley-Terry on the value of the last token.

    python -m trainyard.recipes.reward_model --folder runs/rm --data pairs.jsonl --validation held_out.jsonl --steps 100

The model has a scalar head, an extension of this server. `final.json` has the path that `ppo` and `grpo` take as
`reward_model`. As in `dpo`, a forward pass gives the rewards of both answers of a pair, from which the slopes of the
loss follow, and a second pass with these as weights has its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from .core import data
from .core.config import check, opt, run_main
from .core.preferences import Pair, logistic, pairs, sequences
from .core.run import Common, Run, opened
from .core.values import last_values, sloped


@dataclass(frozen=True)
class Config(Common):
    """Settings of reward models."""

    data: str = opt("", "pairs: records with chosen and rejected (texts or messages), and prompt if they lack it")
    validation: str = opt("", "held-out pairs, for loss and accuracy")
    label_smoothing: float = opt(0.0, "probability that the labels of a pair are swapped")
    centering: float = opt(0.0, "weight of the squared sum of a pair's rewards, which keeps them around 0")
    batch_size: int = opt(16, "pairs of a step")
    max_length: int = opt(2048, "maximum tokens of an answer with its prompt; longer ones are truncated")

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.data != "", "data", "pairs are required")
        check(0 <= self.label_smoothing < 0.5, "label_smoothing", "must be from 0 to below 0.5")
        check(self.centering >= 0, "centering", "must be at least 0")
        check(self.batch_size > 0, "batch_size", "must be at least 1")


@dataclass
class Judged:
    """A pair's rewards, its loss, and the slopes of this by the rewards."""

    chosen: float
    rejected: float
    loss: float
    slopes: tuple[float, float]


def judged(chosen: float, rejected: float, config: Config) -> Judged:
    """-log sigmoid(chosen - rejected) (Bradley and Terry 1952; Ouyang et al. 2022), and the centering term of
    Eisenstein et al. 2023."""
    loss, slope = logistic(chosen - rejected, config.label_smoothing)
    total = chosen + rejected
    pull = 2 * config.centering * total
    return Judged(chosen, rejected, loss + config.centering * total * total, (slope + pull, pull - slope))


def measured(run: Run, batch: Sequence[Pair], config: Config) -> tuple[list[Judged], dict[str, float]]:
    """The pairs under the current weights, and means over them."""
    rewards = last_values(run.training, [example.tokens for example in sequences(batch)])
    found = [judged(rewards[at], rewards[at + len(batch)], config) for at in range(len(batch))]
    metrics = {
        "loss": mean(one.loss for one in found),
        "accuracy": mean(one.chosen > one.rejected for one in found),
        "margin": mean(one.chosen - one.rejected for one in found),
        "reward": mean((one.chosen + one.rejected) / 2 for one in found),
    }
    return found, metrics


def update(run: Run, batch: Sequence[Pair], config: Config, step: int) -> dict[str, float]:
    """One step on a batch; metrics are those before it."""
    found, metrics = measured(run, batch, config)
    slopes = [one.slopes[0] for one in found] + [one.slopes[1] for one in found]
    examples = [
        sloped(example.tokens, slope / len(batch)) for example, slope in zip(sequences(batch), slopes, strict=True)
    ]
    pending = run.training.forward_backward(examples, "cross_entropy")
    stepped = run.optimize(step)
    pending.result()
    return metrics | (stepped.result().metrics or {})


def main(config: Config) -> None:
    records = data.read(config.data, "data")
    others = data.read(config.validation, "validation") if config.validation else []
    with opened("reward_model", config, scalar=True) as run:
        train_set = pairs(records, "data", run.chat, config.max_length)
        held_out = pairs(others, "validation", run.chat, config.max_length) if others else []
        batches = data.batches(len(train_set), config.batch_size, config.seed, run.first_step)
        for step, indices in zip(run.steps(), batches, strict=False):
            metrics: dict[str, float] = {}
            if step == 0 and held_out:
                before = measured(run, held_out, config)[1]
                metrics |= {f"held_out/{key}_before": value for key, value in before.items()}
            metrics |= update(run, [train_set[index] for index in indices], config, step)
            if held_out and run.evaluates(step):
                metrics |= {f"held_out/{key}": value for key, value in measured(run, held_out, config)[1].items()}
            run.record(step, metrics, ("loss", "accuracy", "held_out/accuracy"))
            run.after(step)


def cli(argv: Sequence[str] | None = None) -> int:
    return run_main(Config, main, argv, "trainyard.recipes.reward_model")


if __name__ == "__main__":
    raise SystemExit(cli())
