"""`TrainingClient`, and the future that stands for one: passes, steps, what a run knows of itself."""

import os
import subprocess
import sys

import numpy as np
import pytest
from tinker import types

from helpers import TOKENS, WAIT, datum, forward, logprobs
from process import PATIENCE
from server import TINY
from surface import losses
from surface.table import client_only, works
from surface.world import LONG


def training(*names, asynchronous=True):
    """Methods of the client and of the future, with their twins."""
    twins = ("", "_async") if asynchronous else ("",)
    owners = ("TrainingClient", "BackcompatTrainingClientFuture")
    return [f"{owner}.{name}{twin}" for owner in owners for name in names for twin in twins]


def settled(world, call):
    """The client behind the call's subject."""
    return call.subject if call.owner == "TrainingClient" else call.subject.result(WAIT)


PPO = {"clip_low_threshold": 0.9, "clip_high_threshold": 1.1}


def rl_data():
    n = len(TOKENS) - 1
    return [datum(TOKENS[:-1], target_tokens=TOKENS[1:], logprobs=[-6.0] * n, advantages=[1.0] * n)]


@works(training("forward"))
def pass_forward(world, call):
    """The loss as `loss_fn` and `loss_fn_config` say; nothing accumulates."""
    result = call([datum(TOKENS)], "cross_entropy")
    (found,) = logprobs(result)
    assert result.metrics["loss:sum"] == pytest.approx(-found.sum(), rel=1e-5)
    narrow = call(rl_data(), "ppo", PPO)
    assert narrow.metrics["loss:sum"] != call(rl_data(), "ppo").metrics["loss:sum"]
    run = settled(world, call)
    run.optim_step(types.AdamParams(learning_rate=0.1)).result(WAIT)
    assert np.array_equal(logprobs(forward(run, [datum(TOKENS)]))[0], found)


@works(training("forward_backward"))
def pass_forward_backward(world, call):
    """Its gradient waits for a step."""
    before = call([datum(TOKENS)], "cross_entropy")
    narrow = call(rl_data(), "ppo", PPO)
    assert narrow.metrics["loss:sum"] != call(rl_data(), "ppo").metrics["loss:sum"]
    run = settled(world, call)
    run.optim_step(types.AdamParams(learning_rate=0.1)).result(WAIT)
    assert not np.array_equal(logprobs(forward(run, [datum(TOKENS)]))[0], logprobs(before)[0])


@works(
    training("forward_backward_custom"),
    note="with a loss that runs on the server, in one pass, or a callable, in two",
)
def forward_backward_custom(world, call):
    run = settled(world, call)
    there = losses.create(world.service, world.fresh_loss())
    assert np.isfinite(call(losses.data(there), there, loss_type_input="logprobs").metrics["loss:sum"])
    run.optim_step(types.AdamParams(learning_rate=0.0)).result(WAIT)

    def doubled(data, leaves):
        """Twice the negative log-likelihood."""
        total = sum(-2 * float(leaf.sum()) for leaf in leaves)
        return losses.Doubled(total, leaves), {"seen:sum": float(len(data))}

    result = call([datum(TOKENS)], doubled)
    assert result.metrics["seen:sum"] == 1
    (before,) = logprobs(result)
    assert result.metrics["loss:sum"] == pytest.approx(-2 * before.sum(), rel=1e-5)
    run.optim_step(types.AdamParams(learning_rate=0.01)).result(WAIT)
    assert logprobs(forward(run, [datum(TOKENS)]))[0].sum() > before.sum()


@works(training("optim_step"))
def optim_step(world, call):
    run = settled(world, call)
    seen = [logprobs(forward(run, [datum(TOKENS)]))[0]]
    params = types.AdamParams(learning_rate=1e-3)
    for arguments in ({"optim_params": params}, {"adam_params": params}):
        run.forward_backward([datum(TOKENS)], "cross_entropy").result(WAIT)
        assert call(**arguments).metrics["grad_norm"] > 0
        seen.append(logprobs(forward(run, [datum(TOKENS)]))[0])
    assert seen[0].sum() < seen[1].sum() < seen[2].sum()


@works(training("get_info"))
def get_info(world, call):
    info = call()
    assert (info.model_id, info.model_data.model_name, info.lora_rank) == (settled(world, call).model_id, TINY, 4)
    assert info.optimizer_config.type == "adamw"


TOKENIZE = """
import sys, tinker
owner, name, long = sys.argv[1:]
service = tinker.ServiceClient()
made = {
    "TrainingClient": lambda: service.create_lora_training_client(name, rank=1),
    "SamplingClient": lambda: service.create_sampling_client(base_model=name),
}[owner.removeprefix("Backcompat").removesuffix("Future")]()
if not owner.startswith("Backcompat"):
    made = made.result()
tokenizer = made.get_tokenizer()
assert tokenizer.decode(tokenizer.encode("naive café")) == "naive café"
print(len(tokenizer))
service.close("success").result()
"""


@works(
    [f"{owner}.get_tokenizer" for owner in ("TrainingClient", "SamplingClient")],
    [f"Backcompat{owner}Future.get_tokenizer" for owner in ("TrainingClient", "SamplingClient")],
    note="with `HF_ENDPOINT=<server>/hf`, without a way to another hub",
)
def get_tokenizer(world, call):
    home = world.folder / f"home-{call.owner}"
    home.mkdir(exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    environment |= {
        "TINKER_BASE_URL": world.server.url, "TINKER_API_KEY": world.member, "HF_ENDPOINT": f"{world.server.url}/hf",
        "HF_HOME": str(home), "HOME": str(home),
    }  # fmt: skip
    command = [sys.executable, "-c", TOKENIZE, call.owner, TINY, LONG]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "512"


@client_only(training("get_console_url", asynchronous=False), note="the hosted console's address")
def get_console_url(world, call):
    assert settled(world, call).model_id in call()


@works("LossHandle.input_names", "LossHandle.key")
def loss_handle(world, call):
    """Of a loss that was uploaded; the server reads the inputs that the handle names."""
    service = world.new_service()
    handle = losses.create(service, "importance")
    assert {"input_names": ("old", "advantages"), "key": handle.key}[call.member] == call.get(handle)
    result = world.run(service).forward_backward_custom(losses.data(handle), handle).result(WAIT)
    assert np.isfinite(result.metrics["loss:sum"])
    with pytest.raises(ValueError, match="already created"):
        losses.create(service, "importance")
