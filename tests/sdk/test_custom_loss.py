"""forward_backward_custom: the loss runs in the client, on two passes of the server."""

import numpy as np
import pytest
import tinker.lib.public_interfaces.training_client as training_client

from helpers import ADAM, TOKENS, WAIT, assert_bits_equal, datum, forward, logprobs, lora, train


class Leaf(np.ndarray):
    """As much of a tensor as the SDK asks of a leaf; the tests do without a tensor library."""

    grad = None

    def clone(self):
        return self

    detach = clone

    def requires_grad_(self, _):
        return self


class Loss(float):
    """A loss that already knows the gradient of every leaf."""

    def __new__(cls, value, leaves, gradients):
        loss = super().__new__(cls, value)
        loss.pairs = list(zip(leaves, gradients, strict=True))
        return loss

    def detach(self):
        return np.asarray(float(self))

    def backward(self):
        for leaf, gradient in self.pairs:
            leaf.grad = np.asarray(gradient, np.float32)


@pytest.fixture(autouse=True)
def tensors(monkeypatch):
    class Tensors:
        @staticmethod
        def tensor(values):
            return np.asarray(values, np.float32).view(Leaf)

    monkeypatch.setattr(training_client, "torch", Tensors)


def square(data, leaves):
    """Half the squared log-probabilities: its gradient is the log-probability itself."""
    return Loss(sum(0.5 * float((np.asarray(x) ** 2).sum()) for x in leaves), leaves, leaves), {"seen:sum": len(data)}


def test_gradients_reach_the_weights(service):
    """The same step as cross-entropy with the weights that the chain rule gives."""
    data = [datum(TOKENS), datum(TOKENS[::-1])]
    custom, plain = lora(service), lora(service)
    result = custom.forward_backward_custom(data, square)
    custom.optim_step(ADAM)
    metrics = result.result(WAIT).metrics
    assert metrics["seen:sum"] == 2
    expected = logprobs(forward(plain, data))
    assert metrics["loss:sum"] == pytest.approx(sum(0.5 * (lp**2).sum() for lp in expected), rel=1e-5)
    chained = [
        datum(d.model_input.to_ints(), target_tokens=d.loss_fn_inputs["target_tokens"], weights=-lp)
        for d, lp in zip(data, expected, strict=True)
    ]
    train(plain, chained)
    assert_bits_equal(logprobs(forward(custom, data)), logprobs(forward(plain, data)))


def test_in_chunks(service, monkeypatch):
    """Reserved numbers of both passes, two chunks each; what follows is submitted before they are known."""
    custom, plain = lora(service), lora(service)
    data = [datum([i % 512, (i * 5) % 512, 1]) for i in range(1100)]
    pending = custom.forward_backward_custom(data, square)
    step = custom.optim_step(ADAM)
    following = custom.forward([datum(TOKENS)], "cross_entropy")
    assert pending.result(WAIT).metrics["seen:sum"] == 1100
    step.result(WAIT)
    before = logprobs(forward(plain, [datum(TOKENS)]))
    assert not np.array_equal(logprobs(following.result(WAIT))[0], before[0])
