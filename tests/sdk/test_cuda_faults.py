"""What goes wrong with a GPU, injected into the simulated driver: an old driver, too little memory, a launch that fails."""

import re
import subprocess

import pytest
import tinker

import cuda_device
from helpers import WAIT, assert_bits_equal, client, datum, forward, logprobs, lora, sample, train
from process import PATIENCE, free_port
from server import BINARY, TINY, TINY_MODELS

pytestmark = [
    pytest.mark.deployments("sqlite"),
    pytest.mark.skipif(cuda_device.ON_GPU, reason="faults are the simulated driver's"),
]

BATCH = [datum(list(range(3, 11)))]
TOO_OLD = {
    "libcuda.so": ("cuMemAllocAsync", "libcuda lacks the function cuMemAllocAsync: it is too old"),
    "libcublasLt.so": ("cublasLtMatmul", "libcublasLt lacks the function cublasLtMatmul: it is too old"),
}
MISSING = {
    "libcuda.so": "failed to load libcuda: the NVIDIA driver is not installed, or not on the dynamic linker's path",
    "libcublasLt.so": "failed to load libcublasLt: cuBLAS is not installed, or not on the dynamic linker's path",
}


@pytest.fixture
def faults(simulated, tmp_path, monkeypatch):
    """`faults(LINE)` injects a fault into a server that runs; see cuda-sim's README."""
    path = tmp_path / "faults"
    monkeypatch.setenv("CUDASIM_FAULT_FILE", str(path))

    def inject(fault: str):
        (tmp_path / "next-fault").write_text(fault)
        (tmp_path / "next-fault").rename(path)

    return inject


def refusal(folder, **environment) -> str:
    """What `serve --device cuda` says before it ends."""
    command = [BINARY, "serve", "--device", "cuda", "--model", f"{TINY}={TINY_MODELS[TINY]}", "--port", str(free_port())]
    done = subprocess.run([*command, "--data-dir", folder / "data"], capture_output=True, text=True, timeout=60 * PATIENCE)
    said = done.stdout + done.stderr
    assert done.returncode not in (0, None) and done.returncode > 0 and "panicked at" not in said, done
    return said


def serves_on_the_processor(server, reason):
    lines = [line for line in server.text().splitlines() if "computing on the processor" in line]
    assert len(lines) == 1 and reason in lines[0], server.tail()
    with client(server) as service:
        train(lora(service, rank=4), BATCH)
    assert server.stop() == 0
    assert "panicked at" not in server.text(), server.tail(100)


@pytest.mark.parametrize("library", TOO_OLD)
def test_a_library_that_is_too_old(simulated, started, tmp_path, library):
    symbol, reason = TOO_OLD[library]
    cuda_device.remove_symbol(simulated / library, symbol)
    said = refusal(tmp_path)
    assert f"--device: cuda:0: {reason}" in said, said
    serves_on_the_processor(started("--device", "auto"), reason)


@pytest.mark.parametrize("library", MISSING)
def test_a_library_that_is_missing(simulated, started, tmp_path, library):
    (simulated / library).unlink()
    if MISSING[library] not in (said := refusal(tmp_path)):
        pytest.skip(f"the machine has a {library}: {said}")
    serves_on_the_processor(started("--device", "auto"), MISSING[library])


def test_a_model_that_does_not_fit_on_the_device(simulated, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDASIM_MEMORY", "300000")
    monkeypatch.setenv("TRAINYARD_MEMORY_MIB", "1024")
    said = refusal(tmp_path)
    assert "out of device memory: the models do not fit on the GPU" in said, said


def test_memory_of_other_processes_is_not_planned_with(simulated, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDASIM_OCCUPIED", str(3900 << 20))
    said = refusal(tmp_path)
    # What the simulated kernels and cuBLASLt take is free no longer.
    assert re.search(r"--device: 19\d MiB of the 4096 MiB of a GPU are free, of which the engine would use 0 MiB: the memory budget", said), said


def test_memory_that_is_released_in_time(faults, started):
    """An allocation that fails once is tried again after free memory was returned to the driver."""
    server = started("--device", "cuda")
    with client(server) as service:
        run = lora(service, rank=4)
        faults("allocation 9 1")
        train(run, BATCH)
    assert server.stop() == 0
    assert "out of memory" not in server.text(), server.tail(100)


def test_too_little_memory_fails_the_request_alone(faults, started):
    """In training and in sampling, where the driver is asked for memory. The run whose request fails goes on as well, with the same
    bits."""
    server = started("--device", "cuda")
    with client(server) as service:
        run, other, expected = (lora(service, rank=4, seed=3) for _ in range(3))
        sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        calm = sample(sampler, [5, 6, 7], max_tokens=3, seed=1)
        scoring = lambda: forward(run, BATCH)  # noqa: E731
        training = lambda: run.forward_backward(BATCH, "cross_entropy").result(WAIT)  # noqa: E731
        sampling = lambda: sample(sampler, [5, 6, 7], max_tokens=3, seed=1)  # noqa: E731
        for call, nth in [(scoring, 1), (training, 1), (training, 2), (sampling, 1)]:
            # The second attempt fails too.
            faults(f"allocation {nth} 2")
            with pytest.raises(tinker.RequestFailedError) as failed:
                call()
            assert "out of device memory: " in failed.value.message, failed.value.message
            assert failed.value.category == "server"
        again = sample(sampler, [5, 6, 7], max_tokens=3, seed=1)
        assert [s.tokens for s in again.sequences] == [s.tokens for s in calm.sequences]
        for each in (run, other, expected):
            train(each, BATCH)
        for each in (run, other):
            assert_bits_equal(logprobs(forward(each, BATCH)), logprobs(forward(expected, BATCH)))
    assert server.stop() == 0
    assert "panicked at" not in server.text(), server.tail(100)
    assert server.text().count("the device is out of memory") == 4, server.tail(100)


@pytest.mark.parametrize("nth", [1, 30])
def test_a_launch_that_fails_ends_the_server_and_a_new_one_goes_on(faults, started, nth):
    server = started("--device", "cuda")
    with client(server) as service:
        run = lora(service, rank=4, seed=3)
        first = train(run, BATCH)
        faults(f"launch {nth}")
        pending = run.forward_backward(BATCH, "cross_entropy")
        code = server.server.child.wait(60 * PATIENCE)
        assert code > 0, f"{code}: {server.tail()}"
        assert "CUDA_ERROR_LAUNCH_FAILED" in server.text() and "panicked at" not in server.text(), server.tail(100)
        server.start()
        # The request is in the log of requests: the new process continues the run with it.
        assert pending.result(WAIT).metrics["loss:sum"] < first.metrics["loss:sum"]
    assert server.stop() == 0
