"""The future protocol without the SDK: order, retries, repeated reads, encodings, malformed bodies."""

import concurrent.futures
import json
import time

import httpx
import numpy as np
import pytest
import zstandard
from tinker.proto.response_conv import deserialize_forward_backward_output, deserialize_sample_response

import wire as raw
from process import PATIENCE
from server import TINY


@pytest.fixture
def fresh(wire):
    """A run of its own."""
    return wire.run()


def id_of(response) -> str:
    assert response.status_code == 200, response.text
    return response.json()["request_id"]


@pytest.fixture(scope="module", autouse=True)
def held(server):
    """A poll that waits while the other tests run: its run, its request, its answer and the seconds it took."""
    wire = raw.Wire(server)
    run = wire.run()
    pending = id_of(wire.forward_backward(run, 2))

    def poll():
        started = time.monotonic()
        return wire.poll(pending, accept=raw.PROTOBUF), time.monotonic() - started

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield run, pending, pool.submit(poll)


def test_execution_follows_seq_id_not_arrival(wire, fresh):
    """3, 2, then 1; every submit is answered at once and executes when its turn comes."""
    started = time.monotonic()
    step = id_of(wire.optim_step(fresh, 2))
    last = id_of(wire.forward_backward(fresh, 3))
    assert time.monotonic() - started < 5
    first = id_of(wire.forward_backward(fresh, 1))
    assert "error" not in wire.result(step).json()
    ordered = wire.run()
    expected = [
        id_of(wire.forward_backward(ordered, 1)),
        id_of(wire.optim_step(ordered, 2)),
        id_of(wire.forward_backward(ordered, 3)),
    ]
    wire.result(expected[1])
    assert [wire.loss(first), wire.loss(last)] == [wire.loss(expected[0]), wire.loss(expected[2])]
    assert wire.loss(last) < wire.loss(first)


def test_a_retry_is_the_same_request(wire, fresh):
    """(run, seq_id) identifies a request whatever its idempotency key; it executes once."""
    submits = [id_of(wire.forward_backward(fresh, 1, headers={"x-idempotency-key": f"k{i}"})) for i in range(3)]
    assert len(set(submits)) == 1
    steps = {id_of(wire.optim_step(fresh, 2)) for _ in range(3)}
    assert len(steps) == 1
    wire.result(*steps)
    after = wire.loss(id_of(wire.forward_backward(fresh, 3)))
    once = wire.run()
    wire.forward_backward(once, 1)
    wire.optim_step(once, 2)
    assert wire.loss(id_of(wire.forward_backward(once, 3))) == after
    assert id_of(wire.forward_backward(fresh, 1)) == submits[0]


def test_other_content_under_the_same_number_is_422(wire, fresh):
    """Not 409, which the client retries for minutes."""
    first = id_of(wire.forward_backward(fresh, 1))
    raw.refused(wire.forward_backward(fresh, 1, data=[[9, 8, 7]]), "seq_id", statuses=(422,))
    raw.refused(wire.optim_step(fresh, 1), "seq_id", statuses=(422,))
    assert wire.loss(first) > 0


def test_creation_is_idempotent(wire):
    """A creation that was repeated after a timeout is the first one."""
    session = wire.session()
    assert id_of(wire.create_model(session)) == id_of(wire.create_model(session))
    raw.refused(wire.create_model(session, rank=4), "model_seq_id", statuses=(422,))
    samplers = [wire.sampling_session(session).json() for _ in range(2)]
    assert samplers[0] == samplers[1]
    raw.refused(wire.sampling_session(session, base_model="tiny-other"), statuses=(400, 404, 422))


def test_sample_retries(wire):
    """The same sequence ids; 64-bit numbers; other content is refused."""
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    for seq in (0, 3_000_000_000, 10**18):
        answers = [wire.asample(sampler, seq, num_samples=2).json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert len(set(answers[0]["sample_sequence_ids"])) == 2
        assert len(wire.samples(answers[0]["request_id"]).sequences) == 2
    raw.refused(wire.asample(sampler, 0, num_samples=3), "seq_id", statuses=(422,))


def test_samples_are_not_ordered(wire):
    """A missing number holds nothing up: `seq_id` only identifies."""
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    assert wire.samples(id_of(wire.asample(sampler, 7))).sequences


def ephemeral(wire, run, seq, number):
    body = {"model_id": run, "seq_id": seq, "sampling_session_seq_id": number, "kind": "snapshot"}
    return wire.post("save_weights_for_sampler", body | {"type": "save_weights_for_sampler"})


def test_an_ephemeral_save_retried_with_another_session_number(wire, fresh):
    """The client uses a new `sampling_session_seq_id` for the retry."""
    first, second = id_of(ephemeral(wire, fresh, 1, 0)), id_of(ephemeral(wire, fresh, 1, 1))
    assert first == second
    sampler = wire.result(first).json()["sampling_session_id"]
    assert wire.samples(id_of(wire.asample(sampler, 0))).sequences


def test_results_can_be_read_again(wire, fresh):
    """Several times, at once, in any order."""
    request = id_of(wire.forward_backward(fresh, 1))
    first = wire.result(request)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        repeated = list(pool.map(lambda _: wire.poll(request), range(16)))
    assert {r.content for r in repeated} == {first.content}


def test_encodings(wire, fresh):
    """Protobuf for outputs if it is asked for, JSON for the rest and for every failure, whatever `Accept` says."""
    loss = wire.result(id_of(wire.forward_backward(fresh, 1)), raw.PROTOBUF)
    assert loss.headers["content-type"].startswith(raw.PROTOBUF)
    step = id_of(wire.optim_step(fresh, 2))
    wire.result(step)
    answer = wire.poll(step, accept=raw.PROTOBUF)
    assert raw.is_json(answer) and "error" not in answer.json()
    bad = id_of(wire.forward_backward(fresh, 3, loss="no_such_loss"))
    wire.result(bad)
    raw.failed(wire.poll(bad, accept=raw.PROTOBUF), "no_such_loss")


def test_training_results_in_json_are_those_in_protobuf(wire, fresh):
    """Without protobuf in `Accept` a result is JSON, and holds the same numbers to the bit."""
    request = id_of(wire.forward_backward(fresh, 1, data=[[1, 2, 3, 4], [5, 6, 7]]))
    binary = deserialize_forward_backward_output(wire.result(request, raw.PROTOBUF).content)
    for accept in (raw.JSON, "*/*"):
        answer = wire.result(request, accept)
        assert raw.is_json(answer), answer.headers["content-type"]
        body = answer.json()
        assert body["loss_fn_output_type"] == binary.loss_fn_output_type and body["metrics"] == binary.metrics
        assert len(body["loss_fn_outputs"]) == 2
        for found, expected in zip(body["loss_fn_outputs"], binary.loss_fn_outputs, strict=True):
            assert found.keys() == expected.keys() >= {"logprobs", "elementwise_loss"}
            for name, tensor in expected.items():
                assert found[name] == {"data": tensor.data, "dtype": tensor.dtype, "shape": tensor.shape}


def test_samples_in_json_are_those_in_protobuf(wire):
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    asked = {"prompt_logprobs": True, "topk_prompt_logprobs": 2, "topk_sample_logprobs": 3}
    request = id_of(wire.asample(sampler, 0, num_samples=2, **asked))
    binary = deserialize_sample_response(wire.result(request, raw.PROTOBUF).content)
    body = wire.result(request).json()
    assert body["prompt_logprobs"] == binary.prompt_logprobs
    assert body["topk_prompt_logprobs"] == as_json(binary.topk_prompt_logprobs)
    assert len(body["sequences"]) == 2
    for found, expected in zip(body["sequences"], binary.sequences, strict=True):
        assert found["stop_reason"] == expected.stop_reason
        assert (found["tokens"], found["logprobs"]) == (expected.tokens, expected.logprobs)
        assert found["topk_logprobs"] == as_json(expected.topk_logprobs)


def as_json(value):
    """Tuples as lists."""
    return json.loads(json.dumps(value))


def test_a_held_poll_wakes_at_once(wire, fresh):
    pending = id_of(wire.forward_backward(fresh, 2))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(wire.poll, pending, raw.PROTOBUF)
        time.sleep(1)
        assert not held.done()
        wire.forward_backward(fresh, 1)
        assert held.result(10 * PATIENCE).headers["content-type"].startswith(raw.PROTOBUF)


def test_unknown_futures(wire, fresh):
    """410 for whoever waits for a sample, so that it resamples; 404 for the rest."""
    known = id_of(wire.optim_step(fresh, 1))
    for unknown in (known[:-1] + ("1" if known[-1] != "1" else "2"), "nonsense"):
        raw.refused(wire.poll(unknown, kind="Sample"), unknown, statuses=(410,))
        for kind in ("OptimStep", "ForwardBackward", None):
            raw.refused(wire.poll(unknown, kind=kind), unknown, statuses=(404,))
    assert wire.poll(known, kind="Sample").status_code == 200


def test_metadata_is_answered_once_at_most(wire, fresh):
    """A poll that wants the payload gets it."""
    request = id_of(wire.forward_backward(fresh, 1))
    whole = wire.result(request, raw.PROTOBUF)
    for _ in range(2):
        answer = wire.poll(request, raw.PROTOBUF, allow_metadata_only=False)
        assert answer.content == whole.content and answer.headers["content-type"].startswith(raw.PROTOBUF)


def test_polls_never_fault(wire):
    """A 5xx would be retried without a pause, for ever."""
    for body in (
        {},
        {"request_id": None},
        {"request_id": 7},
        {"request_id": ""},
        {"request_id": "x" * 10_000},
        [],
        "x",
        None,
    ):
        assert 400 <= wire.post("retrieve_future", body).status_code < 500
    odd = {"request_id": "\u0000'; drop table requests; --"}
    assert wire.post("retrieve_future", odd).status_code in (400, 404, 410, 422)


def test_training_submits_are_queued_not_refused(wire, fresh):
    """A 429 would be retried and then fail; hundreds of requests of one run wait in line."""
    requests = [id_of(wire.forward_backward(fresh, i)) for i in range(1, 301)]
    assert len(set(requests)) == 300
    assert wire.loss(requests[-1]) > 0


def test_settings_come_from_the_second_map(wire, fresh):
    """It holds texts too, and it wins over the legacy one."""

    def submit(seq, legacy, second):
        request = raw.message(fresh, seq, [[1, 2, 3]], loss="ppo")
        for key, value in {"logprobs": [-6.0] * 2, "advantages": [1.0] * 2}.items():
            raw.put(request.data[0], key, value, "<f4", raw.pb.DTYPE_FLOAT32)
        for key, value in legacy.items():
            request.loss_fn_config[key] = value
        for key, value in second.items():
            field = "text" if isinstance(value, str) else "number"
            setattr(request.loss_fn_config_v2[key], field, value)
        return id_of(wire.forward_backward_bytes(request.SerializeToString()))

    tight, wide = {"clip_high_threshold": 1e-3, "clip_low_threshold": 1e-4}, {"clip_high_threshold": 1e9}
    legacy, both, second = submit(1, tight, {}), submit(2, wide, tight), submit(3, {}, tight)
    assert wire.loss(legacy) == wire.loss(both) == wire.loss(second)
    raw.failed(wire.result(submit(4, tight, {"loss_id": "text"})), "loss_id")


def test_the_type_of_a_response_is_absent_or_right(wire):
    """The client refuses an answer with another literal."""
    session = wire.session()
    bodies = {
        "client/config": {"sdk_version": "0.38.0"},
        "session_heartbeat": {"session_id": session, "type": "session_heartbeat"},
        "get_info": {"model_id": wire.run(session), "type": "get_info"},
        "create_sampling_session": {"session_id": session, "sampling_session_seq_id": 0, "base_model": TINY},
    }
    for path, body in bodies.items():
        assert wire.ok(path, body).get("type") in (None, path)


def test_batched_completions(wire):
    """Every completion after the cursor, failed ones too; the cursor covers what was delivered."""
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    target = {"type": "sampling_session", "sampling_session_id": sampler, "cloned_sampler_id": 0}
    wanted = {id_of(wire.asample(sampler, i)) for i in range(5)}
    refused = wire.asample(sampler, 5, tokens=[99999])
    failing = {id_of(refused)} if refused.status_code == 200 else set()
    states, cursor = {}, 0
    while len(states) < len(wanted | failing):
        body = {"target": target, "prev_cursor": cursor, "retrieved_request_ids": list(states)}
        answer = wire.ok("retrieve_futures", body)
        assert answer["cursor"] >= cursor + bool(answer["completions"])
        cursor = answer["cursor"]
        states |= {c["request_id"]: c["state"] for c in answer["completions"]}
    assert states == {r: "finished" for r in wanted} | {r: "failed" for r in failing}
    started = time.monotonic()
    empty = wire.ok(
        "retrieve_futures", {"target": target, "prev_cursor": cursor, "timeout": 0.0, "retrieved_request_ids": []}
    )
    assert (empty["completions"], empty["cursor"]) == ([], cursor)
    assert time.monotonic() - started < 3
    clone = {**target, "cloned_sampler_id": 3}
    assert (
        wire.ok("retrieve_futures", {"target": clone, "prev_cursor": 0, "timeout": 0.0, "retrieved_request_ids": []})[
            "completions"
        ]
        == []
    )


def test_cancelling(wire):
    """Idempotent; a cancelled sample's poll ends, and an unknown id is no fault of the server."""
    sampler = wire.sampling_session(wire.session()).json()["sampling_session_id"]
    request = id_of(wire.asample(sampler, 0, num_samples=64, params={"max_tokens": 500, "stop": []}))
    for _ in range(2):
        assert wire.post("cancel_future", {"request_id": request}).status_code < 300
    answer = wire.result(request)
    assert answer.status_code in (200, 410), answer.text
    assert wire.post("cancel_future", {"request_id": "nonsense"}).status_code in (200, 204, 404)
    assert wire.samples(id_of(wire.asample(sampler, 1))).sequences


# --- Bodies that are no requests ---


def works(wire, run, seq=1):
    assert wire.loss(id_of(wire.forward_backward(run, seq))) > 0


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.99])
def test_truncated_bodies(wire, fresh, keep):
    """Run and number are at the front and can be read, so the number is used up."""
    whole = raw.message(fresh, 1, [[1, 2, 3, 4]] * 20).SerializeToString()
    raw.refused_or_failed(wire, wire.forward_backward_bytes(whole[: int(len(whole) * keep)]), "ForwardBackwardRequest")
    works(wire, fresh, 2)


def test_a_body_without_a_readable_number(wire, fresh):
    """Nothing is recorded, and the `seq_id` stays free."""
    raw.refused(wire.forward_backward_bytes(raw.message(fresh, 1).SerializeToString()[:5]))
    works(wire, fresh)


def test_corrupt_bodies(wire, fresh):
    """Whatever the bytes: a status below 500, and the run continues."""
    rng = np.random.default_rng(0)
    whole = bytearray(raw.message(fresh, 900, [[1, 2, 3, 4]] * 3).SerializeToString())
    for _ in range(60):
        body = bytearray(whole)
        for at in rng.integers(0, len(body), 4):
            body[at] = rng.integers(256)
        assert wire.forward_backward_bytes(bytes(body)).status_code < 500
    for _ in range(20):
        assert wire.forward_backward_bytes(rng.bytes(200)).status_code in (400, 404, 422)
    works(wire, fresh)


def test_empty_body(wire, fresh):
    raw.refused(wire.forward_backward_bytes(b""))
    raw.refused(wire.http.post("optim_step", content=b"", headers={"content-type": raw.JSON}))
    works(wire, fresh)


def test_broken_zstd(wire, fresh):
    body = zstandard.compress(raw.message(fresh, 1).SerializeToString())
    for broken in (body[:-5], b"not zstd at all", body[:4] + b"\xff" * 20):
        raw.refused(wire.forward_backward_bytes(broken, {"content-encoding": "zstd"}), "zstd")
    works(wire, fresh)


def test_unknown_content_encoding(wire, fresh):
    answer = wire.forward_backward_bytes(raw.message(fresh, 1).SerializeToString(), {"content-encoding": "br"})
    raw.refused(answer, "br", statuses=(400, 415))
    works(wire, fresh)


def test_zstd_bomb(wire, fresh):
    """A few kilobytes that would decompress to four gigabytes are refused before decompression."""
    block = zstandard.compress(b"\0" * (64 << 20), 19)
    raw.refused(wire.forward_backward_bytes(block * 64, {"content-encoding": "zstd"}), statuses=(400, 413))
    works(wire, fresh)


def test_large_but_legal_bodies(wire, fresh):
    """5 MB and one oversized datum pass the size limits; the error names what is wrong with them."""
    many = [[i % 512 for i in range(j, j + 100)] for j in range(900)]
    small = wire.forward_backward(fresh, 1, data=many[:2])
    assert small.status_code == 200
    body = raw.message(fresh, 2, [[1] * 400_000])
    assert body.ByteSize() > 5_000_000
    raw.refused_or_failed(wire, wire.forward_backward_bytes(body.SerializeToString()), "512")
    works(wire, fresh, 3)


def test_oversized_bodies(wire, fresh):
    """A body beyond the limit is 413; of one far beyond it the rest is not read."""

    def send(mebibytes):
        size = {"content-length": str(mebibytes << 20)}
        return wire.forward_backward_bytes((bytes(1 << 20) for _ in range(mebibytes)), size)

    raw.refused(send(257), str(256 << 20), statuses=(413,))
    try:
        answer = send(2048)
    except httpx.TransportError:
        pass
    else:
        raw.refused(answer, statuses=(413,))
    works(wire, fresh)


def corrupt(edit):
    def make(run):
        request = raw.message(run, 1)
        edit(request.data[0])
        return request

    return make


def shape(values):
    def edit(item):
        del item.loss_fn_inputs["target_tokens"].shape[:]
        item.loss_fn_inputs["target_tokens"].shape.extend(values)

    return edit


def sparse(crow, columns, values=(1.0,) * 3, dims=(3, 4)):
    def edit(item):
        target = item.loss_fn_inputs["weights"]
        target.Clear()
        target.dtype = raw.pb.DTYPE_FLOAT32
        target.sparse_csr.values = np.asarray(values, "<f4").tobytes()
        target.sparse_csr.crow_indices = np.asarray(crow, "<i8").tobytes()
        target.sparse_csr.col_indices = np.asarray(columns, "<i8").tobytes()
        target.shape.extend(dims)

    return edit


def set_dtype(value):
    def edit(item):
        item.loss_fn_inputs["target_tokens"].dtype = value

    return edit


def set_dense(value):
    def edit(item):
        item.loss_fn_inputs["target_tokens"].dense = value

    return edit


def set_tokens(value):
    def edit(item):
        item.model_input[0].encoded_text.tokens = value

    return edit


TENSORS = {
    "shape larger than the data": (shape([1 << 40]), "target_tokens"),
    "shape that overflows": (shape([1 << 62, 1 << 62]), "target_tokens"),
    "negative extent": (shape([-3]), "target_tokens"),
    "odd byte count": (set_dense(b"\0" * 7), "target_tokens"),
    "no data": (set_dense(b""), "target_tokens"),
    "no element type": (set_dtype(0), "target_tokens"),
    "unknown element type": (set_dtype(77), "target_tokens"),
    "half a token": (set_tokens(b"\1\0\0"), "model_input"),
    "row pointers that fall": (sparse([0, 3, 1, 3], [0, 1, 2]), "weights"),
    "row pointers beyond the data": (sparse([0, 1, 2, 9], [0, 1, 2]), "weights"),
    "too few row pointers": (sparse([0, 3], [0, 1, 2]), "weights"),
    "column beyond the shape": (sparse([0, 1, 2, 3], [0, 1, 4]), "weights"),
    "negative column": (sparse([0, 1, 2, 3], [0, -1, 2]), "weights"),
    "values short": (sparse([0, 1, 2, 3], [0, 1, 2], (1.0,)), "weights"),
    "huge sparse shape": (sparse([0, 1, 2, 3], [0, 1, 2], dims=(3, 1 << 40)), "weights"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_malformed_tensors(wire, fresh, case):
    """The failure uses up the request's `seq_id`; a rejection at submission leaves it free."""
    edit, name = TENSORS[case]
    answer = wire.forward_backward_bytes(corrupt(edit)(fresh).SerializeToString())
    raw.refused_or_failed(wire, answer, name)
    works(wire, fresh, 2)


def test_a_refused_number_counts_as_used(wire, fresh):
    """After a rejected submit the client continues with the next `seq_id`."""
    raw.refused_or_failed(wire, wire.optim_step(fresh, 1, learning_rate=-1.0), "learning_rate")
    body = {"model_id": fresh, "seq_id": 2, "path": "../x", "type": "save_weights", "overwrite": False}
    raw.refused_or_failed(wire, wire.post("save_weights", body), "path")
    works(wire, fresh, 3)


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("create_model", {"model_seq_id": 0, "base_model": TINY}, "session_id"),
        ("create_model", {"session_id": "x", "model_seq_id": "many", "base_model": TINY}, "model_seq_id"),
        ("optim_step", {"seq_id": 1, "adam_params": {}}, "model_id"),
        ("asample", {"seq_id": 0, "prompt": {"chunks": []}, "sampling_params": {}}, "sampling_session_id"),
        ("create_sampling_session", {"sampling_session_seq_id": 0}, "session_id"),
        ("retrieve_future", {}, "request_id"),
        ("weights_info", {}, "tinker_path"),
        ("session_heartbeat", {}, "session_id"),
    ],
)
def test_missing_and_wrong_fields(wire, path, body, name):
    raw.refused(wire.post(path, body), name, statuses=(400, 422))


def test_text_that_is_no_json(wire):
    answer = wire.http.post("create_session", content=b"{nope", headers={"content-type": "application/json"})
    raw.refused(answer, "json", statuses=(400,))


def test_deep_json(wire):
    nested = json.dumps({"session_id": 0}).replace("0", "[" * 5000 + "]" * 5000)
    answer = wire.http.post("session_heartbeat", content=nested, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "no_such_call"),
    ],
)
def test_what_is_not_supported_says_so(wire, method, path):
    """404 with a text, never 5xx: the client would retry it for minutes."""
    response = wire.http.request(method, path, json={} if method != "GET" else None)
    raw.refused(response, path.split("/")[-1], statuses=(404,))


def test_wrong_method(wire):
    assert wire.http.get("create_session").status_code in (404, 405)


def test_the_poll_is_held_open(wire, held):
    """A pending answer comes after a long wait, below the client's 45 s."""
    run, pending, polled = held
    answer, waited = polled.result()
    assert 15 < waited < 44
    assert answer.status_code == 408 or (raw.is_json(answer) and answer.json()["type"] == "try_again")
    assert answer.json()["queue_state"] in ("active", "paused_capacity", "paused_rate_limit")
    wire.forward_backward(run, 1)
    assert wire.loss(pending) > 0
