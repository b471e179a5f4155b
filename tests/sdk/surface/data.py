"""Methods of the SDK's data types; the server reads what they make."""

import importlib.util

import numpy as np
import pytest
from tinker import types
from tinker.types import _tensor_container as containers

from helpers import TOKENS, datum, forward, logprobs
from process import PATIENCE
from surface.table import client_only, works

HAS_TORCH = importlib.util.find_spec("torch") is not None
INPUT = types.ModelInput.from_ints(TOKENS)


@works([f"ModelInput.{name}" for name in ("from_ints", "to_ints", "length", "empty", "append", "append_int")])
def model_input(world, call):
    """What each of them makes or tells, of an input that the server scores alike."""
    whole = {
        "from_ints": lambda: call.on(types.ModelInput, TOKENS),
        "to_ints": lambda: types.ModelInput.from_ints(call.on(INPUT)),
        "length": lambda: types.ModelInput.from_ints(TOKENS[: call.get(INPUT)]),
        "empty": lambda: call.on(types.ModelInput).append(INPUT.chunks[0]),
        "append": lambda: call.on(types.ModelInput.from_ints(TOKENS[:3]), types.EncodedTextChunk(tokens=TOKENS[3:])),
        "append_int": lambda: call.on(types.ModelInput.from_ints(TOKENS[:-1]), TOKENS[-1]),
    }[call.member]()
    assert world.scores(whole) == world.scores(INPUT)


@works("EncodedTextChunk.length")
def chunk_length(world, call):
    assert call.get(INPUT.chunks[0]) == len(world.scores(INPUT)) == len(TOKENS)


@client_only("ImageChunk.length", "ImageAssetPointerChunk.length", note="the server counts images and refuses pointers")
def image_length(world, call):
    chunk = {
        "ImageChunk": lambda: types.ImageChunk(data=b"", format="png", expected_tokens=3),
        "ImageAssetPointerChunk": lambda: types.ImageAssetPointerChunk(location="x", format="png", expected_tokens=3),
    }[call.owner]()
    assert call.get(chunk) == 3


@client_only("DmelChunk.length", note="the server refuses these chunks")
def dmel_length(world, call):
    three_rows = bytes([containers._MIN_DTYPE_BYTE, 1, 3])
    assert call.get(types.DmelChunk(dmel=three_rows)) == 3


@works("ParsedCheckpointTinkerPath.from_tinker_path")
def from_tinker_path(world, call):
    run = world.trained()
    for path, kind in ((world.state(run), "training"), (world.named(run), "sampler"), (world.export(run), "external")):
        found = call.on(types.ParsedCheckpointTinkerPath, path)
        assert (found.training_run_id, found.checkpoint_type) == (run.model_id, kind)
        assert found.checkpoint_id == world.checkpoint(path).checkpoint_id


@works("Datum.with_provenance")
def with_provenance(world, call):
    """Spans that the server checks, with a loss that uses them."""
    sampler = world.run().save_weights_and_get_sampling_client(record_stability_info=True).result(60 * PATIENCE)
    sequence = sampler.sample(INPUT, 1, types.SamplingParams(max_tokens=4, stop=[])).result(60 * PATIENCE).sequences[0]
    tokens = TOKENS + sequence.tokens
    start = len(TOKENS) - 1
    plain = datum(
        tokens[:-1], target_tokens=tokens[1:], logprobs=[0.0] * start + sequence.logprobs,
        advantages=[0.0] * start + [1.0] * 4,
    )  # fmt: skip
    span = {"sequence_id": sequence.sequence_id}
    made = call.on(
        plain,
        model_input=[
            types.PromptProvenanceSpan(**span, length=len(TOKENS)),
            types.SampledProvenanceSpan(**span, length=3),
        ],
        loss_fn_inputs=[
            types.PromptProvenanceSpan(**span, offset=1, length=start),
            types.SampledProvenanceSpan(**span, length=4),
        ],
    )
    assert made.model_input_spans and not plain.model_input_spans
    result = forward(world.run(), [made], "stable_reinforce")
    assert result.metrics["stable_reinforce_trainyard/ratio:max"] == pytest.approx(1, abs=1e-5)


@works([f"TensorData.{name}" for name in ("data", "from_numpy", "to_numpy", "tolist")], unused=["pad_value"])
def tensor_data(world, call):
    """Of weights that the server multiplies the loss by, and of what it returns."""
    run = world.run()
    (scores,) = forward(run, [datum(TOKENS)]).loss_fn_outputs
    returned = {
        "data": lambda: call.get(scores["logprobs"]),
        "to_numpy": lambda: call.on(scores["logprobs"]).tolist(),
        "tolist": lambda: call.on(scores["logprobs"]),
        "from_numpy": lambda: scores["logprobs"].tolist(),
    }[call.member]()
    weights = np.arange(1.0, len(TOKENS), dtype=np.float32)
    made = call.on(types.TensorData, weights) if call.member == "from_numpy" else types.TensorData.from_numpy(weights)
    weighted = forward(run, [datum(TOKENS[:-1], target_tokens=TOKENS[1:], weights=made)])
    assert weighted.metrics["loss:sum"] == pytest.approx(-float(np.dot(returned, weights)), rel=1e-4)


@client_only(
    "TensorData.from_torch", "TensorData.from_torch_sparse", "TensorData.to_torch",
    note="needs PyTorch, without which the SDK refuses",
)  # fmt: skip
def torch_tensors(world, call):
    """A matrix of targets and back; without PyTorch the SDK says what it needs."""
    matrix = np.zeros((len(TOKENS) - 1, 40), np.int64)
    matrix[:, 0] = TOKENS[1:]
    if not HAS_TORCH:
        subject = types.TensorData.from_numpy(matrix) if call.member == "to_torch" else types.TensorData
        with pytest.raises((ImportError, AttributeError, NameError), match="PyTorch|torch|dtype"):
            call.on(subject, *([] if call.member == "to_torch" else [matrix]))
        return
    import torch

    made = types.TensorData.from_numpy(matrix)
    if call.member == "to_torch":
        made = types.TensorData.from_torch(call.on(made))
    else:
        made = call.on(types.TensorData, torch.from_numpy(matrix))
    weights = types.TensorData.from_numpy((matrix != 0).astype(np.float32))
    run = world.run()
    result = forward(run, [datum(TOKENS[:-1], target_tokens=made, weights=weights)])
    plain = forward(run, [datum(TOKENS)])
    assert result.metrics["loss:sum"] == pytest.approx(plain.metrics["loss:sum"], rel=1e-5)
    assert logprobs(result)[0].shape == matrix.shape
