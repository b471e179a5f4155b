"""`SamplingClient`, and the future that stands for one; futures themselves."""

import asyncio
import concurrent.futures

import numpy as np
import pytest
import tinker
from tinker import types
from tinker.lib.public_interfaces.api_future import APIFuture
from tinker.lib.retry_handler import RetryConfig

from helpers import TOKENS, WAIT, datum, prompt, sample, tensor
from server import TINY
from surface.table import client_only, works

OWNERS = ("SamplingClient", "BackcompatSamplingClientFuture")
GREEDY = types.SamplingParams(max_tokens=6, temperature=0.0, stop=[])


def sampling(*names, asynchronous=True):
    """Methods of the client and of the future, with their twins."""
    twins = ("", "_async") if asynchronous else ("",)
    return [f"{owner}.{name}{twin}" for owner in OWNERS for name in names for twin in twins]


@works(sampling("sample"))
def draw(world, call):
    """Everything that can be asked for, in one request; what comes agrees with itself."""
    rows = len(TOKENS) - 1
    targets = tensor(np.tile([7, 8], (rows, 1)), "int64")
    found = call(
        prompt(TOKENS), 2, types.SamplingParams(max_tokens=5, seed=4, stop=[]), include_prompt_logprobs=True,
        topk_prompt_logprobs=3, topk_sample_logprobs=2, target_prompt_logprobs=targets, prompt_alt_tokens_k=4,
        prompt_logprobs_last_n=rows,
    )  # fmt: skip
    assert [len(sequence.tokens) for sequence in found.sequences] == [5, 5]
    assert len({sequence.sequence_id for sequence in found.sequences}) == 2
    for sequence in found.sequences:
        assert len(sequence.logprobs) == 5 and max(sequence.logprobs) <= 0
    assert found.prompt_logprobs[0] is None and all(value < 0 for value in found.prompt_logprobs[1:])
    best = found.topk_prompt_logprobs[1]
    assert len(best) == 3 and best == sorted(best, key=lambda pair: -pair[1])
    assert found.prompt_alt_tokens.tokens.to_numpy().shape == (rows, 4)
    assert found.sequences[0].topk_logprobs is not None
    assert np.asarray(found.target_prompt_logprobs.to_numpy()).shape == (rows, 2)
    again = call(prompt(TOKENS), 2, types.SamplingParams(max_tokens=5, seed=4, stop=[]))
    assert [one.tokens for one in again.sequences] == [one.tokens for one in found.sequences]


@works(sampling("compute_logprobs"))
def compute_logprobs(world, call):
    whole = call(prompt(TOKENS))
    assert whole[0] is None and len(whole) == len(TOKENS)
    last = call(prompt(TOKENS), prompt_logprobs_last_n=3)
    assert last[:-3] == [None] * (len(TOKENS) - 3) and last[-3:] == pytest.approx(whole[-3:], abs=1e-6)


@works(sampling("get_base_model"))
def get_base_model(world, call):
    assert call() == TINY


@works("SamplingClient.create", "BackcompatSamplingClientFuture.create")
def create(world, call):
    """What the service's method calls: for a base model, a checkpoint, or a sampling session that exists."""
    holder = world.service.holder
    path = world.named()
    of_base = call(holder, base_model=TINY, retry_config=RetryConfig())
    of_path = call(holder, model_path=path, record_stability_info=True)
    joined = call(holder, sampling_session_id=of_path._sampling_session_id)
    tokens = [sample(one, TOKENS, temperature=0.0, stop=[]).sequences[0].logprobs for one in (of_base, of_path, joined)]
    assert tokens[1] == tokens[2] and tokens[0] != tokens[1]
    assert joined.get_base_model() == TINY


@works(sampling("get_sampler_handle", asynchronous=False))
def get_sampler_handle(world, call):
    """Another process makes a client of it, with credentials of its own."""
    handle = call()
    assert world.member not in handle
    clone = tinker.SamplingClient.from_sampler_handle(handle, api_key=world.member)
    expected = world.sampler().sample(prompt(TOKENS), 1, GREEDY).result(WAIT)
    assert clone.sample(prompt(TOKENS), 1, GREEDY).result(WAIT).sequences[0].tokens == expected.sequences[0].tokens


@works(sampling("from_sampler_handle", asynchronous=False))
def from_sampler_handle(world, call):
    """Every clone has a number of its own on the server; another tenant's key opens nothing."""
    handle = world.sampler().get_sampler_handle()
    clones = [call(handle, api_key=world.member) for _ in range(2)]
    for clone in clones:
        assert len(clone.sample(prompt(TOKENS), 1, GREEDY).result(WAIT).sequences[0].tokens) == 6
    assert len({clone._cloned_sampler_id for clone in clones}) == 2
    theirs = call(handle, api_key=world.stranger)
    with pytest.raises(tinker.NotFoundError):
        theirs.sample(prompt(TOKENS), 1, GREEDY).result(WAIT)


@client_only(sampling("on_queue_state_change", asynchronous=False), note="logs what a poll says of the queue")
def on_queue_state_change(world, call):
    from tinker.lib.api_future_impl import QueueState

    assert call(QueueState.PAUSED_CAPACITY, "busy") is None


FUTURES = ("APIFuture", "BackcompatTrainingClientFuture", "BackcompatSamplingClientFuture")


@works([f"{owner}.{name}" for owner in FUTURES for name in ("result", "result_async", "future", "coroutine")])
def future(world, call):
    """Each way of waiting for a result; a limit of no time ends with an error or the result."""
    if call.member in ("result", "result_async"):
        check_future(call, call(timeout=WAIT))
        return
    made = getattr(call.subject, call.member)()
    if call.member == "future":
        assert isinstance(made, concurrent.futures.Future)
        check_future(call, made.result(WAIT))
    else:
        check_future(call, asyncio.run(awaited(made)))


async def awaited(coroutine):
    return await coroutine


def check_future(call, result):
    assert not isinstance(result, APIFuture)
    expected = {
        "APIFuture": lambda: result.metrics["loss:sum"] > 0,
        "BackcompatTrainingClientFuture": lambda: result.forward([datum(TOKENS)], "cross_entropy").result(WAIT).metrics,
        "BackcompatSamplingClientFuture": lambda: sample(result, TOKENS).sequences,
    }[call.owner]
    assert expected()
