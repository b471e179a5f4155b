"""The program that each SDK runs end to end: it trains, samples, saves and resumes. Here by the official SDK."""

import dataclasses

from tinker import types

from helpers import WAIT, client, datum, lora, prompt
from server import TINY

STEPS = 12
RANK, SEED = 8, 1
LEARNING_RATE = 1e-2
PROMPT = [5, 17, 250, 3]
MAX_TOKENS = 8


def tokens(step: int) -> list[int]:
    """What a step trains on: the same few sequences in turn, so that their loss falls."""
    return [(7 * position + 13 * (step % 3)) % 500 for position in range(24)]


@dataclasses.dataclass
class Expected:
    """What every SDK gets from the server, to the bit."""

    losses: list[float]
    sampled: list[int]
    logprobs: list[float]
    resumed_loss: float


def expected(server) -> Expected:
    """By the official SDK."""
    adam = types.AdamParams(learning_rate=LEARNING_RATE, beta1=0.9, beta2=0.95, eps=1e-8)
    with client(server) as service:
        run = lora(service, TINY, RANK, SEED)
        passes = []
        for step in range(STEPS):
            passes.append(run.forward_backward([datum(tokens(step))], "cross_entropy"))
            run.optim_step(adam)
        losses = [output.result(WAIT).metrics["loss:sum"] for output in passes]
        sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        params = types.SamplingParams(max_tokens=MAX_TOKENS, temperature=0.0, stop=[])
        sequence = sampler.sample(prompt(PROMPT), 1, params).result(WAIT).sequences[0]
        path = run.save_state("expected").result(WAIT).path
        resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
        loss = resumed.forward([datum(tokens(0))], "cross_entropy").result(WAIT).metrics["loss:sum"]
    return Expected(losses, sequence.tokens, sequence.logprobs, loss)
