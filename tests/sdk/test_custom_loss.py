"""forward_backward_custom: a loss that runs in the client, on two passes of the server, or on the server, in one."""

import dataclasses
import json
import time

import numpy as np
import pytest
import tinker.lib.public_interfaces.training_client as training_client
from tinker import types
from tinker.lib.api_future_impl import _APIFuture
from tinker.lib.public_interfaces.custom_loss import LossHandle

import wire as raw
from helpers import (
    ADAM,
    TOKENS,
    WAIT,
    Leaf,
    assert_bits_equal,
    client,
    datum,
    forward,
    logprobs,
    lora,
    refused,
    tensor,
    train,
)
from server import GOLDEN


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


RECORDED = {case["definition"]["name"]: case["definition"] for case in json.loads((GOLDEN / "custom_loss/cases.json").read_text())}


def upload(service, definition) -> LossHandle:
    """Uploads a recorded graph as `ServiceClient.create_custom_loss` does after tracing."""
    inputs = [types.CustomLossInput(**one) for one in definition["inputs"]]
    graph = types.CustomLossGraph(**definition["graph"])
    holder = service.holder

    async def create():
        future = await holder._create_custom_loss(definition["name"], inputs, graph)
        kind = types.CreateCustomLossResponse
        start = time.time()
        waiting = _APIFuture(kind, holder, future, request_start_time=start, request_type="CreateCustomLoss")
        return await waiting.result_async()

    loss_id = holder.run_coroutine_threadsafe(create()).result(WAIT).loss_id
    return LossHandle(definition["name"], tuple(inputs), holder.get_session_id(), graph=None, loss_id=loss_id)


def rl_data(extra=None) -> list:
    """Two datums with old log-probabilities and advantages, and inputs that no loss reads."""
    data = []
    for tokens in (TOKENS, TOKENS[::-1]):
        n = len(tokens) - 1
        inputs = {
            "old": tensor(np.linspace(-6.5, -6.0, n), "float32"),
            "advantages": tensor([0.5 - i % 2 for i in range(n)], "float32"),
            **(extra or {}),
        }
        data.append(datum(tokens[:-1], target_tokens=tokens[1:], **inputs))
    return data


def importance(data, leaves):
    """What the recorded loss of this name computes."""
    total, gradients, ratios = 0.0, [], []
    for one, lp in zip(data, leaves, strict=True):
        ratio = np.exp(np.asarray(lp, np.float64) - one.loss_fn_inputs["old"].to_numpy())
        terms = ratio * one.loss_fn_inputs["advantages"].to_numpy()
        total -= terms.sum()
        gradients.append(-terms)
        ratios.append(ratio.mean())
    return Loss(total, leaves, gradients), {"custom/ratio:mean": float(np.mean(ratios))}


def test_client_and_server_agree(service):
    """The same loss, metrics and weights after a step, in one pass instead of two."""
    assert service.holder.get_client_config().custom_loss_server_side
    data = rl_data()
    here, there = lora(service), lora(service)
    in_client = here.forward_backward_custom(data, importance).result(WAIT)
    on_server = there.forward_backward_custom(data, upload(service, RECORDED["importance"])).result(WAIT)
    for key in ("loss:sum", "custom/ratio:mean"):
        assert on_server.metrics[key] == pytest.approx(in_client.metrics[key], rel=1e-5)
    assert_bits_equal(logprobs(on_server), logprobs(in_client))
    assert all("elementwise_loss" not in one for one in on_server.loss_fn_outputs)
    for run in (here, there):
        run.optim_step(ADAM).result(WAIT)
    for a, b in zip(logprobs(forward(here, [datum(TOKENS)])), logprobs(forward(there, [datum(TOKENS)])), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_several_targets_per_position(service):
    """`[T, K]` inputs, and a loss that reads no other."""
    rows = np.arange(21).reshape(7, 3)
    one = datum(TOKENS[:-1], target_tokens=tensor(rows, "int64"), mask=tensor(np.ones((7, 3)), "float32"))
    result = lora(service).forward_backward_custom([one], upload(service, RECORDED["wide_sums"])).result(WAIT)
    (lp,) = logprobs(result)
    assert lp.shape == (7, 3) and np.isfinite(result.metrics["loss:sum"])


def test_what_a_datum_lacks_is_named(service):
    handle, run = upload(service, RECORDED["ppo_clip"]), lora(service)
    config = {"loss_id": handle.loss_id}
    plain = [datum(TOKENS[:-1], target_tokens=TOKENS[1:])]
    refused(lambda: run.forward_backward(plain, "custom", config).result(WAIT), "data[0].loss_fn_inputs.old", "ppo_clip")
    flat = rl_data({"old": tensor(np.zeros((7, 2)), "float32")})
    refused(lambda: run.forward_backward(flat, "custom", config).result(WAIT), "data[0].loss_fn_inputs.old", "2 dimensions")
    short = rl_data({"advantages": tensor(np.zeros(3), "float32")})
    refused(lambda: run.forward_backward(short, "custom", config).result(WAIT), "mul", "operator.mul", "do not broadcast")
    refused(lambda: run.forward_backward(rl_data(), "custom", {"loss_id": "x"}).result(WAIT), "loss_id", "no custom loss")
    train(run, rl_data(), "custom", config)


def test_a_loss_belongs_to_its_session(server, service):
    handle = upload(service, RECORDED["reductions"])
    with client(server) as other:
        run = lora(other)
        config = {"loss_id": handle.loss_id}
        data = [datum(TOKENS[:-1], target_tokens=TOKENS[1:])]
        refused(lambda: run.forward_backward(data, "custom", config).result(WAIT), "loss_id", "no custom loss")


def node(op, target, args=(), name="x"):
    return {"op": op, "name": name, "target": target, "args": list(args), "kwargs": {}}


def hostile(*nodes):
    inner = [node("placeholder", "logprobs", name="logprobs"), *nodes, node("call_method", "sum", [{"ref": "logprobs"}], "loss")]
    returned = {"tuple": [{"ref": "loss"}, {"dict": {}}]}
    return {"format": 1, "nodes": [*inner, node("output", "output", [returned], "output")]}


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ([node("call_function", "torch.exp", [{"ref": "x"}])], ("x", "torch.exp", "refers to itself")),
        ([node("call_function", "torch.exp", [{"ref": "loss"}])], ("x", "torch.exp", "no earlier node")),
        ([node("call_function", "torch.exp", [1.0], "logprobs")], ("logprobs", "torch.exp", "has this name")),
        ([node("call_function", "os.system", ["true"])], ("x", "os.system", "not allowed")),
        ([node("call_function", "builtins.eval", ["1"])], ("x", "builtins.eval", "not allowed")),
        ([node("call_method", "__reduce__", [{"ref": "logprobs"}])], ("x", "__reduce__", "not allowed")),
        ([node("get_attr", "weight")], ("x", "weight", "capture")),
        ([node("call_module", "linear")], ("x", "linear", "modules")),
        ([node("call_function", "torch.cat", [[[[[[[[[[[1]]]]]]]]]]])], ("x", "torch.cat", "levels deep")),
        ([node("call_function", "torch.exp", [{"code": "x"}])], ("x", "torch.exp", "code")),
        ([node("call_function", "torch.exp", [1.0], f"n{i}") for i in range(1100)], ("graph.nodes", "at most 1024")),
    ],
)
def test_hostile_graphs_are_refused_by_name(wire, nodes, names):
    body = {"session_id": wire.session(), "custom_loss_seq_id": 0, "name": "f", "graph": hostile(*nodes)}
    body["inputs"] = [{"name": "logprobs", "rank": 1}]
    raw.refused(wire.post("create_custom_loss", body), *names, statuses=(400,))


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ([node("call_function", "torch.zeros", [10**12, 10**12])], ("x", "torch.zeros", "costs more")),
        ([node("call_function", "torch.arange", [10**15])], ("x", "torch.arange", "costs more")),
        ([node("call_method", "repeat", [{"ref": "logprobs"}, 10**9])], ("x", "repeat", "costs more")),
        ([node("call_function", "getattr", [{"ref": "logprobs"}, "__class__"])], ("x", "getattr", "__class__", "not allowed")),
        ([node("call_function", "operator.floordiv", [1, 0])], ("x", "operator.floordiv", "division by zero")),
        ([node("call_function", "operator.getitem", [{"ref": "logprobs"}, 99])], ("x", "operator.getitem", "out of range")),
    ],
)
def test_what_is_only_known_when_it_runs_is_refused_by_name(service, nodes, names):
    definition = {"name": "f", "inputs": [{"name": "logprobs", "rank": 1}], "graph": hostile(*nodes)}
    config = {"loss_id": upload(service, definition).loss_id}
    data = [datum(TOKENS[:-1], target_tokens=TOKENS[1:])]
    run = lora(service)
    refused(lambda: run.forward_backward(data, "custom", config).result(WAIT), *names)


def test_after_a_kill_the_loss_is_there(own):
    """Replayed requests and later ones use it as before."""
    with client(own) as service:
        handle = upload(service, RECORDED["kl_penalty"])
        calm, struck = lora(service), lora(service)
        data = rl_data({"beta": tensor(np.float32(0.25), "float32")})
        step = lambda run: train(run, data, "custom", {"loss_id": handle.loss_id}).metrics["loss:sum"]
        expected = [step(calm) for _ in range(4)]
        losses = [step(struck) for _ in range(2)]
        own.kill()
        own.start()
        assert losses + [step(struck) for _ in range(2)] == expected
        assert_bits_equal(logprobs(forward(calm, [datum(TOKENS)])), logprobs(forward(struck, [datum(TOKENS)])))


def test_traced_by_torch(service, monkeypatch):
    """Where torch is installed: the SDK traces and uploads; then the same handle runs in the client."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(training_client, "torch", torch)

    def clipped(logprobs, old, advantages):
        ratio = torch.exp(logprobs - old)
        objective = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        return -objective.sum(), {"custom/ratio:mean": ratio.mean()}

    handle = service.create_custom_loss(clipped, {"logprobs": 1, "old": 1, "advantages": 1}).result(WAIT)
    assert handle.loss_id is not None
    runs = lora(service), lora(service)
    handles = handle, dataclasses.replace(handle, loss_id=None)
    results = [run.forward_backward_custom(rl_data(), one).result(WAIT) for run, one in zip(runs, handles, strict=True)]
    for key in ("loss:sum", "custom/ratio:mean"):
        assert results[0].metrics[key] == pytest.approx(results[1].metrics[key], rel=1e-5)
    after = []
    for run in runs:
        run.optim_step(ADAM).result(WAIT)
        after.append(logprobs(forward(run, [datum(TOKENS)]))[0])
    np.testing.assert_allclose(after[0], after[1], atol=2e-5)
