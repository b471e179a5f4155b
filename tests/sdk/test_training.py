"""forward, forward_backward and optim_step: what they compute and how they combine."""

import numpy as np
import pytest
import zstandard
from tinker import types

import wire as raw
from helpers import (
    ADAM, TOKENS, WAIT, assert_bits_equal, client, csr, datum, elementwise, forward, full, logprobs, lora, refused,
    rl_datum, tensor, train,
)  # fmt: skip
from server import GOLDEN, TINY

MODELS = {TINY: GOLDEN / "llama", "tiny-qwen3": GOLDEN / "qwen3"}
BATCH = [datum(TOKENS), datum(TOKENS[::-1]), datum(TOKENS[2:5])]


def test_model_id_and_info(service, run):
    """The id is computed by the client on resume; `model_name` is not null."""
    session = service.holder.get_session_id()
    assert run.model_id.startswith(f"{session}:train:")
    info = run.get_info()
    assert info.model_id == run.model_id
    assert info.model_data.model_name == TINY
    assert (info.is_lora, info.lora_rank) == (True, 8)
    assert info.optimizer_config.type == "adamw"


@pytest.mark.gpu_core
def test_full_model_info(service):
    info = full(service).get_info()
    assert info.is_lora is False


@pytest.mark.gpu_core
def test_outputs_and_metrics(run):
    """One record per datum, keys with one colon, `loss:sum` always."""
    output = run.forward_backward(BATCH, "cross_entropy").result(WAIT)
    assert [len(lp) for lp in logprobs(output)] == [7, 7, 2]
    assert all(key.count(":") == 1 for key in output.metrics)
    total = sum(terms.sum() for terms in elementwise(output))
    assert output.metrics["loss:sum"] == pytest.approx(total, rel=1e-5)


def test_training_lowers_the_loss(run):
    losses = [train(run, BATCH).metrics["loss:sum"] for _ in range(10)]
    assert losses[-1] < losses[0] / 2


def test_optim_step_metrics_are_numbers(run):
    run.forward_backward(BATCH, "cross_entropy")
    metrics = run.optim_step(ADAM).result(WAIT).metrics or {}
    assert all(np.isfinite(value) for value in metrics.values())


@pytest.mark.gpu_core
def test_forward_leaves_the_gradient_alone(service):
    """A `forward` between `forward_backward` and `optim_step` changes nothing."""
    plain, disturbed = lora(service), lora(service)
    plain.forward_backward(BATCH, "cross_entropy")
    disturbed.forward(BATCH[:1], "cross_entropy")
    disturbed.forward_backward(BATCH, "cross_entropy")
    disturbed.forward(BATCH, "cross_entropy")
    for run in (plain, disturbed):
        run.optim_step(ADAM).result(WAIT)
    assert_bits_equal(logprobs(forward(plain, BATCH)), logprobs(forward(disturbed, BATCH)))


def test_gradients_accumulate_until_the_step(service):
    """Two calls before a step equal one call with all data; the step clears what it used."""
    together, apart = lora(service), lora(service)
    for _ in range(2):
        train(together, BATCH)
        apart.forward_backward(BATCH[:1], "cross_entropy")
        apart.forward_backward(BATCH[1:], "cross_entropy")
        apart.optim_step(ADAM).result(WAIT)
    for a, b in zip(logprobs(forward(together, BATCH)), logprobs(forward(apart, BATCH)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_step_without_a_gradient_is_accepted(run):
    before = logprobs(forward(run, BATCH))
    run.optim_step(ADAM).result(WAIT)
    assert_bits_equal(before, logprobs(forward(run, BATCH)))


def test_clipping_bounds_the_step(service):
    """With plain momentum-free steps a clipped gradient moves the weights less."""
    free, clipped = lora(service), lora(service)
    adam = {"learning_rate": 1e-2, "beta1": 0.0, "beta2": 0.0, "eps": 1.0}
    before = logprobs(forward(free, BATCH))
    train(free, BATCH, adam=types.AdamParams(**adam))
    train(clipped, BATCH, adam=types.AdamParams(**adam, grad_clip_norm=1e-6))
    moved = lambda run: max(np.abs(a - b).max() for a, b in zip(logprobs(forward(run, BATCH)), before))  # noqa: E731
    assert moved(clipped) < moved(free) / 100


def test_seed_repeats_a_run(service):
    """The same seed and the same requests give the same bits; another seed does not."""

    def after(seed):
        run = lora(service, seed=seed)
        train(run, BATCH)
        return logprobs(forward(run, BATCH))

    assert_bits_equal(after(7), after(7))
    assert any(not np.array_equal(a, b) for a, b in zip(after(7), after(8)))


@pytest.mark.parametrize("parts", [{"train_mlp": False}, {"train_attn": False}, {"train_unembed": False}])
@pytest.mark.parametrize("rank", [1, 5])
def test_any_rank_on_any_part(service, parts, rank):
    run = lora(service, rank=rank, **parts)
    assert train(run, BATCH).metrics["loss:sum"] > forward(run, BATCH).metrics["loss:sum"]


def test_adapters_of_several_bases_and_full_models_side_by_side(service):
    runs = [lora(service), lora(service, "tiny-qwen3", rank=3), full(service), full(service, "tiny-qwen3")]
    adam = types.AdamParams(learning_rate=1e-3, eps=1e-8)
    pending = [(r.forward_backward(BATCH, "cross_entropy"), r.optim_step(adam)) for _ in range(3) for r in runs]
    losses = [result.result(WAIT).metrics["loss:sum"] for result, _ in pending]
    assert all(last < first for first, last in zip(losses[:4], losses[-4:], strict=True))


@pytest.mark.parametrize(
    ("loss", "config"),
    [
        ("importance_sampling", None),
        ("ppo", None),
        ("ppo", {"clip_low_threshold": 0.9, "clip_high_threshold": 1.1}),
        ("cispo", None),
        ("cispo", {"clip_low_threshold": 0.5, "clip_high_threshold": 2.0}),
        ("dro", None),
        ("dro", {"beta": 0.2}),
    ],
)
def test_policy_losses_train(run, loss, config):
    """Two steps on a policy's own log-probabilities raise what has a positive advantage."""
    old = logprobs(forward(run, [datum(TOKENS)]))[0]
    data = [rl_datum(TOKENS, old.tolist(), [1.0] * len(old))]
    for _ in range(2):
        output = train(run, data, loss, config)
        assert elementwise(output)[0].shape == old.shape
    assert logprobs(forward(run, [datum(TOKENS)]))[0].sum() > old.sum()


@pytest.mark.gpu_core
def test_policy_loss_weights_mask_tokens(run):
    inputs = rl_datum(TOKENS).loss_fn_inputs
    mask = [1.0, 0.0] * 3 + [1.0]
    masked = types.Datum(rl_datum(TOKENS).model_input, {**inputs, "weights": mask})
    plain = elementwise(forward(run, [rl_datum(TOKENS)], "importance_sampling"))[0]
    np.testing.assert_allclose(
        elementwise(forward(run, [masked], "importance_sampling"))[0], plain * np.asarray(mask), rtol=1e-6
    )


def test_cross_entropy_without_weights_uses_ones(run):
    bare = datum(TOKENS[:-1], target_tokens=TOKENS[1:])
    assert_bits_equal(elementwise(forward(run, [bare])), elementwise(forward(run, [datum(TOKENS)])))


def test_zero_and_negative_weights(run):
    """Rows of weight 0 still report their log-probability; a negative weight turns the loss around."""
    n = len(TOKENS) - 1
    zero, negative = (datum(TOKENS[:-1], target_tokens=TOKENS[1:], weights=[w] * n) for w in (0.0, -1.0))
    output = forward(run, [datum(TOKENS), zero, negative])
    lp = logprobs(output)
    assert_bits_equal(lp[:2], [lp[1], lp[2]])
    assert elementwise(output)[1].sum() == 0
    assert_bits_equal([elementwise(output)[2]], [-elementwise(output)[0]])


def matrix_targets(rng, rows, k):
    targets, weights = rng.integers(0, 512, (rows, k)), rng.random((rows, k)).astype(np.float32)
    return targets, np.where(rng.random((rows, k)) < 0.3, weights, 0)


@pytest.mark.gpu_core
def test_several_targets_per_position(run):
    """[N, K] targets and weights; every cell scores its own token."""
    rng = np.random.default_rng(0)
    rows, k = len(TOKENS), 3
    targets, weights = matrix_targets(rng, rows, k)
    dense = datum(TOKENS, target_tokens=tensor(targets, "int64"), weights=tensor(weights, "float32"))
    output = forward(run, [dense])
    assert logprobs(output)[0].shape == (rows, k)
    columns = [datum(TOKENS, target_tokens=targets[:, j].tolist(), weights=weights[:, j].tolist()) for j in range(k)]
    each = forward(run, columns)
    for j in range(k):
        np.testing.assert_allclose(logprobs(output)[0][:, j], logprobs(each)[j], atol=1e-5)
    assert output.metrics["loss:sum"] == pytest.approx(each.metrics["loss:sum"], rel=1e-4)


def test_compressed_rows_equal_dense(service):
    """Targets and weights are densified each by its own indices."""
    rng = np.random.default_rng(1)
    targets, weights = matrix_targets(rng, len(TOKENS), 12)
    targets = np.where(rng.random(targets.shape) < 0.2, targets, 0)
    forms = [
        {"target_tokens": tensor(targets, "int64"), "weights": tensor(weights, "float32")},
        {"target_tokens": csr(targets, "int64"), "weights": csr(weights, "float32")},
        {"target_tokens": csr(targets, "int64"), "weights": tensor(weights, "float32")},
        {"target_tokens": tensor(targets, "int64"), "weights": csr(weights, "float32")},
    ]
    results = []
    for form in forms:
        run = lora(service)
        train(run, [datum(TOKENS, **form)])
        results.append(logprobs(forward(run, [datum(TOKENS)])))
    for other in results[1:]:
        assert_bits_equal(results[0], other)


def test_datums_of_different_width_in_one_request(run):
    """Rows of different datums may differ in length and K."""
    wide = datum(TOKENS, target_tokens=tensor(np.ones((8, 4)), "int64"), weights=tensor(np.ones((8, 4)), "float32"))
    shapes = [lp.shape for lp in logprobs(forward(run, [datum(TOKENS), wide, datum(TOKENS[:3])]))]
    assert shapes == [(7,), (8, 4), (2,)]


def test_a_prompt_in_several_chunks_is_one_sequence(run):
    pieces = [types.EncodedTextChunk(tokens=part) for part in (TOKENS[:3], [], TOKENS[3:-1])]
    split = types.Datum(types.ModelInput(chunks=pieces), datum(TOKENS).loss_fn_inputs)
    assert_bits_equal(*(logprobs(forward(run, [d])) for d in (split, datum(TOKENS))))


def test_a_tensor_without_a_shape_is_one_dimensional(run):
    bare = types.TensorData(data=TOKENS[1:], dtype="int64")
    assert_bits_equal(
        logprobs(forward(run, [datum(TOKENS[:-1], target_tokens=bare)])), logprobs(forward(run, [datum(TOKENS)]))
    )


def test_large_batch_arrives_in_chunks_first_one_last(service):
    """More than `fwdbwd_max_chunk_len` datums come as several requests, the first one last."""
    run, n = lora(service), 2100
    data = [datum([i % 512, (3 * i) % 512, (i + 7) % 512]) for i in range(n)]
    pending = run.forward_backward(data, "cross_entropy")
    step = run.optim_step(ADAM)
    output = pending.result(WAIT)
    step.result(WAIT)
    assert len(output.loss_fn_outputs) == n
    alone = lora(service)
    first_and_last = logprobs(forward(alone, [data[0], data[-1]]))
    assert_bits_equal([logprobs(output)[0], logprobs(output)[-1]], first_and_last)
    assert output.metrics["loss:sum"] == pytest.approx(sum(e.sum() for e in elementwise(output)), rel=1e-4)


def test_operations_queue_up_in_order(run):
    """Everything is submitted before anything is awaited; it executes in the order of the calls."""
    pending = []
    for _ in range(5):
        pending.append(run.forward_backward(BATCH, "cross_entropy"))
        run.optim_step(ADAM)
    losses = [p.result(WAIT).metrics["loss:sum"] for p in pending]
    assert losses == sorted(losses, reverse=True)


def test_compressed_bodies(wire):
    """A zstd frame is the same request."""
    body = raw.message(run := wire.run(), 1).SerializeToString()
    first = wire.forward_backward_bytes(body).json()
    packed = zstandard.compress(raw.message(run, 2).SerializeToString())
    second = wire.forward_backward_bytes(packed, {"content-encoding": "zstd"}).json()
    assert wire.loss(first["request_id"]) == wire.loss(second["request_id"])


def test_json_forward_backward(wire):
    """The JSON form that older clients send means the same."""
    run = wire.run()
    tokens = {"data": [2, 3, 4], "dtype": "int64", "shape": [3]}
    weights = {"data": [1.0, 1.0, 1.0], "dtype": "float32", "shape": [3]}
    inner = {
        "data": [
            {
                "model_input": {"chunks": [{"type": "encoded_text", "tokens": [1, 2, 3]}]},
                "loss_fn_inputs": {"target_tokens": tokens, "weights": weights},
            }
        ],
        "loss_fn": "cross_entropy",
    }
    answered = wire.post("forward_backward", {"model_id": run, "seq_id": 1, "forward_backward_input": inner})
    assert answered.status_code == 200, answered.text
    second = wire.forward_backward(run, 2).json()
    assert wire.loss(answered.json()["request_id"]) == wire.loss(second["request_id"])


def test_two_sessions_do_not_share_runs(server):
    with client(server) as one, client(server) as other:
        assert lora(one).model_id != lora(other).model_id


def test_unsupported_optimizer_says_so(service):
    def create():
        service.create_lora_training_client(TINY, optimizer=types.DimuonOptimizerConfig()).result(WAIT)

    refused(create, "dimuon")
