"""A run is computed with the weights, the type and the kernels that it began with, or says when that changed."""

import shutil

import httpx
import pytest

from helpers import ADAM, TOKENS, WAIT, client, datum, lora, train, wait_until
from server import GOLDEN, KEY, TINY, Server

pytestmark = pytest.mark.deployments("sqlite")
BATCH = [datum(TOKENS)]


def metric(server, name) -> int:
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"trainyard_{name} "))


def until_waiting(server):
    wait_until(lambda: metric(server, "runs_waiting_for_numerics") > 0, server.tail, limit=60)


def step(run) -> float:
    return train(run, BATCH).metrics["loss:sum"]


def changed(server, run) -> list:
    found = httpx.get(f"{server.url}/api/v1/training_runs/{run.model_id}", headers={"X-API-Key": KEY})
    return found.json().get("numerics_changed", [])


def restart(server, **instead):
    """Stops it and starts it with other values of flags, `dtype="bf16"`, or of models."""
    server.stop()
    command = server.server.command
    for flag, value in instead.items():
        command[command.index(f"--{flag}") + 1] = value
    server.start()


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Losses of steps that nothing interrupts."""
    server = Server(tmp_path_factory.mktemp("calm"), dtype="f32").start()
    with client(server) as service:
        run = lora(service)
        losses = [step(run) for _ in range(3)]
    assert server.stop() == 0
    return losses


@pytest.fixture
def other_weights(tmp_path):
    """The same model but for one bit."""
    folder = shutil.copytree(GOLDEN / "llama", tmp_path / "other")
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-4] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    return folder


@pytest.mark.parametrize("what", ["type", "weights"])
def test_a_run_waits_for_a_server_that_computes_alike(tmp_path, calm, other_weights, what):
    """Restarted with another type, or other weights under the same name, a server leaves the run alone; restarted as it was it
    continues it with the same bits."""
    server = Server(tmp_path, dtype="f32").start()
    try:
        with client(server) as service:
            run = lora(service)
            losses = [step(run)]
            restart(server, **({"dtype": "bf16"} if what == "type" else {"model": f"{TINY}={other_weights}"}))
            waiting, applied = run.forward_backward(BATCH, "cross_entropy"), run.optim_step(ADAM)
            until_waiting(server)
            assert "run waits: no worker has the numerics with which it was computed" in server.text()
            restart(server, dtype="f32", model=f"{TINY}={GOLDEN / 'llama'}")
            losses.append(waiting.result(WAIT).metrics["loss:sum"])
            applied.result(WAIT)
            losses.append(step(run))
            assert losses == calm
            assert changed(server, run) == []
            assert metric(server, "runs_waiting_for_numerics") == 0
    finally:
        server.stop()


@pytest.mark.processor("classes of kernels are the processor's")
def test_a_run_goes_on_with_the_kernels_that_were_chosen_for_it(tmp_path):
    """On a processor that has better ones, `--kernels` names those that the run began with."""

    def losses(name, interruption):
        (tmp_path / name).mkdir()
        server = Server(tmp_path / name, flags=["--kernels", "avx2"]).start()
        try:
            with client(server) as service:
                run = lora(service)
                found = [step(run)]
                interruption(server, run)
                found.append(step(run))
                assert changed(server, run) == []
            return found
        finally:
            server.stop()

    def other_kernels(server, run):
        restart(server, kernels="portable")
        waiting = run.forward_backward(BATCH, "cross_entropy")
        until_waiting(server)
        assert "portable" in server.text()
        restart(server, kernels="avx2")
        waiting.result(WAIT)

    def the_same_kernels(server, run):
        run.forward_backward(BATCH, "cross_entropy").result(WAIT)

    assert losses("interrupted", other_kernels) == losses("calm", the_same_kernels)


@pytest.mark.processor("classes of kernels are the processor's")
def test_kernels_that_there_are_not_are_refused(tmp_path):
    server = Server(tmp_path, flags=["--kernels", "avx3"])
    with pytest.raises(RuntimeError, match="expected amx-bf16, avx512-bf16, avx2 or portable"):
        server.start()


def test_a_run_is_continued_with_another_type_where_that_is_allowed(tmp_path, calm, other_weights):
    """It says since when; other weights are not continued even so."""
    server = Server(tmp_path, dtype="f32", flags=["--numerics-mismatch", "continue"]).start()
    try:
        with client(server) as service:
            run = lora(service)
            step(run)
            restart(server, dtype="bf16")
            assert step(run) == pytest.approx(calm[1], rel=0.02)
            (change,) = changed(server, run)
            assert change["from"].startswith("f32 ") and change["to"].startswith("bf16 "), change
            assert metric(server, "numerics_changes_total") == 1
            assert "run continues with different numerics" in server.text()
            restart(server, model=f"{TINY}={other_weights}")
            run.forward_backward(BATCH, "cross_entropy")
            until_waiting(server)
    finally:
        server.stop()
