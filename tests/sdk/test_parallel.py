"""Ranks that share a model or have replicas of it: what clients see of them, and runs that move between layouts.

Whole modules run on ranks with `--parallel tp=2`: test_parity.py, test_isolation.py, test_kill.py.
"""


import httpx
import numpy as np
import pytest
from tinker import types

from helpers import (
    ADAM,
    TOKENS,
    WAIT,
    assert_agree,
    client,
    datum,
    forward,
    full,
    gauge,
    logprobs,
    lora,
    prompt,
    train,
    wait_until,
)
from server import KEY, Server
from test_doctor import Doctor

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.ranks(4)]
BATCH = [datum(TOKENS), datum(TOKENS[::-1])]


def with_layout(folder, layout, **options):
    return Server(folder, flags=["--parallel", layout], **options).start()


def restart(server, layout, *flags):
    server.stop()
    command = server.server.command
    command[command.index("--parallel") + 1] = layout
    server.server.command = [*command, *flags]
    server.start()


@pytest.fixture(params=["tp=2", "dp=2"])
def two(request, tmp_path):
    """A server with two ranks, of either axis."""
    server = with_layout(tmp_path, request.param)
    server.layout = request.param
    yield server
    assert server.stop() == 0
    assert "panicked at" not in server.text(), server.tail(100)


def test_ranks_are_counted(two):
    assert gauge(two, "trainyard_ranks") == 2
    assert gauge(two, 'trainyard_layout_ranks{axis="dp"}') == (2 if two.layout == "dp=2" else 1)
    with client(two) as service:
        before = gauge(two, "trainyard_collective_bytes_total")
        train(lora(service), BATCH)
    assert gauge(two, "trainyard_collective_bytes_total") > before
    assert gauge(two, "trainyard_collective_seconds_total") > 0
    assert two.layout in two.text()


def test_a_sample_continues_what_was_trained(two):
    """Log-probabilities of sampler and trainer are equal while both work."""
    with client(two) as service:
        run = lora(service)
        for _ in range(3):
            train(run, BATCH)
        sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        pending = [sampler.sample(prompt(TOKENS[: i + 2]), 2, types.SamplingParams(max_tokens=8, stop=[], seed=i)) for i in range(5)]
        train(lora(service, seed=5), BATCH)
        for i, answer in enumerate(pending):
            for sequence in answer.result(WAIT).sequences:
                scored = logprobs(forward(run, [datum([*TOKENS[: i + 2], *sequence.tokens])]))[0]
                assert_agree([sequence.logprobs], [scored[i + 1 :]])


def test_a_run_waits_for_its_layout_or_says_that_it_changed(two):
    def changed(run) -> list:
        found = httpx.get(f"{two.url}/api/v1/training_runs/{run.model_id}", headers={"X-API-Key": KEY})
        return found.json().get("numerics_changed", [])

    with client(two) as service:
        run = lora(service)
        train(run, BATCH)
        restart(two, "tp=1")
        waiting, applied = run.forward_backward(BATCH, "cross_entropy"), run.optim_step(ADAM)
        wait_until(lambda: gauge(two, "trainyard_runs_waiting_for_numerics") > 0, two.tail, limit=60)
        restart(two, two.layout)
        waiting.result(WAIT)
        applied.result(WAIT)
        assert changed(run) == []
        before = logprobs(forward(run, BATCH))
        restart(two, "tp=1", "--numerics-mismatch", "continue")
        after = logprobs(forward(run, BATCH))
        for a, b in zip(before, after, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)
        assert two.layout in str(changed(run)), changed(run)


def test_a_checkpoint_loads_on_any_layout(two):
    with client(two) as service:
        run = lora(service)
        for _ in range(2):
            train(run, BATCH)
        path = run.save_state("moved").result(WAIT).path
        expected = logprobs(forward(run, BATCH))
        steps = [logprobs(train(run, BATCH)) for _ in range(2)]
    for layout in ["tp=1", two.layout]:
        restart(two, layout)
        with client(two) as service:
            resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
            found = [logprobs(forward(resumed, BATCH)), *[logprobs(train(resumed, BATCH)) for _ in range(2)]]
        for ours, theirs in zip(found, [expected, *steps], strict=True):
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a, b, atol=0 if layout == two.layout else 1e-4)


def test_replicas_divide_the_parameters_of_a_full_run(tmp_path):
    """Trained, sampled from and restored like any run, and its checkpoint loads without ranks."""
    server = with_layout(tmp_path, "dp=2,zero=3")
    with client(server) as service:
        run = full(service)
        for _ in range(2):
            train(run, BATCH)
        sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        sample = sampler.sample(prompt(TOKENS[:5]), 1, types.SamplingParams(max_tokens=8, stop=[], seed=1)).result(WAIT)
        scored = logprobs(forward(run, [datum([*TOKENS[:5], *sample.sequences[0].tokens])]))[0]
        assert_agree([sample.sequences[0].logprobs], [scored[4:]])
        path = run.save_state("divided").result(WAIT).path
        expected = logprobs(forward(run, BATCH))
        restart(server, "dp=2,zero=3")
        assert all(np.array_equal(a, b) for a, b in zip(logprobs(forward(run, BATCH)), expected, strict=True))
    restart(server, "tp=1")
    with client(server) as service:
        resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
        for a, b in zip(logprobs(forward(resumed, BATCH)), expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)
    assert server.stop() == 0
    assert "panicked at" not in server.text(), server.tail(100)


def test_a_layout_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="tp=3 does not fit the model: num_key_value_heads is 2, which 3 does not divide"):
        with_layout(tmp_path, "tp=3")


@pytest.mark.parametrize("layout", ["ep=2", "tp=2,ep=2"])
def test_experts_that_a_model_does_not_have_are_refused_by_name(tmp_path, layout):
    with pytest.raises(RuntimeError, match="ep=2 does not fit the model: it has no experts"):
        with_layout(tmp_path, layout)


@pytest.mark.processor("threads are those of the processor")
def test_doctor_shows_the_layout(tmp_path):
    def check(*words):
        checks = Doctor(tmp_path, *words).report["checks"]
        return next(check for check in checks if check["name"] == "layout")

    assert check("--parallel", "tp=2", "--threads", "2")["value"] == "tp=2: 2 ranks, 1 threads each"
    assert check("--parallel", "tp=2,dp=2", "--threads", "4")["value"] == "tp=2,dp=2: 4 ranks, 1 threads each"
    assert check("--parallel", "tp=2", "--threads", "1")["status"] == "warning"
    failed = Doctor(tmp_path, "--parallel", "tp=3", "--threads", "3").failure("memory")
    assert "num_key_value_heads is 2" in failed["value"]


def test_a_sampler_reads_its_part_of_a_folder(two):
    """Of a checkpoint that a server without ranks wrote, and the other way round."""
    with client(two) as service:
        run = lora(service)
        train(run, BATCH)
        path = run.save_weights_for_sampler("kept").result(WAIT).path

        def tokens():
            sampler = service.create_sampling_client(model_path=path).result(WAIT)
            greedy = types.SamplingParams(max_tokens=8, stop=[], temperature=0.0)
            return sampler.sample(prompt(TOKENS), 1, greedy).result(WAIT).sequences[0].tokens

        expected = tokens()
        restart(two, "tp=1")
        assert tokens() == expected
