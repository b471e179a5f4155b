"""Nothing acknowledged is lost: the server is killed at any instant, and runs continue with the same bits."""

import os
import threading
import time

import httpx
import pytest

import wire as raw
from helpers import (
    ADAM,
    TOKENS,
    WAIT,
    assert_bits_equal,
    client,
    datum,
    forward,
    full,
    logprobs,
    lora,
    rest,
    sample,
    train,
)
from process import PATIENCE
from server import Server

BATCH = [datum(TOKENS), datum(TOKENS[::-1])]


def step(run):
    return train(run, BATCH).metrics["loss:sum"]


@pytest.mark.parametrize("make", [lora, full])
def test_training_goes_on_after_a_kill(own, make):
    """The same client, the same run: after SIGKILL and a restart the losses are those of a run that was left alone."""
    with client(own) as service:
        calm, struck = make(service), make(service)
        expected = [step(calm) for _ in range(6)]
        losses = [step(struck) for _ in range(3)]
        own.kill()
        own.start()
        losses += [step(struck) for _ in range(3)]
        assert losses == expected
        assert_bits_equal(logprobs(forward(calm, BATCH)), logprobs(forward(struck, BATCH)))


def test_killed_while_requests_are_queued(own):
    """Everything that was acknowledged before the kill is executed after it, once, in order."""
    with client(own) as service:
        calm, struck = lora(service), lora(service)
        expected = [step(calm) for _ in range(8)]
        wire = raw.Wire(own)
        queue = []
        for i in range(8):
            tokens = [TOKENS, TOKENS[::-1]]
            queue.append(wire.forward_backward(struck.model_id, 2 * i + 1, data=tokens).json()["request_id"])
            assert wire.optim_step(struck.model_id, 2 * i + 2).status_code == 200
        own.kill()
        own.start()
        restarted = raw.Wire(own)
        assert [restarted.loss(request) for request in queue] == expected


def test_killed_with_a_gradient_accumulated(own):
    """The gradient of an acknowledged `forward_backward` is part of the run."""
    with client(own) as service:
        calm, struck = lora(service), lora(service)
        for run in (calm, struck):
            run.forward_backward(BATCH, "cross_entropy").result(WAIT)
        own.kill()
        own.start()
        for run in (calm, struck):
            run.optim_step(ADAM).result(WAIT)
        assert_bits_equal(logprobs(forward(calm, BATCH)), logprobs(forward(struck, BATCH)))
        fresh = lora(service)
        train(fresh, BATCH)
        assert_bits_equal(logprobs(forward(fresh, BATCH)), logprobs(forward(struck, BATCH)))


def test_results_samplers_and_checkpoints_survive(own):
    with client(own) as service:
        run = lora(service)
        step(run)
        state = run.save_state("retained").result(WAIT).path
        named = run.save_weights_for_sampler("retained").result(WAIT).path
        ephemeral = run.save_weights_and_get_sampling_client().result(WAIT)
        before = sample(ephemeral, TOKENS, 4, seed=1, stop=[])
        for _ in range(2):
            step(run)
        wire = raw.Wire(own)
        request = wire.forward_backward(run.model_id, 999).json()["request_id"]
        own.kill()
        own.start()
        after = sample(ephemeral, TOKENS, 4, seed=1, stop=[])
        assert [s.tokens for s in before.sequences] == [s.tokens for s in after.sequences]
        assert_bits_equal([s.logprobs for s in before.sequences], [s.logprobs for s in after.sequences])
        listed = {c.tinker_path for c in rest(own).list_checkpoints(run.model_id).result(WAIT).checkpoints}
        assert listed == {state, named}
        frozen = service.create_sampling_client(model_path=named).result(WAIT)
        assert [s.tokens for s in sample(frozen, TOKENS, 4, seed=1, stop=[]).sequences] == [
            s.tokens for s in after.sequences
        ]
        with pytest.raises(httpx.ReadTimeout):
            raw.Wire(own, timeout=1).poll(request)  # it is known, and it waits


def test_killed_again_and_again(own):
    """Kills at random moments of a busy run; it ends where an undisturbed one ends."""
    with client(own) as service:
        calm, struck = lora(service), lora(service)
        expected = [step(calm) for _ in range(9)]
        losses = []
        for pause in (0.0, 0.02, 0.1):
            pending = []
            for _ in range(3):
                pending.append(struck.forward_backward(BATCH, "cross_entropy"))
                struck.optim_step(ADAM)
            time.sleep(pause)
            own.kill()
            own.start()
            losses += [p.result(WAIT).metrics["loss:sum"] for p in pending]
        assert losses == expected


def test_killed_while_saving(own):
    """An acknowledged save succeeds after a kill, and orphans of its first attempt are removed after an hour."""
    wire = raw.Wire(own)
    run = wire.run()
    for seq, pause in enumerate((0.0, 0.002, 0.005, 0.01, 0.05), start=1):
        body = {"model_id": run, "seq_id": seq, "path": f"save-{seq}", "overwrite": False, "type": "save_weights"}
        request = wire.ok("save_weights", body)["request_id"]
        time.sleep(pause)
        own.kill()
        own.start()
        wire = raw.Wire(own)
        assert wire.result(request).json()["path"] == f"tinker://{run}/weights/save-{seq}"
    names = {c.tinker_path.split("/")[-1] for c in rest(own).list_checkpoints(run).result(WAIT).checkpoints}
    assert names == {f"save-{seq}" for seq in range(1, 6)}
    own.kill()
    two_hours_ago = time.time() - 7200
    for entry in [own.storage / "checkpoints", *(own.storage / "checkpoints").rglob("*")]:
        os.utime(entry, (two_hours_ago, two_hours_ago))
    own.start()
    (folder,) = {config.parent.parent for config in own.storage.rglob("save-*/adapter_config.json")}
    deadline = time.monotonic() + 20 * PATIENCE
    while sorted(left := [entry.name.split(".")[0] for entry in folder.iterdir()]) != sorted(names):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_a_resumed_run_outlives_its_checkpoint(own):
    with client(own) as service:
        source = lora(service)
        step(source)
        path = source.save_state("rolling").result(WAIT).path
        resumed = service.create_training_client_from_state_with_optimizer(path).result(WAIT)
        rest(own).delete_checkpoint_from_tinker_path(path).result(WAIT)
        own.kill()
        own.start()
        assert step(resumed) == step(source)


def test_graceful_stop_and_start(own):
    """SIGTERM ends the server with 0 while a run is executing and a client is polling; the run continues afterwards."""
    with client(own) as service:
        calm, stopped = lora(service), lora(service)
        expected = [step(calm) for _ in range(4)]
        losses = [step(stopped) for _ in range(2)]
        raw.Wire(own).forward_backward(calm.model_id, 500)
        assert own.stop() == 0
        own.start()
        assert losses + [step(stopped) for _ in range(2)] == expected


def test_stopping_does_not_wait_for_long_polls(own):
    """A held poll ends with the server."""
    wire = raw.Wire(own)
    run = wire.run()
    pending = wire.forward_backward(run, 2).json()["request_id"]
    thread = threading.Thread(target=try_poll, args=(wire, pending))
    thread.start()
    time.sleep(0.5)
    started = time.monotonic()
    assert own.stop() == 0
    assert time.monotonic() - started < 15
    thread.join()
    own.start()


def try_poll(wire, request):
    """Whatever the poll answers, or that the connection closed."""
    try:
        wire.poll(request)
    except httpx.TransportError:
        pass


@pytest.mark.deployments("sqlite")
def test_a_second_server_on_the_same_folder_is_refused(own, tmp_path):
    """Two processes on one store would corrupt it."""
    other = Server(tmp_path)
    with pytest.raises(RuntimeError, match="ended with"):
        other.start()
    with client(own) as service:
        lora(service)
