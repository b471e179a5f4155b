"""Divergences of a pass from the base model (`kl_weights`), from the official SDK."""

import numpy as np
import pytest

from helpers import (
    TOKENS, WAIT, assert_bits_equal, datum, forward, full, logprobs, logprobs_of_all_tokens, lora, refused, rl_datum, tensor, train,
    with_input,
)
from test_custom_loss import RECORDED, rl_data, tensors, upload  # noqa: F401 - `tensors` is a fixture

COUNT = len(TOKENS) - 1
PENALTY = [0.5 * (at % 3) for at in range(COUNT)]


def weighted(example, weights=PENALTY):
    """An example with weights of divergences."""
    return with_input(example, "kl_weights", weights)


def divergences(output) -> list[np.ndarray]:
    return [np.asarray(one["kl"].to_numpy()) for one in output.loss_fn_outputs]


def moved(run):
    """The run, after steps that change its distributions."""
    for _ in range(3):
        train(run, [datum(TOKENS)])
    return run


@pytest.mark.parametrize("kind", [lora, full])
def test_divergences_are_those_of_all_tokens(service, kind):
    fresh, run = kind(service), moved(kind(service))
    output = forward(run, [datum(TOKENS), weighted(datum(TOKENS), [0.0] * COUNT)])
    none, found = divergences(output)
    assert none.shape == (0,), "not asked for"
    own, base = logprobs_of_all_tokens(run), logprobs_of_all_tokens(fresh)
    expected = (np.exp(own) * (own - base)).sum(1)
    assert (expected > 1e-4).all(), expected
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert output.metrics["loss:sum"] == forward(run, [datum(TOKENS), datum(TOKENS)]).metrics["loss:sum"]


@pytest.mark.parametrize("kind", [lora, full])
def test_a_fresh_run_does_not_diverge(service, kind):
    (found,) = divergences(forward(kind(service), [weighted(datum(TOKENS))]))
    assert found.tolist() == [0.0] * COUNT


def test_they_have_the_same_bits_in_any_batch(service):
    run, one = moved(lora(service)), weighted(datum(TOKENS))
    alone = divergences(forward(run, [one]))
    among = divergences(forward(run, [weighted(datum(TOKENS[::-1])), datum(TOKENS), one, one]))
    assert_bits_equal(among[2:], alone * 2)


@pytest.mark.parametrize("loss", ["cross_entropy", "ppo"])
def test_their_weighted_sum_is_added_to_the_loss(service, loss):
    run = moved(lora(service))
    example = datum(TOKENS) if loss == "cross_entropy" else rl_datum(TOKENS)
    plain, penalised = (forward(run, [one], loss) for one in (example, weighted(example)))
    assert_bits_equal(logprobs(plain), logprobs(penalised))
    expected = plain.metrics["loss:sum"] + float(np.asarray(PENALTY) @ divergences(penalised)[0])
    assert penalised.metrics["loss:sum"] == pytest.approx(expected, rel=1e-6)


def test_a_penalty_alone_brings_the_run_back(service):
    run = moved(lora(service))
    example = weighted(datum(TOKENS[:-1], target_tokens=TOKENS[1:], weights=[0.0] * COUNT), [1.0] * COUNT)
    found = [divergences(train(run, [example]))[0].mean() for _ in range(6)]
    assert found[-1] < 0.9 * found[0], found


def test_a_custom_loss_has_them_too(service):
    run = moved(lora(service))
    loss = upload(service, RECORDED["importance"])
    (example, *_) = rl_data()
    count = len(example.model_input.to_ints())
    plain = run.forward_backward_custom([example], loss).result(WAIT)
    penalised = run.forward_backward_custom([weighted(example, [2.0] * count)], loss).result(WAIT)
    expected = plain.metrics["loss:sum"] + 2 * float(divergences(penalised)[0].sum())
    assert penalised.metrics["loss:sum"] == pytest.approx(expected, rel=1e-5)


def test_what_is_refused(service):
    run = lora(service)
    refused(lambda: forward(run, [weighted(datum(TOKENS), PENALTY[1:])]), "kl_weights", f"[{COUNT}]")
    refused(lambda: forward(run, [weighted(datum(TOKENS), [float("nan")] * COUNT)]), "kl_weights", "finite")
    critic = lora(service, user_metadata={"trainyard.head": "scalar"})
    refused(lambda: forward(critic, [weighted(datum(TOKENS))]), "data[0]", "kl_weights", "scalar head")
    values = datum(TOKENS[:-1], returns=tensor([0.5] * COUNT, "float32"))
    refused(lambda: forward(critic, [weighted(values)], "value_mse"), "kl_weights", "not an input of value_mse")
