"""Custom losses without PyTorch: its tracer is replaced by graphs that it recorded, everything behind it is real."""

import contextlib
import json
import types as python_types

import numpy as np
import pytest
from tinker import types
from tinker.lib.public_interfaces import service_client
from tinker.lib.public_interfaces.custom_loss import LossHandle

from helpers import TOKENS, WAIT, Leaf, datum, tensor
from server import GOLDEN

CASES = json.loads((GOLDEN / "custom_loss" / "cases.json").read_text())
DEFINITIONS = {case["definition"]["name"]: case["definition"] for case in CASES}


def is_plain(name: str) -> bool:
    """Whether it takes one log-probability for each token, and what any number of the same size may stand for."""
    names = {one["name"]: one["rank"] for one in DEFINITIONS[name]["inputs"]}
    return names.pop("logprobs") == 1 and set(names) <= {"old", "advantages"}


@contextlib.contextmanager
def traced(name: str):
    """`ServiceClient.create_custom_loss` takes the recorded graph of this name for what it traced."""
    definition = DEFINITIONS[name]
    inputs = tuple(types.CustomLossInput(**one) for one in definition["inputs"])
    graph = python_types.SimpleNamespace(code=json.dumps(definition["graph"]))

    def trace_loss(fn, input_ranks, session):
        return LossHandle(name, inputs, session, graph)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service_client, "trace_loss", trace_loss)
        patch.setattr(service_client, "encode_graph", lambda handle: types.CustomLossGraph(**definition["graph"]))
        yield inputs


def create(service, name: str) -> LossHandle:
    """A loss on the server."""
    with traced(name) as inputs:
        ranks = {one.name: one.rank for one in inputs}
        return service.create_custom_loss(lambda logprobs: None, ranks).result(WAIT)


def data(handle: LossHandle) -> list[types.Datum]:
    """What a loss reads: a datum whose inputs have the ranks of the handle."""
    n = len(TOKENS) - 1
    shapes = [(), (n,), (n, 3)]
    logprobs, *others = handle.inputs
    targets = np.arange(np.prod(shapes[logprobs.rank])).reshape(shapes[logprobs.rank])
    inputs = {one.name: tensor(np.full(shapes[one.rank], 0.5), "float32") for one in others}
    return [datum(TOKENS[:-1], target_tokens=tensor(targets, "int64"), **inputs)]


class Doubled(float):
    """A loss that is minus two times the sum of its leaves: it knows their gradients."""

    def __new__(cls, value, leaves):
        loss = super().__new__(cls, value)
        loss.leaves = leaves
        return loss

    def detach(self):
        return np.asarray(float(self))

    def backward(self):
        for leaf in self.leaves:
            leaf.grad = np.full(leaf.shape, -2, np.float32)


class Tensors:
    """As much of PyTorch as the SDK needs of it for custom losses; the tests do without it."""

    @staticmethod
    def tensor(values):
        return np.asarray(values, np.float32).view(Leaf)
