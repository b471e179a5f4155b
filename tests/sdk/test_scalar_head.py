"""Runs with a scalar head (`user_metadata` trainyard.head): values in place of log-probabilities, from the official SDK."""

import math

import numpy as np
import pytest

from helpers import ADAM, TOKENS, WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, refused, rl_datum, tensor, train
from test_custom_loss import RECORDED, Loss, importance, rl_data, tensors, upload  # noqa: F401 - `tensors` is a fixture

HEAD = {"trainyard.head": "scalar"}
BATCH = [datum(TOKENS), datum(TOKENS[::-1])]


def critic(service, **kwargs):
    return lora(service, user_metadata=HEAD, **kwargs)


def valued(tokens, seed=0, **more):
    """An example for `value_mse`, one return for each token."""
    returns = np.random.default_rng(seed).uniform(-1, 1, len(tokens))
    return datum(tokens, returns=tensor(returns, "float32"), **more)


DATA = [valued(TOKENS, 1), valued(TOKENS[::-1], 2)]


def values(run, data=BATCH):
    return logprobs(forward(run, data))


def test_values_begin_at_zero_and_are_fitted(service):
    run = critic(service)
    assert all((found == 0).all() for found in values(run))
    before = forward(run, DATA, "value_mse")
    returns = [one.loss_fn_inputs["returns"].to_numpy() for one in DATA]
    assert before.metrics["loss:sum"] == pytest.approx(sum(0.5 * float((r**2).sum()) for r in returns), rel=1e-5)
    losses = [train(run, DATA, "value_mse").metrics["loss:sum"] for _ in range(20)]
    assert losses[-1] < losses[0] / 2
    after = forward(run, DATA, "value_mse")
    found = logprobs(after)
    assert [len(one) for one in found] == [len(TOKENS)] * 2
    total = sum(0.5 * float(((a - b) ** 2).sum()) for a, b in zip(found, returns, strict=True))
    assert after.metrics["loss:sum"] == pytest.approx(total, rel=1e-4)


def test_clip_and_weights(service):
    """The terms are those of docs/users/compatibility.md, in float64 from the values."""
    run = critic(service)
    for _ in range(3):
        train(run, DATA, "value_mse")
    rng = np.random.default_rng(3)
    returns, old, weights = (rng.uniform(-1, 1, len(TOKENS)) for _ in range(3))
    inputs = {"returns": returns, "old_values": old, "weights": weights}
    data = [datum(TOKENS, **{key: tensor(value, "float32") for key, value in inputs.items()})]
    output = forward(run, data, "value_mse", {"value_clip": 0.2})
    found = logprobs(output)[0].astype(np.float64)
    held = old + np.clip(found - old, -0.2, 0.2)
    terms = weights / 2 * np.maximum((found - returns) ** 2, (held - returns) ** 2)
    np.testing.assert_allclose(output.loss_fn_outputs[0]["elementwise_loss"].to_numpy(), terms, rtol=1e-4, atol=1e-6)
    assert output.metrics["loss:sum"] == pytest.approx(terms.sum(), rel=1e-5)


def test_any_loss_of_the_client(service):
    """Bradley-Terry on the last values of pairs: the SDK's two passes of a loss on log-probabilities, unchanged."""
    run = critic(service)
    chosen, rejected = datum([*TOKENS, 9, 1]), datum([*TOKENS, 8, 2])

    def bradley_terry(data, leaves):
        (good, bad) = (float(leaf[-1]) for leaf in leaves)
        slope = -1 / (1 + math.exp(good - bad))
        gradients = [np.zeros(len(leaf), np.float32) for leaf in leaves]
        gradients[0][-1], gradients[1][-1] = slope, -slope
        return Loss(math.log1p(math.exp(bad - good)), leaves, gradients), {"accuracy:mean": float(good > bad)}

    def step():
        pending = run.forward_backward_custom([chosen, rejected], bradley_terry)
        run.optim_step(ADAM)
        return pending.result(WAIT).metrics

    steps = [step() for _ in range(10)]
    assert steps[0]["loss:sum"] == pytest.approx(math.log(2), rel=1e-6)
    assert steps[-1]["loss:sum"] < 0.2 and steps[-1]["accuracy:mean"] == 1


def test_an_uploaded_loss(service):
    """A graph on the server gets values where it reads log-probabilities."""
    run = critic(service)
    train(run, DATA, "value_mse")
    data = rl_data()
    in_client = run.forward_backward_custom(data, importance).result(WAIT)
    on_server = run.forward_backward_custom(data, upload(service, RECORDED["importance"])).result(WAIT)
    assert on_server.metrics["loss:sum"] == pytest.approx(in_client.metrics["loss:sum"], rel=1e-5)
    assert_bits_equal(logprobs(on_server), logprobs(in_client))


def test_checkpoints(service):
    """Training goes on to the bit; a head may also begin on a checkpoint without one."""
    run = critic(service)
    train(run, DATA, "value_mse")
    state = run.save_state("critic").result(WAIT).path
    resumed = service.create_training_client_from_state_with_optimizer(state).result(WAIT)
    for one in (run, resumed):
        train(one, DATA, "value_mse")
    assert_bits_equal(values(run), values(resumed))
    plain = lora(service, train_unembed=False)
    train(plain, BATCH)
    path = plain.save_state("plain").result(WAIT).path
    grown = service.create_training_client_from_state(path, user_metadata=HEAD).result(WAIT)
    assert all((found == 0).all() for found in values(grown))
    refused(lambda: plain.load_state(state).result(WAIT), "scalar head")
    refused(
        lambda: service.create_training_client_from_state_with_optimizer(path, user_metadata=HEAD).result(WAIT),
        "optimizer", "scalar head",
    )  # fmt: skip


def test_what_is_refused(service):
    run = critic(service)
    refused(lambda: lora(service, user_metadata={"trainyard.head": "vector"}), "user_metadata.trainyard.head", "vector")
    for loss in ("ppo", "importance_sampling", "cispo", "dro"):
        refused(lambda loss=loss: forward(run, [rl_datum(TOKENS)], loss), loss, "scalar head", "value_mse")
    refused(lambda: forward(lora(service), DATA, "value_mse"), "value_mse", "trainyard.head")
    refused(lambda: forward(run, [datum(TOKENS, weights=[1.0] * 8)], "value_mse"), "returns", "missing")
    refused(lambda: forward(run, DATA, "value_mse", {"value_clip": 0.2}), "old_values", "missing")
    refused(lambda: run.save_weights_for_sampler("a").result(WAIT), "scalar head", "sampled")
    refused(lambda: run.save_weights_and_get_sampling_client().result(WAIT), "scalar head", "sampled")
    # Nothing of this disturbed the run.
    assert all((found == 0).all() for found in values(run))


def test_training_goes_on_after_a_kill(own):
    with client(own) as service:
        calm, struck = critic(service), critic(service)
        step = lambda run: train(run, DATA, "value_mse").metrics["loss:sum"]  # noqa: E731
        expected = [step(calm) for _ in range(5)]
        losses = [step(struck) for _ in range(2)]
        own.kill()
        own.start()
        losses += [step(struck) for _ in range(3)]
        assert losses == expected
        assert_bits_equal(values(calm), values(struck))
