"""Small things that every test module needs."""

import concurrent.futures
import contextlib
import json
import os
import time

import httpx
import numpy as np
import tinker
from tinker import types

from process import PATIENCE
from server import GOLDEN, KEY, TINY

WAIT = 120 * PATIENCE
ADAM = types.AdamParams(learning_rate=1e-2, beta1=0.9, beta2=0.95, eps=1e-8)
TOKENS = [5, 17, 250, 3, 44, 101, 7, 499]
ALICE, BOB = "tml-alice-0123456789-0123456789", "tml-bob-0123456789-0123456789"
TWO_TENANTS = f"""
[[keys]]
tenant = "alice"
key = "{ALICE}"

[[keys]]
tenant = "bob"
key = "{BOB}"
"""


class Leaf(np.ndarray):
    """As much of a tensor as the SDK asks of a leaf; the tests do without a tensor library."""

    grad = None

    def clone(self):
        return self

    detach = clone

    def requires_grad_(self, _):
        return self


class Client(tinker.ServiceClient):
    """The SDK's, whose block always ends.

    `close` cancels the heartbeat and waits for it. The SDK's transport loses a cancellation that coincides with the
    heartbeat's answer (docs/users/compatibility.md); the session is finished by then, the wait would never end.
    """

    def __exit__(self, kind, *_):
        with contextlib.suppress(concurrent.futures.TimeoutError):
            self.close("success" if kind is None else "errored").result(20 * PATIENCE)


def client(server, key=KEY, **kwargs) -> tinker.ServiceClient:
    return Client(base_url=server.url, api_key=key, **kwargs)


def rest(server, key=KEY) -> tinker.RestClient:
    return tinker.RestClient(base_url=server.url, api_key=key)


def lora(service, model=TINY, rank=8, seed=1, **kwargs) -> tinker.TrainingClient:
    return service.create_lora_training_client(model, rank=rank, seed=seed, **kwargs).result(WAIT)


def full(service, model=TINY) -> tinker.TrainingClient:
    """Rank 0 trains all parameters."""
    return service.create_lora_training_client(model, rank=0).result(WAIT)


def prompt(tokens) -> types.ModelInput:
    return types.ModelInput.from_ints(list(tokens))


def datum(tokens, **inputs) -> types.Datum:
    """Inputs as given; a plain sequence scores its own continuation with weight 1."""
    if not inputs:
        tokens, inputs = tokens[:-1], {"target_tokens": tokens[1:], "weights": [1.0] * (len(tokens) - 1)}
    return types.Datum(model_input=prompt(tokens), loss_fn_inputs=inputs)


def tensor(array, dtype) -> types.TensorData:
    array = np.asarray(array)
    return types.TensorData(data=array, dtype=dtype, shape=list(array.shape))


def csr(array, dtype) -> types.TensorData:
    """Every non-zero cell of a matrix, in compressed rows."""
    array = np.asarray(array)
    rows, columns = np.nonzero(array)
    counts = np.bincount(rows, minlength=len(array))
    return types.TensorData(
        data=array[rows, columns],
        dtype=dtype,
        shape=list(array.shape),
        sparse_crow_indices=[0, *np.cumsum(counts).tolist()],
        sparse_col_indices=columns.tolist(),
    )


def rl_datum(tokens, logprobs=None, advantages=None) -> types.Datum:
    n = len(tokens) - 1
    return datum(
        tokens[:-1],
        target_tokens=tokens[1:],
        logprobs=[-6.0] * n if logprobs is None else logprobs,
        advantages=[0.5 - i % 2 for i in range(n)] if advantages is None else advantages,
    )


def with_input(example, name, values) -> types.Datum:
    """The example with another input of floats."""
    inputs = {**example.loss_fn_inputs, name: tensor(values, "float32")}
    return types.Datum(model_input=example.model_input, loss_fn_inputs=inputs)


def logprobs_of_all_tokens(run, vocabulary=512) -> np.ndarray:
    """Log-probabilities of all tokens at each position of TOKENS but the last, `[positions, vocabulary]`."""
    count = len(TOKENS) - 1
    ids = np.tile(np.arange(vocabulary), (count, 1))
    every = datum(TOKENS[:-1], target_tokens=tensor(ids, "int64"), weights=tensor(np.zeros(ids.shape), "float32"))
    (found,) = logprobs(forward(run, [every]))
    return found.astype(np.float64)


def forward(run, data, loss="cross_entropy", config=None):
    return run.forward(data, loss, config).result(WAIT)


def train(run, data, loss="cross_entropy", config=None, adam=ADAM):
    """One step; returns what forward_backward returned."""
    result = run.forward_backward(data, loss, config)
    step = run.optim_step(adam)
    output = result.result(WAIT)
    step.result(WAIT)
    return output


def logprobs(output) -> list[np.ndarray]:
    return [np.asarray(o["logprobs"].to_numpy()) for o in output.loss_fn_outputs]


def elementwise(output) -> list[np.ndarray]:
    return [np.asarray(o["elementwise_loss"].to_numpy()) for o in output.loss_fn_outputs]


def assert_bits_equal(left, right):
    """Equal to the last bit, for arrays or lists of arrays of float32."""
    for a, b in zip(left, right, strict=True):
        a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
        assert a.shape == b.shape
        assert np.array_equal(a.view(np.uint32), b.view(np.uint32)), f"largest difference {np.abs(a - b).max()}"


def assert_agree(sampled, scored):
    """Log-probabilities of the sampler and of the trainer are equal to the bit; on a GPU within 2e-2, on average within 1e-3."""
    if not os.environ.get("TRAINYARD_DEVICE", "cpu").startswith("cuda"):
        return assert_bits_equal(sampled, scored)
    for a, b in zip(sampled, scored, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-2)
    errors = np.concatenate([np.abs(np.asarray(a) - np.asarray(b)) for a, b in zip(sampled, scored)])
    assert errors.mean() < 1e-3, f"on average {errors.mean()}"


def sample(sampler, tokens, num_samples=1, **params):
    named = {k: params.pop(k) for k in list(params) if k in SAMPLE_ARGUMENTS}
    params.setdefault("max_tokens", 8)
    return sampler.sample(prompt(tokens), num_samples, types.SamplingParams(**params), **named).result(WAIT)


SAMPLE_ARGUMENTS = {
    "include_prompt_logprobs", "topk_prompt_logprobs", "topk_sample_logprobs", "target_prompt_logprobs",
    "prompt_alt_tokens_k", "prompt_logprobs_last_n",
}  # fmt: skip


def refused(call, *names) -> str:
    """Calls, expects the user's error, and expects its text to name every one of `names`."""
    try:
        call()
    except tinker.RequestFailedError as error:
        assert error.category == "user", f"{error.category}: {error.message}"
        text = error.message
    except tinker.APIStatusError as error:
        assert error.status_code in (400, 403, 404, 413, 422), error
        text = json.dumps(error.body)
    else:
        raise AssertionError(f"accepted; expected an error that names {names}")
    for name in names:
        assert str(name).lower() in text.lower(), f"{name!r} is not named in: {text}"
    return text


def golden(family="llama") -> dict:
    return json.loads((GOLDEN / family / "golden.json").read_text())


def golden_data(reference, *keys) -> list[types.Datum]:
    """The reference's datums with the named inputs besides `target_tokens`."""
    return [datum(d["tokens"], target_tokens=d["target_tokens"], **{k: d[k] for k in keys}) for d in reference["data"]]


def cancelled(server) -> int:
    """Samples that were cancelled so far."""
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    counts = [line.split()[-1] for line in lines if 'kind="sample"' in line and 'outcome="cancelled"' in line]
    return sum(int(float(count)) for count in counts if "bucket" not in count)


def gauge(server, name) -> float:
    """The value of a metric without labels."""
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    (value,) = [line.split()[1] for line in lines if line.split()[0] == name]
    return float(value)


def wait_until(condition, message="it does not happen", limit=30.0):
    """Waits for what happens by itself; `message` can be a function, which is asked when it is too late."""
    deadline = time.monotonic() + limit * PATIENCE
    while not condition():
        assert time.monotonic() < deadline, message() if callable(message) else message
        time.sleep(0.05)
