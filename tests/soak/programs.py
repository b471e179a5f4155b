"""Programs of the soak's tenants. Every answer is known, because the same seeds give the same bits."""

import concurrent.futures
import contextlib
import hashlib

import numpy as np
import tinker
from tinker import types

from helpers import ADAM, client, datum, logprobs, prompt, rest
from server import TINY

STEPS = 6
WAIT = 600
"""Longest wait of a client for one result, in seconds: longer than all simultaneous disturbances."""

CLOSE_SECONDS = 90
RANKS = (4, 8, 16, 0)
SAMPLERS = 2
"""Number of different seeds of programs that only sample."""

PROGRAMS = len(RANKS) + SAMPLERS


class Facts:
    """Answers of a program in order, as comparable text with floats to the last bit."""

    def __init__(self, note=lambda label: None):
        self.items: list[tuple[str, str]] = []
        self.note = note

    def add(self, label: str, value):
        if isinstance(value, float):
            value = value.hex()
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            value = hashlib.sha256(b"".join(np.asarray(v, np.float32).tobytes() for v in value)).hexdigest()[:16]
        self.items.append((label, str(value)))
        self.note(label)


def execute(server, key: str, program: int, facts: Facts):
    """Runs a program once, in its own session, which it finishes; adds its answers to `facts` as they arrive."""
    if program < len(RANKS):
        remove_checkpoints(server, key)
        with connected(server, key) as service:
            train(service, program, facts)
        remove_checkpoints(server, key)
    else:
        with connected(server, key) as service:
            draw(service, program, facts)


@contextlib.contextmanager
def connected(server, key: str):
    """Yields a client and finishes its session.

    `close` of `tinker` 0.38 waits forever for its heartbeat task if an error of the request in flight swallows the
    task's cancellation; by then the session is finished.
    """
    service = client(server, key)
    status = "errored"
    try:
        yield service
        status = "success"
    finally:
        with contextlib.suppress(concurrent.futures.TimeoutError):
            service.close(status).result(CLOSE_SECONDS)


def train(service, program: int, facts: Facts):
    """Trains, samples from snapshots in between, resumes a saved state, and saves a sampler."""
    rank = RANKS[program]
    run = created(service, rank)
    sampler = None
    for step in range(STEPS):
        output = run.forward_backward(batch(program, step), "cross_entropy")
        stepped = run.optim_step(ADAM)
        if step % 3 == 0:
            sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        answer = sampler.sample(prompt([5, 17, step]), 2, types.SamplingParams(max_tokens=8, seed=step, stop=[]))
        result = output.result(WAIT)
        facts.add(f"forward_backward {step}: loss", result.metrics["loss:sum"])
        facts.add(f"forward_backward {step}: log-probabilities", logprobs(result))
        stepped.result(WAIT)
        facts.add(f"optim_step {step}", "done")
        add_samples(facts, f"sample {step}", answer)
    state = run.save_state("state").result(WAIT).path
    facts.add("save_state", "done")
    saved = run.save_weights_for_sampler("sampler").result(WAIT).path
    facts.add("save_weights_for_sampler", "done")
    resumed = service.create_training_client_from_state_with_optimizer(state).result(WAIT)
    for name, client_of in (("run", run), ("resumed run", resumed)):
        output = client_of.forward_backward(batch(program, STEPS), "cross_entropy")
        stepped = client_of.optim_step(ADAM)
        facts.add(f"{name}: log-probabilities", logprobs(output.result(WAIT)))
        stepped.result(WAIT)
    loaded = service.create_sampling_client(model_path=saved).result(WAIT)
    answer = loaded.sample(prompt([9, 8, 7]), 1, types.SamplingParams(max_tokens=8, seed=1, stop=[]))
    add_samples(facts, "sample of the checkpoint", answer)


def draw(service, program: int, facts: Facts):
    """Samples from the base model, in part long sequences."""
    sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
    answers = [
        sampler.sample(prompt([program, 3, i]), 4, types.SamplingParams(max_tokens=n, seed=i, stop=[]))
        for i, n in enumerate((4, 16, 96, 8, 32, 192))
    ]
    for i, answer in enumerate(answers):
        add_samples(facts, f"sample {i}", answer)


def created(service, rank: int):
    return service.create_lora_training_client(TINY, rank=rank, seed=rank).result(WAIT)


def batch(program: int, step: int) -> list[types.Datum]:
    rng = np.random.default_rng([program, step])
    return [datum(rng.integers(0, 512, n).tolist()) for n in rng.integers(2, 64, 6)]


def add_samples(facts: Facts, label: str, answer):
    sequences = answer.result(WAIT).sequences
    facts.add(f"{label}: tokens", [list(sequence.tokens) for sequence in sequences])
    facts.add(f"{label}: log-probabilities", [np.asarray(sequence.logprobs, np.float32) for sequence in sequences])


def remove_checkpoints(server, key: str):
    """Deletes the checkpoints of an execution, even of an interrupted one."""
    client_of = rest(server, key)
    for checkpoint in client_of.list_user_checkpoints().result(WAIT).checkpoints:
        # The client repeats a request whose answer was lost, and then there is nothing left to delete.
        with contextlib.suppress(tinker.NotFoundError):
            client_of.delete_checkpoint_from_tinker_path(checkpoint.tinker_path).result(WAIT)
