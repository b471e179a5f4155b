"""A training run: the client, its folder with metrics and checkpoints, and how it is resumed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import tinker
from tinker import types

from .chat import Chat, Tokenizer, load_tokenizer
from .config import ConfigError, as_dict, check, flatten, opt
from .images import Vision
from .progress import Progress
from .server import server_url, wait_for
from .sinks import Metrics, lines, open_sinks

MAY_CHANGE = {
    "steps", "save_every", "eval_every", "keep", "sinks", "project", "resume", "concurrency", "limits.seconds",
    "limits.failures", "limits.failed", "limits.failure_reward", "limits.retries", "limits.retry_on",
}  # fmt: skip
"""Settings that may differ when a run is resumed: all others change its results even if no episode fails."""
SCALAR_HEAD = {"trainyard.head": "scalar"}
"""Metadata of a model that computes one number for each position, in place of log-probabilities."""


@dataclass(frozen=True)
class Adam:
    """AdamW and the schedule of its learning rate."""

    learning_rate: float = opt(1e-4, "highest learning rate")
    beta1: float = opt(0.9, "decay of the mean of gradients")
    beta2: float = opt(0.95, "decay of the mean of squared gradients")
    eps: float = opt(1e-8, "added to the denominator")
    weight_decay: float = opt(0.0, "decoupled weight decay")
    grad_clip_norm: float = opt(1.0, "largest norm of the gradient; 0 does not clip")
    warmup_steps: int = opt(0, "steps over which the learning rate rises from 0")
    schedule: Literal["constant", "linear", "cosine"] = opt("constant", "how it falls to 0 until the last step")

    def at(self, step: int, steps: int) -> types.AdamParams:
        """The parameters of step number `step` of `steps`, from 0."""
        factor = min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        done = step / max(steps, 1)
        if self.schedule == "linear":
            factor *= 1 - done
        elif self.schedule == "cosine":
            factor *= 0.5 * (1 + math.cos(math.pi * done))
        return types.AdamParams(
            learning_rate=self.learning_rate * factor,
            beta1=self.beta1,
            beta2=self.beta2,
            eps=self.eps,
            weight_decay=self.weight_decay,
            grad_clip_norm=self.grad_clip_norm,
        )


@dataclass(frozen=True)
class Common:
    """What every training recipe can set."""

    folder: str = opt("", "metrics, settings and the list of checkpoints; a run that is there is resumed")
    model: str = opt("", "base model; the first that the server lists when absent")
    load: str = opt("", "tinker:// path of a training checkpoint to start from, with new optimizer state")
    tokenizer: str = opt("", "folder or hub name of the tokenizer, if not that of the base model")
    rank: int = opt(32, "rank of the LoRA adapter; 0 trains all parameters where the server can")
    train_unembed: bool = opt(True, "whether the adapter covers the unembedding")
    seed: int = opt(0, "seed of the adapter, of the order of data and of samples")
    steps: int = opt(100, "optimizer steps in all")
    save_every: int = opt(20, "steps between checkpoints; the last step always saves")
    keep: int = opt(2, "checkpoints that are kept; older ones are deleted")
    eval_every: int = opt(10, "steps between evaluations; 0 evaluates only at the end")
    resume: bool = opt(True, "whether a run in the folder is continued; false refuses a folder that has one")
    sinks: list[str] = opt([], "further sinks of metrics: wandb, tensorboard, mlflow")
    project: str = opt("trainyard", "project of these sinks")
    adam: Adam = opt(Adam(), "")

    def __post_init__(self) -> None:
        check(self.folder != "", "folder", "a folder for the run is needed")
        check(self.rank >= 0, "rank", "at least 0 is needed")
        check(self.steps > 0, "steps", "at least 1 is needed")
        check(self.save_every > 0, "save_every", "at least 1 is needed")
        check(self.keep > 0, "keep", "at least 1 is needed")


class Run:
    """Clients, tokenizer and folder of a run. `first_step` is where it goes on; `scalar` models have a scalar head."""

    def __init__(self, recipe: str, config: Common, service: tinker.ServiceClient, scalar: bool = False) -> None:
        self.config, self.service, self.scalar = config, service, scalar
        self.folder = Path(config.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        saved = self._saved()
        self.first_step = int(saved[-1]["step"]) if saved else 0
        self.model = config.model or first_model(service)
        self.state: dict[str, Any] = dict(saved[-1]["state"]) if saved else {}
        self.training = self._client(str(saved[-1]["path"]) if saved else "", config.load, config.rank, scalar)
        self._beside: dict[str, str] = dict(saved[-1].get("beside", {})) if saved else {}
        self.beside: dict[str, tinker.TrainingClient] = {}
        named = config.tokenizer
        tokenizer = load_tokenizer(named) if named else cast(Tokenizer, self.training.get_tokenizer())
        self.chat = Chat(tokenizer, functools.partial(Vision.load, named or self.model))
        flat = flatten(as_dict(config))
        self.sinks = open_sinks(config.sinks, config.project, self.folder, self.first_step, flat)
        self.progress = Progress(recipe, config.steps, self.first_step)

    def _client(self, saved: str, load: str, rank: int, scalar: bool) -> tinker.TrainingClient:
        """A model: from a checkpoint of this run, from weights to start with, or from the base model."""
        metadata = SCALAR_HEAD if scalar else None
        if saved:
            return self.service.create_training_client_from_state_with_optimizer(saved).result()
        if load:
            return self.service.create_training_client_from_state(load, user_metadata=metadata).result()
        return self.service.create_lora_training_client(
            self.model,
            rank=rank,
            seed=self.config.seed,
            train_unembed=self.config.train_unembed and not scalar,
            user_metadata=metadata,
        ).result()

    def add_critic(self, name: str, load: str, rank: int) -> tinker.TrainingClient:
        """A second model, with a scalar head, which is saved and resumed with the run's own."""
        self.beside[name] = self._client(self._beside.get(name, ""), load, rank, scalar=True)
        return self.beside[name]

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints.jsonl"

    def _saved(self) -> list[dict[str, Any]]:
        """The run's checkpoints, after a check that its settings are the same."""
        saved = lines(self.checkpoints)
        settings = self.folder / "config.json"
        mine = flatten(as_dict(self.config))
        if saved and not self.config.resume:
            raise ConfigError(f"folder: {self.folder} has a run already, and resume is false")
        if saved and settings.exists():
            theirs = json.loads(settings.read_text())
            for key in sorted(mine.keys() | theirs.keys()):
                if key not in MAY_CHANGE and key != "folder" and mine.get(key) != theirs.get(key):
                    text = f"{theirs.get(key)!r} in the run of {self.folder}, {mine.get(key)!r} now"
                    raise ConfigError(f"{key}: {text}; choose another folder")
        settings.write_text(json.dumps(mine, indent=1))
        return saved

    def steps(self) -> Iterator[int]:
        """The steps that are left."""
        yield from range(self.first_step, self.config.steps)

    def optimize(self, step: int) -> tinker.APIFuture[types.OptimStepResponse]:
        """Applies the gradient with the parameters of a step."""
        return self.training.optim_step(self.config.adam.at(step, self.config.steps))

    def evaluates(self, step: int) -> bool:
        """Whether the model is evaluated after a step."""
        done = step + 1
        return done == self.config.steps or (self.config.eval_every > 0 and done % self.config.eval_every == 0)

    def record(self, step: int, metrics: Metrics, shown: tuple[str, ...] = ()) -> None:
        """Writes a step's metrics; those in `shown` are beside the progress bar."""
        for sink in self.sinks:
            sink.write(step, metrics)
        self.progress.show(step + 1, {key: metrics[key] for key in shown if key in metrics})

    def after(self, step: int, state: dict[str, Any] | None = None) -> None:
        """Saves weights and optimizer state if it is time; `state` is what else the recipe needs to go on."""
        done = step + 1
        if done != self.config.steps and done % self.config.save_every:
            return
        saving = {name: client.save_state(f"step-{done:06d}") for name, client in self.beside.items()}
        path = self.training.save_state(f"step-{done:06d}").result().path
        line: dict[str, Any] = {"step": done, "path": path, "state": state or {}}
        if saving:
            line["beside"] = {name: future.result().path for name, future in saving.items()}
        with self.checkpoints.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._delete_old()

    def _delete_old(self) -> None:
        saved = lines(self.checkpoints)
        for old in saved[: -self.config.keep]:
            for path in (old["path"], *old.get("beside", {}).values()):
                # One that is gone already was deleted before a crash, or by its owner.
                with contextlib.suppress(tinker.NotFoundError):
                    rest().delete_checkpoint_from_tinker_path(path).result()
        kept = "".join(json.dumps(line) + "\n" for line in saved[-self.config.keep :])
        temporary = self.checkpoints.with_suffix(".tmp")
        temporary.write_text(kept)
        temporary.replace(self.checkpoints)

    def publish(self) -> str:
        """Saves the final weights, for sampling unless they have a scalar head; the path is also in `final.json`."""
        if self.scalar:
            kind, path = "reward_model", str(self.training.save_state("final").result().path)
        else:
            kind, path = "sampler", str(self.training.save_weights_for_sampler("final").result().path)
        final = {"model": self.model, kind: path, "steps": self.config.steps}
        (self.folder / "final.json").write_text(json.dumps(final))
        return path

    def published(self) -> str:
        """The path of the final weights, as a finished run has it in its folder."""
        final = json.loads((self.folder / "final.json").read_text())
        return str(final["reward_model" if self.scalar else "sampler"])

    def close(self) -> None:
        self.progress.close()
        for sink in self.sinks:
            sink.close()


@contextlib.contextmanager
def opened(recipe: str, config: Common, scalar: bool = False) -> Iterator[Run]:
    """Opens a run in a session of its own. After the last step its weights are published, and their path is printed."""
    wait_for(server_url(), "TINKER_BASE_URL")
    with tinker.ServiceClient(user_metadata={"recipe": recipe}) as service:
        run = Run(recipe, config, service, scalar)
        try:
            yield run
            # A run that was killed after its last step has no final weights yet.
            if run.first_step < config.steps or not (run.folder / "final.json").exists():
                run.publish()
        finally:
            run.close()
        print(f"{recipe}: {config.steps} steps are done: {run.published()}", flush=True)


def rest() -> tinker.RestClient:
    """A client of the server that the environment names now. One that is made without a name and a key is that of the
    first server, as long as the process lives."""
    url, key = (os.environ.get(name) or None for name in ("TINKER_BASE_URL", "TINKER_API_KEY"))
    return tinker.RestClient(base_url=url, api_key=key)


def first_model(service: tinker.ServiceClient) -> str:
    """The first base model that the server lists."""
    names = [model.model_name for model in rest().get_server_capabilities().result().supported_models]
    name = next((name for name in names if name), None)
    if name is None:
        raise ConfigError("model: the server lists no base model; name one")
    return name


def seed_of(*parts: object) -> int:
    """A seed that depends only on its parts."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4]) >> 1
