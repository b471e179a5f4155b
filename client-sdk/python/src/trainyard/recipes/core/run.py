"""A training run: the client, its folder with metrics and checkpoints, and how it is resumed."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import tinker
from tinker import types

from ..envs import EnvironmentConfig
from .chat import Chat, Tokenizer, load_tokenizer
from .checkpoints import Checkpoints, Direction, Line, Wanted
from .config import ConfigError, as_dict, check, defaults, flatten, opt
from .evals import EvalConfig, Evals, Planned, Server, check_evals, planned
from .images import Vision
from .progress import Progress
from .server import server_url, wait_for
from .sinks import Metrics, open_sinks

MAY_CHANGE = {
    "steps", "save_every", "eval_every", "keep", "sinks", "project", "resume", "concurrency", "limits.seconds",
    "limits.failures", "limits.failed", "limits.failure_reward", "limits.retries", "limits.retry_on", "evals", "best",
    "best_is",
}  # fmt: skip
"""Settings that may differ when a run is resumed; all others change its results."""
SCALAR_HEAD = {"trainyard.head": "scalar"}
"""Metadata of a model with a scalar head: one number per position in place of log-probabilities."""
DEFAULT_ALPHA = 32.0
"""Alpha of adapters that do not set another."""


@dataclass(frozen=True)
class Adam:
    """AdamW and the schedule of its learning rate."""

    learning_rate: float = opt(1e-4, "highest learning rate")
    beta1: float = opt(0.9, "decay rate of the mean of gradients (AdamW's beta 1)")
    beta2: float = opt(0.95, "decay rate of the mean of squared gradients (AdamW's beta 2)")
    eps: float = opt(1e-8, "AdamW's epsilon, added to the denominator")
    weight_decay: float = opt(0.0, "decoupled weight decay")
    grad_clip_norm: float = opt(1.0, "gradient clipping: the largest norm; 0 does not clip")
    warmup_steps: int = opt(0, "warm-up steps, in which the learning rate rises from 0")
    schedule: Literal["constant", "linear", "cosine"] = opt(
        "constant", "schedule by which the learning rate falls to 0 at the last step"
    )

    def at(self, step: int, steps: int) -> types.AdamParams:
        """Returns the parameters of step number `step` of `steps`, counted from 0."""
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
    """Settings of every training recipe."""

    folder: str = opt("", "folder for metrics, settings and the list of checkpoints; an existing run in it is resumed")
    model: str = opt("", "base model; default: the first that the server lists")
    load: str = opt("", "tinker:// path of a training checkpoint to start from, with new optimizer state")
    tokenizer: str = opt("", "folder or hub name of the tokenizer, if not that of the base model")
    rank: int = opt(32, "rank of the LoRA adapter; 0 trains all parameters if the server supports that")
    lora_alpha: float = opt(DEFAULT_ALPHA, "alpha of the adapter, whose scale is alpha / rank")
    rslora: bool = opt(False, "whether the scale is alpha / sqrt(rank) (rsLoRA)")
    train_unembed: bool = opt(True, "whether the adapter covers the unembedding")
    seed: int = opt(0, "seed of the adapter, of the order of data and of samples")
    steps: int = opt(100, "total number of optimizer steps")
    save_every: int = opt(20, "steps between checkpoints; the last step always saves")
    keep: int = opt(2, "number of checkpoints to keep; older ones are deleted")
    eval_every: int = opt(10, "steps between evaluations; 0 evaluates only at the end")
    resume: bool = opt(True, "whether to continue a run in the folder; with false, a folder with a run is refused")
    evals: list[EvalConfig] = opt([], "evaluations during the run, one table each")
    best: str = opt("", "metric whose best checkpoint is kept in addition to the last ones")
    best_is: Direction = opt("max", "whether larger or smaller values are better")
    sinks: list[str] = opt([], "additional sinks for metrics: wandb, tensorboard, mlflow")
    project: str = opt("trainyard", "project name in these sinks")
    adam: Adam = opt(Adam(), "")

    def __post_init__(self) -> None:
        check(self.folder != "", "folder", "a folder for the run is required")
        check(self.rank >= 0, "rank", "must be at least 0")
        check(self.lora_alpha > 0, "lora_alpha", "must be positive")
        check(self.steps > 0, "steps", "must be at least 1")
        check(self.save_every > 0, "save_every", "must be at least 1")
        check(self.keep > 0, "keep", "must be at least 1")
        check_evals(self.evals, self.own_environment, self.best)

    @property
    def scale(self) -> dict[str, str]:
        """Returns metadata of a model whose adapter has another scale than the default, an extension of this server."""
        alpha = {} if self.lora_alpha == DEFAULT_ALPHA else {"trainyard.lora_alpha": repr(self.lora_alpha)}
        return alpha | ({"trainyard.rslora": "true"} if self.rslora else {})

    @property
    def own_environment(self) -> EnvironmentConfig | None:
        """Returns the environment that the recipe plays, if it has one."""
        return None


class Run:
    """Clients, tokenizer and folder of a run. `first_step` is where it continues; `scalar` models have a scalar
    head."""

    def __init__(
        self,
        recipe: str,
        config: Common,
        service: tinker.ServiceClient,
        scalar: bool = False,
        plans: Sequence[Planned] = (),
    ) -> None:
        self.config, self.service, self.scalar = config, service, scalar
        self.folder = Path(config.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = Wanted(config.best, config.best_is)
        self.checkpoints = Checkpoints(self.folder / "checkpoints.jsonl", config.keep, wanted, delete)
        saved = self._saved()
        self.first_step = int(saved[-1]["step"]) if saved else 0
        self.model = config.model or first_model(service)
        self.state: dict[str, Any] = dict(saved[-1]["state"]) if saved else {}
        path = str(saved[-1]["path"]) if saved else ""
        self.training = self._client(path, config.load, config.rank, scalar, self.model)
        self._beside: dict[str, str] = dict(saved[-1].get("beside", {})) if saved else {}
        self.beside: dict[str, tinker.TrainingClient] = {}
        named = config.tokenizer
        tokenizer = load_tokenizer(named) if named else cast(Tokenizer, self.training.get_tokenizer())
        self.chat = Chat(tokenizer, functools.partial(Vision.load, named or self.model))
        flat = flatten(as_dict(config) | {"evals": {one.name: as_dict(one) for one in config.evals}})
        self.sinks = open_sinks(config.sinks, config.project, self.folder, self.first_step, flat)
        self.progress = Progress(recipe, config.steps, self.first_step)
        server = Server(f"{server_url()}/oai/api/v1", os.environ.get("TINKER_API_KEY", ""), delete)
        self.evals = Evals(plans, self.training, server, self.folder, config.steps)
        self._before: dict[str, float] = {}
        self._recorded: set[str] = set()
        self._value: float | None = None

    def _client(self, saved: str, load: str, rank: int, scalar: bool, model: str) -> tinker.TrainingClient:
        """A model: from a checkpoint of this run, from weights to start with, or from the base model."""
        metadata = (SCALAR_HEAD if scalar else {}) | self.config.scale or None
        if saved:
            return self.service.create_training_client_from_state_with_optimizer(saved).result()
        if load:
            return self.service.create_training_client_from_state(load, user_metadata=metadata).result()
        return self.service.create_lora_training_client(
            model,
            rank=rank,
            seed=self.config.seed,
            train_unembed=self.config.train_unembed and not scalar,
            user_metadata=metadata,
        ).result()

    def add_critic(self, name: str, load: str, rank: int, model: str = "") -> tinker.TrainingClient:
        """Adds a second model, with a scalar head, which is saved and resumed with the run's own. By default it has the
        same base model."""
        self.beside[name] = self._client(self._beside.get(name, ""), load, rank, True, model or self.model)
        return self.beside[name]

    def _saved(self) -> list[Line]:
        """The run's checkpoints, after a check that its settings are the same."""
        saved = self.checkpoints.saved
        settings = self.folder / "config.json"
        mine = flatten(as_dict(self.config))
        if saved and not self.config.resume:
            raise ConfigError(f"folder: {self.folder} already contains a run, and resume is false")
        if saved and settings.exists():
            theirs = defaults(type(self.config)) | json.loads(settings.read_text())
            for key in sorted(mine.keys() | theirs.keys()):
                if key not in MAY_CHANGE and key != "folder" and mine.get(key) != theirs.get(key):
                    text = f"{theirs.get(key)!r} in the run of {self.folder}, {mine.get(key)!r} now"
                    raise ConfigError(f"{key}: {text}; choose another folder")
        settings.write_text(json.dumps(mine, indent=1))
        return saved

    def steps(self) -> Iterator[int]:
        """Yields the remaining steps, after the evaluations before the first."""
        if self.first_step == 0:
            self._before = self.evals.before()
        yield from range(self.first_step, self.config.steps)

    def optimize(self, step: int) -> tinker.APIFuture[types.OptimStepResponse]:
        """Applies the gradient with the parameters of a step."""
        return self.training.optim_step(self.config.adam.at(step, self.config.steps))

    def evaluates(self, step: int) -> bool:
        """Returns whether the model is evaluated after a step."""
        done = step + 1
        return done == self.config.steps or (self.config.eval_every > 0 and done % self.config.eval_every == 0)

    def record(self, step: int, metrics: Metrics, shown: tuple[str, ...] = ()) -> None:
        """Writes a step's metrics and those of the evaluations that are due; some are shown in the progress bar."""
        metrics = {**metrics, **self._before, **self.evals.after(step)}
        self._before = {}
        self._recorded |= metrics.keys()
        self._value = metrics.get(self.config.best)
        shown = shown + self.evals.shown
        for sink in self.sinks:
            sink.write(step, metrics)
        self.progress.show(step + 1, {key: metrics[key] for key in shown if key in metrics})

    def after(self, step: int, state: dict[str, Any] | None = None) -> None:
        """Saves weights and optimizer state if it is time, or if the step is the best so far; `state` is further data
        that the recipe needs to resume."""
        done = step + 1
        is_best = self.checkpoints.wanted.improves(self._value, self.checkpoints.best)
        if is_best or done == self.config.steps or done % self.config.save_every == 0:
            self._save(done, state or {}, self._value if is_best else None)
        if self.config.best and self.evaluates(step) and not self.checkpoints.best:
            known = self.config.best.startswith("eval/") or self.config.best in self._recorded
            check(known, "best", f"no step recorded {self.config.best}; available: {', '.join(sorted(self._recorded))}")

    def _save(self, done: int, state: dict[str, Any], best: float | None) -> None:
        """Saves a checkpoint, and weights for sampling with it if it is the best, whose value is then given."""
        saving = {name: client.save_state(f"step-{done:06d}") for name, client in self.beside.items()}
        path = self.training.save_state(f"step-{done:06d}").result().path
        line: Line = {"step": done, "path": path, "state": state}
        if saving:
            line["beside"] = {name: future.result().path for name, future in saving.items()}
        if best is not None:
            line["best"] = {"metric": self.config.best, "is": self.config.best_is, "value": best}
            if not self.scalar:
                sampler = self.training.save_weights_for_sampler(f"best-{done:06d}").result().path
                line["best"]["sampler"] = sampler
        self.checkpoints.add(line)

    def publish(self) -> str:
        """Saves the final weights, for sampling unless they have a scalar head; the path is also in `final.json`."""
        if self.scalar:
            kind, path = "reward_model", str(self.training.save_state("final").result().path)
        else:
            kind, path = "sampler", str(self.training.save_weights_for_sampler("final").result().path)
        final = {"model": self.model, kind: path, "steps": self.config.steps}
        best = self.checkpoints.best
        if best:
            final["best"] = {"step": best["step"], "path": best["path"], **best["best"]}
        (self.folder / "final.json").write_text(json.dumps(final))
        return path

    def published(self) -> tuple[str, dict[str, Any]]:
        """Returns the path of the final weights from a finished run's folder, and its best checkpoint."""
        final = json.loads((self.folder / "final.json").read_text())
        return str(final["reward_model" if self.scalar else "sampler"]), final.get("best", {})

    def close(self) -> None:
        self.progress.close()
        for sink in self.sinks:
            sink.close()


@contextlib.contextmanager
def opened(recipe: str, config: Common, scalar: bool = False) -> Iterator[Run]:
    """Opens a run in a new session. After the last step its weights are published, and their path is printed."""
    check(not (scalar and config.evals), "evals", "a model with a scalar head gives no answers to evaluate")
    plans = planned(config.evals, config.own_environment)
    wait_for(server_url(), "TINKER_BASE_URL")
    with tinker.ServiceClient(user_metadata={"recipe": recipe}) as service:
        run = Run(recipe, config, service, scalar, plans)
        try:
            yield run
            # A run that was killed after its last step has no final weights yet.
            if run.first_step < config.steps or not (run.folder / "final.json").exists():
                run.publish()
        finally:
            run.close()
        path, best = run.published()
        if best:
            found = f"{best['metric']} {best['value']:.4g} after step {best['step']}"
            print(f"{recipe}: the best {found}: {best.get('sampler', best['path'])}")
        print(f"{recipe}: {config.steps} steps are done: {path}", flush=True)


def rest() -> tinker.RestClient:
    """Returns an HTTP client of the server that the environment names. Without name and key, later clients use the
    first server for the life of the process."""
    url, key = (os.environ.get(name) or None for name in ("TINKER_BASE_URL", "TINKER_API_KEY"))
    return tinker.RestClient(base_url=url, api_key=key)


def delete(path: str) -> None:
    """Deletes a checkpoint. A missing one was deleted before a crash, or by its owner."""
    with contextlib.suppress(tinker.NotFoundError):
        rest().delete_checkpoint_from_tinker_path(path).result()


def first_model(service: tinker.ServiceClient) -> str:
    """The first base model that the server lists."""
    names = [model.model_name for model in rest().get_server_capabilities().result().supported_models]
    name = next((name for name in names if name), None)
    if name is None:
        raise ConfigError("model: the server lists no base model; set one")
    return name
