"""Invalid training requests: an error that names the field, and a run that is unaffected."""

import json

import numpy as np
import pytest
import tinker
from tinker import types

import wire as raw
from helpers import TOKENS, WAIT, assert_bits_equal, datum, forward, logprobs, lora, refused, rl_datum, tensor, train
from server import TINY

N = len(TOKENS) - 1
INPUT, TARGET, ONES = TOKENS[:-1], TOKENS[1:], [1.0] * N


def bad(**inputs):
    return datum(INPUT, **inputs)


def f32(values):
    return types.TensorData(data=values, dtype="float32", shape=[len(values)])


NAN, INF = float("nan"), float("inf")

# What is wrong, the datum, the loss, its config, what the error names.
CASES = {
    "unknown loss": (datum(TOKENS), "no_such_loss", None, ["no_such_loss"]),
    "unpublished loss": (datum(TOKENS), "stable_reinforce", None, ["stable_reinforce"]),
    "custom loss without a graph": (datum(TOKENS), "custom", {"loss_id": "x"}, ["custom"]),
    "missing targets": (bad(weights=ONES), "cross_entropy", None, ["target_tokens"]),
    "short weights": (bad(target_tokens=TARGET, weights=ONES[1:]), "cross_entropy", None, ["weights"]),
    "short targets": (bad(target_tokens=TARGET[1:], weights=ONES[1:]), "cross_entropy", None, ["target_tokens"]),
    "long targets": (bad(target_tokens=TARGET + [1], weights=ONES + [1.0]), "cross_entropy", None, ["target_tokens"]),
    "misspelt input": (bad(target_tokens=TARGET, weigths=f32(ONES)), "cross_entropy", None, ["weigths"]),
    "targets of the wrong type": (bad(target_tokens=f32(ONES)), "cross_entropy", None, ["target_tokens"]),
    "weights of the wrong type": (
        bad(target_tokens=TARGET, weights=tensor([1] * N, "int64")), "cross_entropy", None, ["weights"],
    ),
    "target beyond the vocabulary": (bad(target_tokens=[512] * N), "cross_entropy", None, ["target_tokens", "512"]),
    "negative target": (bad(target_tokens=[-1] * N), "cross_entropy", None, ["target_tokens", "-1"]),
    "token beyond the vocabulary": (
        datum([1, 9999], target_tokens=[1, 2]), "cross_entropy", None, ["model_input", "9999"],
    ),
    "negative token": (datum([1, -7], target_tokens=[1, 2]), "cross_entropy", None, ["model_input", "-7"]),
    "empty input": (datum([], target_tokens=tensor([], "int64")), "cross_entropy", None, ["model_input"]),
    "beyond the context": (datum([1] * 513, target_tokens=[1] * 513), "cross_entropy", None, ["513", "512"]),
    "NaN weight": (bad(target_tokens=TARGET, weights=[NAN] + ONES[1:]), "cross_entropy", None, ["weights"]),
    "infinite weight": (bad(target_tokens=TARGET, weights=[INF] + ONES[1:]), "cross_entropy", None, ["weights"]),
    "matrix weights for vector targets": (
        bad(target_tokens=TARGET, weights=tensor(np.ones((N, 2)), "float32")), "cross_entropy", None, ["weights"],
    ),
    "wide targets": (
        bad(target_tokens=tensor(np.ones((N, 513)), "int64")), "cross_entropy", None, ["target_tokens", "513", "512"],
    ),
    "scalar targets": (bad(target_tokens=tensor(3, "int64")), "cross_entropy", None, ["target_tokens"]),
    "unknown setting": (datum(TOKENS), "cross_entropy", {"temperature": 1.0}, ["temperature"]),
    "text setting": (rl_datum(TOKENS), "ppo", {"clip_low_threshold": "low"}, ["clip_low_threshold"]),
    "NaN setting": (rl_datum(TOKENS), "ppo", {"clip_high_threshold": NAN}, ["clip_high_threshold"]),
    "missing advantages": (bad(target_tokens=TARGET, logprobs=[-1.0] * N), "importance_sampling", None, ["advantages"]),
    "missing logprobs": (bad(target_tokens=TARGET, advantages=ONES), "ppo", None, ["logprobs"]),
    "NaN advantage": (rl_datum(TOKENS, advantages=[NAN] * N), "cispo", None, ["advantages"]),
    "NaN logprob": (rl_datum(TOKENS, logprobs=[NAN] * N), "dro", None, ["logprobs"]),
    "short advantages": (rl_datum(TOKENS, advantages=[1.0]), "importance_sampling", None, ["advantages"]),
    "image": (
        types.Datum(
            types.ModelInput(chunks=[types.ImageChunk(data=b"\x89PNG", format="png", expected_tokens=N)]),
            {"target_tokens": TARGET},
        ),
        "cross_entropy", None, ["image"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shared(service):
    """One run gets all invalid requests; its reference is computed before."""
    run = lora(service)
    return run, logprobs(forward(run, [datum(TOKENS)]))


@pytest.mark.parametrize("forward_only", [True, False], ids=["forward", "forward_backward"])
@pytest.mark.parametrize("case", CASES)
def test_bad_datum(shared, case, forward_only):
    """The failed request's `seq_id` is used up, and the next one runs."""
    run, reference = shared
    item, loss, config, names = CASES[case]
    call = run.forward if forward_only else run.forward_backward
    good = datum(TOKENS) if loss == "cross_entropy" else rl_datum(TOKENS)
    refused(lambda: call([good, item], loss, config).result(WAIT), *names)
    assert_bits_equal(reference, logprobs(forward(run, [datum(TOKENS)])))


def test_a_failed_request_leaves_no_gradient(service):
    """Not even that of the good datums beside the bad one."""
    run, clean = lora(service), lora(service)
    refused(
        lambda: run.forward_backward([datum(TOKENS), CASES["NaN weight"][0]], "cross_entropy").result(WAIT), "weights"
    )
    for each in (run, clean):
        train(each, [datum(TOKENS)])
    assert_bits_equal(*(logprobs(forward(each, [datum(TOKENS)])) for each in (run, clean)))


def test_the_error_says_which_datum(run):
    text = refused(lambda: forward(run, [datum(TOKENS), datum(TOKENS), CASES["short weights"][0]]), "weights")
    assert "2" in text


ADAM_BODY = {
    "learning_rate": 1e-2,
    "beta1": 0.9,
    "beta2": 0.95,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "grad_clip_norm": 0.0,
}


def step_body(run, seq, **adam):
    return {"model_id": run, "seq_id": seq, "type": "optim_step", "adam_params": ADAM_BODY | adam}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("learning_rate", -1.0), ("beta1", 1.5), ("beta1", -0.1), ("beta2", 1.0), ("eps", -1e-8), ("weight_decay", -1.0),
        ("learning_rate", 1e300),
    ],
)  # fmt: skip
def test_bad_optimizer_settings(wire, field, value):
    """The bad step's number is used up, and the gradient remains for the next step."""
    run, clean = wire.run(), wire.run()
    for each in (run, clean):
        wire.forward_backward(each, 1)
    raw.refused_or_failed(wire, wire.post("optim_step", step_body(run, 2, **{field: value})), field)
    wire.post("optim_step", step_body(clean, 2))
    assert wire.post("optim_step", step_body(run, 3)).status_code == 200
    losses = [wire.loss(wire.forward_backward(r, n).json()["request_id"]) for r, n in ((run, 4), (clean, 3))]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "null", '"fast"'])
def test_optimizer_settings_that_are_no_numbers(wire, value):
    run = wire.run()
    body = json.dumps(step_body(run, 1)).replace("0.01", value)
    answer = wire.http.post("optim_step", content=body, headers={"content-type": "application/json"})
    raw.refused_or_failed(wire, answer)
    following = wire.forward_backward(run, 1)
    if following.status_code == 422:
        following = wire.forward_backward(run, 2)
    assert wire.loss(following.json()["request_id"]) > 0


def test_optimizer_of_another_family(run):
    refused(lambda: run.optim_step(types.DimuonParams(learning_rate=0.1)).result(WAIT), "dimuon")
    train(run, [datum(TOKENS)])


def test_a_diverged_run_fails_alone(service):
    """A learning rate that makes the weights diverge: later requests get answers, and other runs are unaffected."""
    ruined, healthy = lora(service), lora(service)
    reference = logprobs(forward(healthy, [datum(TOKENS)]))
    huge = types.AdamParams(learning_rate=1e30, eps=1e-8)
    for _ in range(3):
        try:
            train(ruined, [datum(TOKENS)], adam=huge)
        except tinker.RequestFailedError as error:
            assert error.category in ("user", "server")
    assert_bits_equal(reference, logprobs(forward(healthy, [datum(TOKENS)])))


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"base_model": "no/such-model"}, ["no/such-model"]),
        ({"base_model": TINY, "rank": -1}, ["rank"]),
        ({"base_model": TINY, "rank": 10**6}, ["rank"]),
    ],
)
def test_bad_model(service, arguments, names):
    refused(lambda: service.create_lora_training_client(**arguments).result(WAIT), *names)
    lora(service)


def test_a_lora_config_that_trains_nothing(wire):
    """The SDK refuses it before it is sent; a client without that check gets the server's error."""
    nothing = {"rank": 8, "seed": 1, "train_unembed": False, "train_mlp": False, "train_attn": False}
    raw.refused_or_failed(wire, wire.create_model(wire.session(), lora_config=nothing), "train_")


def test_no_data(wire):
    """An output without datums would make the client divide by zero."""
    run = wire.run()
    raw.refused_or_failed(wire, wire.forward_backward(run, 1, data=[]), "data")
    assert wire.loss(wire.forward_backward(run, 2).json()["request_id"]) > 0


def test_too_many_empty_datums(wire):
    """Two bytes each in the body: they are counted before they are decoded."""
    run = wire.run()
    body = raw.message(run, 1, []).SerializeToString() + b"\x1a\x00" * (1 << 22)
    raw.refused_or_failed(wire, wire.forward_backward_bytes(body), "data", 1 << 22, 65536)
    assert wire.loss(wire.forward_backward(run, 2).json()["request_id"]) > 0


def test_too_many_empty_chunks(wire):
    run = wire.run()
    body = {"data": [{"model_input": {"chunks": [{}] * 20_000}}], "loss_fn": "cross_entropy"}
    answer = wire.post("forward_backward", {"model_id": run, "seq_id": 1, "forward_backward_input": body})
    raw.refused_or_failed(wire, answer, "data[0].model_input.chunks", 20_000, 16384)
    assert wire.loss(wire.forward_backward(run, 2).json()["request_id"]) > 0


def test_a_sparse_tensor_of_a_few_bytes(wire):
    """It would expand to 256 MiB in the server."""
    run = wire.run()
    request = raw.message(run, 1)
    targets = request.data[0].loss_fn_inputs["target_tokens"]
    targets.sparse_csr.values = np.asarray([1], "<i8").tobytes()
    targets.sparse_csr.crow_indices = np.asarray([0, 1, 1, 1], "<i8").tobytes()
    targets.sparse_csr.col_indices = np.asarray([0], "<i8").tobytes()
    targets.shape[:] = [3, 1 << 23]
    answer = wire.forward_backward_bytes(request.SerializeToString())
    raw.refused_or_failed(wire, answer, "target_tokens", 1 << 23, 1024)
    assert wire.loss(wire.forward_backward(run, 2).json()["request_id"]) > 0


def test_unknown_run(wire):
    ghost = f"{wire.session()}:train:5"
    raw.refused(wire.forward_backward(ghost, 1), ghost, statuses=(404,))
    raw.refused(wire.optim_step(ghost, 1), ghost, statuses=(404,))
    raw.refused(wire.post("get_info", {"model_id": ghost, "type": "get_info"}), ghost, statuses=(404,))


def test_sequence_numbers_start_at_one(wire):
    run = wire.run()
    for seq in (0, -3):
        raw.refused(wire.forward_backward(run, seq), "seq_id")
    assert wire.loss(wire.forward_backward(run, 1).json()["request_id"]) > 0
