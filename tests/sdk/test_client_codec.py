"""The Python client's protobuf against the messages of the official SDK."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tinker.proto import tinker_public_pb2 as pb

import trainyard
from trainyard import _codec, _wire

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=8)
INPUTS = st.fixed_dictionaries({}, optional={"target_tokens": TOKENS, "weights": st.lists(FLOATS, max_size=6), "é": TOKENS})
CONFIG = st.dictionaries(st.text(max_size=5), st.one_of(st.floats(allow_nan=False), st.text(max_size=5)), max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TOKENS, INPUTS), max_size=3), st.text(max_size=5), CONFIG, st.booleans(), st.integers(1, 2**31 - 1))
def test_requests_are_read_by_the_official_messages(data, loss, config, forward_only, seq_id):
    examples = [trainyard.Datum(tokens, inputs) for tokens, inputs in data]
    body = _codec.training_request("run", seq_id, examples, loss, config, forward_only)
    read = pb.ForwardBackwardRequest.FromString(body)
    assert (read.model_id, read.seq_id, read.loss_fn, read.forward_only) == ("run", seq_id, loss, forward_only)
    found = {name: value.text if value.HasField("text") else value.number for name, value in read.loss_fn_config_v2.items()}
    assert found == config
    assert len(read.data) == len(data)
    for datum, (tokens, inputs) in zip(read.data, data, strict=True):
        assert np.frombuffer(datum.model_input[0].encoded_text.tokens, "<i4").tolist() == tokens
        assert datum.loss_fn_inputs.keys() == inputs.keys()
        for name, values in inputs.items():
            tensor = datum.loss_fn_inputs[name]
            assert (tensor.dtype == pb.DTYPE_INT64) == (name == "target_tokens")
            layout = "<i8" if tensor.dtype == pb.DTYPE_INT64 else "<f4"
            assert np.frombuffer(tensor.dense, layout).tolist() == np.asarray(values, layout).tolist()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(FLOATS, max_size=5), min_size=1, max_size=4), st.dictionaries(st.text(max_size=5), FLOATS))
def test_training_results_of_the_official_messages_are_read(rows, metrics):
    output = pb.ForwardBackwardOutput(loss_fn_output_type="ArrayRecord", metrics=metrics)
    record = output.loss_fn_outputs.add(num_datums=len(rows))
    ends = np.cumsum([0] + [4 * len(row) for row in rows])
    field = record.fields["logprobs"]
    field.dtype = pb.DTYPE_FLOAT32
    field.data = np.asarray([x for row in rows for x in row], "<f4").tobytes()
    field.offsets = ends.astype("<i8").tobytes()
    read = _codec.training_output(output.SerializeToString())
    assert [list(fields["logprobs"].data) for fields in read.loss_fn_outputs] == rows
    assert read.metrics == metrics


@settings(max_examples=100, deadline=None)
@given(TOKENS, st.integers(1, 3), st.booleans(), st.integers(-3, 2**31 - 1))
def test_samples_of_the_official_messages_are_read(tokens, k, stopped, hits):
    response = pb.SampleResponse(prompt_cache_hit_tokens=hits, prompt_logprobs=np.asarray([np.nan, -1], "<f4").tobytes())
    reason = pb.STOP_REASON_STOP if stopped else pb.STOP_REASON_LENGTH
    sequence = response.sequences.add(stop_reason=reason, tokens=np.asarray(tokens, "<i4").tobytes())
    sequence.logprobs = np.full(len(tokens), -0.5, "<f4").tobytes()
    cells = sequence.topk_sampled_logprobs
    cells.k, cells.length = k, len(tokens)
    cells.token_ids = np.zeros(k * len(tokens), "<i4").tobytes()
    cells.logprobs = np.tile(np.asarray([-0.5] + [-99999.0] * (k - 1), "<f4"), len(tokens)).tobytes()
    read = _codec.sample_output(response.SerializeToString())
    assert (read.prompt_cache_hit_tokens, read.prompt_logprobs) == (hits, [None, -1.0])
    [found] = read.sequences
    assert (found.tokens, found.stop_reason) == (tokens, "stop" if stopped else "length")
    assert found.logprobs == [-0.5] * len(tokens)
    assert found.topk_logprobs == [[(0, -0.5)]] * len(tokens)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(message):
    for read in (_codec.training_output, _codec.sample_output):
        try:
            read(message)
        except trainyard.ProtocolError:
            pass


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**31 - 1, 2**63 - 1, -1, -(2**63)])
def test_numbers_survive(value):
    [(number, read)] = _wire.fields(_wire.number_field(5, value))
    assert (number, _wire.as_int(read)) == (5, value)
