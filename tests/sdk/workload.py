"""A user's program with two runs, and everything that the server returns to it; for tests that inject faults."""

import dataclasses

import numpy as np
from safetensors.numpy import load_file
from tinker import types

from cuda_device import is_simulated
from helpers import ADAM, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, prompt

STEPS = 12 if is_simulated() else 40
RANKS = (4, 16)


@dataclasses.dataclass
class Outcome:
    """Everything that the server returned, and the weights at the end."""

    losses: list[float]
    logprobs: list[np.ndarray]
    samples: list[list[int]]
    sample_logprobs: list[np.ndarray]
    weights: list[dict[str, np.ndarray]]

    def assert_equal(self, other: "Outcome"):
        differing = [i for i, (mine, theirs) in enumerate(zip(self.losses, other.losses)) if mine != theirs]
        assert not differing, f"losses of (step, run) {[divmod(i, len(RANKS)) for i in differing]}"
        assert len(self.losses) == len(other.losses)
        assert self.samples == other.samples
        assert_bits_equal(self.logprobs, other.logprobs)
        assert_bits_equal(self.sample_logprobs, other.sample_logprobs)
        for mine, theirs in zip(self.weights, other.weights, strict=True):
            assert mine.keys() == theirs.keys()
            assert_bits_equal([mine[name] for name in mine], [theirs[name] for name in mine])


def batch(number: int, step: int) -> list[types.Datum]:
    rng = np.random.default_rng([number, step])
    return [datum(rng.integers(0, 512, n).tolist()) for n in rng.integers(2, 40, 4)]


def work(deployment, before_step=lambda step: None) -> Outcome:
    """What a user's program does: two runs side by side, a new sampler every ten steps, samples from the last ones."""
    outcome = Outcome([], [], [], [], [])
    with client(deployment) as service:
        runs = [lora(service, rank=rank, seed=rank) for rank in RANKS]
        for step in range(STEPS):
            before_step(step)
            if step % 10 == 0:
                samplers = [run.save_weights_and_get_sampling_client() for run in runs]
                samplers = [sampler.result(WAIT) for sampler in samplers]
            passes = []
            for number, run in enumerate(runs):
                passes.append(run.forward_backward(batch(number, step), "cross_entropy"))
                run.optim_step(ADAM)
            params = types.SamplingParams(max_tokens=12, seed=step, stop=[])
            answers = [sampler.sample(prompt([5, 17, step]), 2, params) for sampler in samplers]
            for output in (future.result(WAIT) for future in passes):
                outcome.losses.append(output.metrics["loss:sum"])
                outcome.logprobs += logprobs(output)
            for sequence in (s for answer in answers for s in answer.result(WAIT).sequences):
                outcome.samples.append(sequence.tokens)
                outcome.sample_logprobs.append(np.asarray(sequence.logprobs, np.float32))
        for number, run in enumerate(runs):
            outcome.logprobs += logprobs(forward(run, batch(9, 9)))
            path = run.save_weights_for_sampler(f"final-{number}").result(WAIT).path
            outcome.weights.append(saved(deployment, path))
    return outcome


def saved(deployment, path) -> dict[str, np.ndarray]:
    """The tensors that a sampler checkpoint consists of. An interrupted save may have left a second folder; it is equal."""
    files = deployment.storage.rglob(f"{path.rsplit('/', 1)[1]}.*/adapter_model.safetensors")
    return load_file(min(files))
