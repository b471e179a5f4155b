"""Entropies of a pass (`entropy_weights`), from the official SDK."""

import numpy as np
import pytest

from helpers import (
    TOKENS, WAIT, assert_bits_equal, datum, forward, logprobs, logprobs_of_all_tokens, lora, refused, rl_datum, tensor, train, with_input,
)
from test_custom_loss import RECORDED, rl_data, tensors, upload  # noqa: F401 - `tensors` is a fixture

VOCABULARY = 512
COUNT = len(TOKENS) - 1
BONUS = [0.5 * (at % 3) for at in range(COUNT)]


def weighted(example, weights=BONUS):
    """An example with weights of entropies."""
    return with_input(example, "entropy_weights", weights)


def entropies(output) -> list[np.ndarray]:
    return [np.asarray(one["entropies"].to_numpy()) for one in output.loss_fn_outputs]


def of_all_tokens(run) -> np.ndarray:
    """From the log-probabilities of all tokens at each position."""
    found = logprobs_of_all_tokens(run)
    return -(np.exp(found) * found).sum(1)


def test_entropies_are_those_of_all_tokens(service):
    run = lora(service)
    train(run, [datum(TOKENS)])
    output = forward(run, [datum(TOKENS), weighted(datum(TOKENS), [0.0] * COUNT)])
    none, found = entropies(output)
    assert none.shape == (0,), "not asked for"
    assert found.shape == (COUNT,) and (found > 0).all() and (found <= np.log(VOCABULARY)).all()
    np.testing.assert_allclose(found, of_all_tokens(run), rtol=0, atol=1e-4)
    assert output.metrics["loss:sum"] == forward(run, [datum(TOKENS), datum(TOKENS)]).metrics["loss:sum"]


def test_they_have_the_same_bits_in_any_batch(service):
    run, one = lora(service), weighted(datum(TOKENS))
    alone = entropies(forward(run, [one]))
    among = entropies(forward(run, [weighted(datum(TOKENS[::-1])), one, one]))
    assert_bits_equal(among[1:], alone * 2)


@pytest.mark.parametrize("loss", ["cross_entropy", "ppo"])
def test_their_weighted_sum_is_subtracted_from_the_loss(service, loss):
    run = lora(service)
    example = datum(TOKENS) if loss == "cross_entropy" else rl_datum(TOKENS)
    plain, bonus = (forward(run, [one], loss) for one in (example, weighted(example)))
    assert_bits_equal(logprobs(plain), logprobs(bonus))
    expected = plain.metrics["loss:sum"] - float(np.asarray(BONUS) @ entropies(bonus)[0])
    assert bonus.metrics["loss:sum"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_bonus_alone_changes_the_entropy(service, sign):
    run = lora(service)
    example = weighted(datum(TOKENS[:-1], target_tokens=TOKENS[1:], weights=[0.0] * COUNT), [float(sign)] * COUNT)
    found = [entropies(train(run, [example]))[0].mean() for _ in range(5)]
    assert sign * (found[-1] - found[0]) > 1e-4, found


def test_a_custom_loss_has_them_too(service):
    run = lora(service)
    loss = upload(service, RECORDED["importance"])
    (example, *_) = rl_data()
    count = len(example.model_input.to_ints())
    plain = run.forward_backward_custom([example], loss).result(WAIT)
    bonus = run.forward_backward_custom([weighted(example, [2.0] * count)], loss).result(WAIT)
    expected = plain.metrics["loss:sum"] - 2 * float(entropies(bonus)[0].sum())
    assert bonus.metrics["loss:sum"] == pytest.approx(expected, rel=1e-5)


def test_what_is_refused(service):
    run = lora(service)
    refused(lambda: forward(run, [weighted(datum(TOKENS), BONUS[1:])]), "entropy_weights", f"[{COUNT}]")
    refused(lambda: forward(run, [weighted(datum(TOKENS), [float("inf")] * COUNT)]), "entropy_weights", "finite")
    critic = lora(service, user_metadata={"trainyard.head": "scalar"})
    refused(lambda: forward(critic, [weighted(datum(TOKENS))]), "data[0]", "entropy_weights", "scalar head")
    values = datum(TOKENS[:-1], returns=tensor([0.5] * COUNT, "float32"))
    refused(lambda: forward(critic, [weighted(values)], "value_mse"), "entropy_weights", "not an input of value_mse")
