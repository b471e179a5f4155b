"""A server on a GPU, and on machines where there is none."""

import json
import os
import re
import subprocess

import numpy as np
import pytest
from tinker import types

import postgres
from cuda_device import DEVICE, ON_GPU, SEVERAL, without_devices
from helpers import WAIT, client, datum, forward, logprobs, lora, prompt, sample, train
from process import PATIENCE, free_port
from rank_processes import RankCluster
from server import BINARY, TINY, TINY_MODELS

pytestmark = pytest.mark.deployments("sqlite")


def trains_and_samples(server):
    """A run learns a sequence, and samples have the log-probabilities of a forward pass."""
    batch = [datum(list(range(3, 15)))]
    with client(server) as service:
        run = lora(service, rank=4)
        before = logprobs(forward(run, batch))[0]
        train(run, batch)
        assert logprobs(forward(run, batch))[0].mean() > before.mean(), "training has no effect"
        sampler = run.save_weights_and_get_sampling_client().result(300 * PATIENCE)
        (sequence,) = sample(sampler, [5, 6, 7], max_tokens=4, seed=1).sequences
        scored = logprobs(forward(run, [datum([5, 6, 7, *sequence.tokens])]))[0][2:]
        np.testing.assert_allclose(sequence.logprobs, scored, atol=2e-2)
    assert server.stop() == 0
    assert "panicked at" not in server.text(), server.tail(100)


def test_a_run_trains_and_samples_on_a_gpu(simulated, started):
    server = started("--device", "cuda")
    assert "computing on a GPU" in server.text() and DEVICE in server.text(), server.tail()
    if not ON_GPU:
        # One line for all modules.
        assert server.text().count("the driver rejected the cubins") == 1, server.tail()
    trains_and_samples(server)


@pytest.mark.skipif(ON_GPU and not os.path.exists("/dev/nvidia1"), reason="the machine has one GPU")
def test_a_run_trains_and_samples_on_two_gpus(simulated, started, monkeypatch):
    monkeypatch.setenv("CUDASIM_DEVICES", "2")
    server = started("--device", "cuda:1,0", "--parallel", "tp=2")
    lines = [line for line in server.text().splitlines() if "computing on a GPU" in line]
    assert len(lines) == 2 and "cuda:1" in lines[0] and "cuda:0" in lines[1], server.tail()
    trains_and_samples(server)


@pytest.mark.skipif(ON_GPU, reason="the machine has as many GPUs as it has")
def test_fewer_gpus_than_ranks_are_refused(simulated, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDASIM_DEVICES", "1")
    for device, said in [("cuda", "not less than 1, the number of devices"), ("cuda:0,1,2", "2 of the ranks of --parallel dp=2")]:
        command = [BINARY, "serve", "--device", device, "--parallel", "dp=2", "--model", f"{TINY}={TINY_MODELS[TINY]}"]
        command += ["--port", str(free_port()), "--data-dir", tmp_path / "data"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
        assert done.returncode != 0 and said in done.stdout + done.stderr, done


def numbers(service, between=lambda: None):
    """Losses of two steps, and a sample and log-probabilities of what they trained; calls `between` them."""
    batch = [datum(list(range(20, 29))), datum([7, 3, 1])]
    run = lora(service, rank=4, seed=5)
    losses = [train(run, batch).metrics["loss:sum"]]
    between()
    losses.append(train(run, batch).metrics["loss:sum"])
    sampler = run.save_weights_and_get_sampling_client().result(WAIT)
    (sequence,) = sample(sampler, [5, 6, 7], max_tokens=3, seed=1).sequences
    return losses, sequence.tokens, sequence.logprobs, [lp.tolist() for lp in logprobs(forward(run, batch))]


@pytest.mark.timeout(900)
@pytest.mark.skipif(ON_GPU and not os.path.exists("/dev/nvidia1"), reason="the machine has one GPU")
def test_ranks_that_are_processes_compute_what_threads_do(simulated, started, tmp_path, postgres_server, monkeypatch):
    """To the bit, also when one is killed: the other ends with its name, and the worker goes on from what is durable."""
    for name, value in {**SEVERAL, "TRAINYARD_DEVICE": "cuda"}.items():
        monkeypatch.setenv(name, value)
    server = started("--parallel", "tp=2")
    with client(server) as service:
        expected = numbers(service)
    assert server.stop() == 0
    folder = tmp_path / "ranks"
    folder.mkdir()
    with postgres.database(postgres_server()) as database:
        ranks = RankCluster(folder, database)
        try:
            ranks.start()
            with client(ranks) as service:
                assert numbers(service) == expected
                ranks.supervise()
                assert numbers(service, ranks.workers[1].kill) == expected
            assert [name for name, code in ranks.ended if code == -9] == ["rank-1"]
            assert [name for name, code in ranks.ended if code == 1] == ["worker-0"], ranks.ended
            assert "rank 1 was lost" in ranks.workers[0].text(), ranks.tail()
            assert all("computing on a GPU" in process.text() for process in ranks.workers), ranks.tail()
            assert ranks.stop() == 0, ranks.tail()
            assert "panicked at" not in ranks.text(), ranks.tail(100)
        finally:
            ranks.close()


def test_numbers_do_not_depend_on_other_requests(simulated, started):
    """Losses, weights and samples are equal to the bit, alone and beside a run that trains and a sample."""
    server = started("--device", "cuda", dtype="bf16")
    with client(server) as service:
        alone = numbers(service)
        other = lora(service, rank=7, seed=6)
        base = service.create_sampling_client(base_model=TINY).result(WAIT)
        busy = [other.forward_backward([datum(list(range(40, 52)))], "cross_entropy") for _ in range(6)]
        busy += [base.sample(prompt([9, 8]), 2, types.SamplingParams(max_tokens=12, stop=[])) for _ in range(2)]
        assert numbers(service) == alone
        for pending in busy:
            pending.result(WAIT)
    assert server.stop() == 0


def test_without_a_device_auto_is_the_processor(simulated, started, monkeypatch):
    without_devices(monkeypatch)
    server = started("--device", "auto")
    lines = [line for line in server.text().splitlines() if "computing on the processor" in line]
    assert len(lines) == 1 and "CUDA_ERROR_NO_DEVICE" in lines[0], server.tail()
    with client(server) as service:
        forward(lora(service, rank=4), [datum([1, 2, 3])])
    assert server.stop() == 0


def test_without_a_device_cuda_is_refused(simulated, tmp_path, monkeypatch):
    without_devices(monkeypatch)
    command = [BINARY, "serve", "--device", "cuda", "--model", f"{TINY}={TINY_MODELS[TINY]}", "--port", str(free_port())]
    done = subprocess.run([*command, "--data-dir", tmp_path / "data"], capture_output=True, text=True, timeout=60 * PATIENCE)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "--device: cuda:0" in said and "CUDA_ERROR_NO_DEVICE" in said, done


@pytest.mark.slow_layout("real shapes take a minute on a simulated GPU", "with shapes")
@pytest.mark.parametrize(
    "devices, flags, status, said",
    [("1", [], "ok", DEVICE), ("1", ["--shapes", "none"], "ok", DEVICE), ("0", [], "failure", "CUDA_ERROR_NO_DEVICE")],
    ids=["with shapes", "without shapes", "without a device"],
)
def test_doctor_names_the_device(simulated, tmp_path, monkeypatch, devices, flags, status, said):
    if devices == "0":
        without_devices(monkeypatch)
    command = [BINARY, "doctor", "--device", "cuda", "--model", f"{TINY}={TINY_MODELS[TINY]}", "--data-dir", tmp_path / "data", "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600 * PATIENCE, cwd=tmp_path)
    checks = json.loads(done.stdout)["checks"]
    (check,) = [check for check in checks if (check["group"], check["name"]) == ("device", "compute")]
    assert check["status"] == status and said in check["value"], check
    assert (done.returncode == 0) == (devices == "1"), done
    ops = [check for check in checks if check["group"] == "ops"]
    if devices == "0":
        assert ops == []
        return
    found = {check["name"]: check["value"] for check in checks if check["group"] == "device"}
    assert "libcuda.so" in found["libraries"] and "libcublasLt.so" in found["libraries"], found
    assert "MiB are free, of which the engine would use" in found["free memory"], found
    assert re.match(r"cuBLASLt 1[23]\.\d+\.\d+, /.*libcublasLt\.so", found["cublaslt"]), found
    assert "CUDA up to" in found["capability"] and "TFLOP/s" in found["matmul"] and "GB/s" in found["copies"], found
    # The simulated device refuses cubins; not every GPU has some that are for it.
    assert found["kernels"].startswith(("cubins for sm_", "PTX") if ON_GPU else "PTX, compiled by the driver: cuModuleLoadData"), found
    # Every op in f32 and in bf16, each with its error.
    assert len(ops) >= 40 and {op["name"].rsplit(", ")[-1] for op in ops} == {"f32", "bf16"}
    assert all(op["status"] == "ok" and "at most" in op["value"] for op in ops), ops
    shapes = [check for check in checks if check["group"] in ("shapes", "invariance")]
    if flags:
        assert shapes == []
        return
    assert len(shapes) > 60 and all(check["status"] == "ok" and check["seconds"] >= 0 for check in shapes), shapes
    (rate,) = [check["numbers"] for check in checks if check["name"] == "matmul"]
    (layer,) = [check for check in shapes if check["name"] == "weights of a layer"]
    assert layer["value"].startswith("full" if rate["flop_per_second"] >= 1e12 else "small"), (rate, layer)
    assert all(0 <= check["error"] <= check["tolerance"] for check in shapes if check["tolerance"]), shapes


@pytest.mark.skipif(ON_GPU, reason="a fault is injected")
@pytest.mark.slow_layout("real shapes take a minute on a simulated GPU", "order:256")
@pytest.mark.parametrize("fault", ["order:256"])
def test_doctor_finds_products_that_depend_on_the_number_of_rows(simulated, tmp_path, monkeypatch, fault):
    monkeypatch.setenv("CUDASIM_LT_FAULT", fault)
    command = [BINARY, "doctor", "--device", "cuda", "--json", "--data-dir", tmp_path / "data"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600 * PATIENCE, cwd=tmp_path)
    assert done.returncode == 1, done
    wrong = [check for check in json.loads(done.stdout)["checks"] if check["status"] == "failure"]
    wrong = [check for check in wrong if check["group"] != "configuration"]
    assert wrong and {check["group"] for check in wrong} == {"invariance"}, wrong
    assert all("of 256 differs" in check["value"] for check in wrong) and "plan: " in wrong[0]["value"], wrong


def test_the_binary_needs_no_library_of_cuda():
    needed = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout
    assert "cuda" not in needed and "cublas" not in needed and "nccl" not in needed, needed


@pytest.fixture
def real_driver(monkeypatch):
    """Processes find NVIDIA's driver library, as Debian packages it, on a machine without its kernel module."""
    if (folder := os.environ.get("TRAINYARD_TEST_LIBCUDA")) is None:
        pytest.skip("TRAINYARD_TEST_LIBCUDA names no folder with a libcuda.so: the package libcuda1 could not be fetched")
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("there is a GPU here")
    monkeypatch.setenv("LD_LIBRARY_PATH", folder)


NO_DEVICE = "cuda:0: cuInit failed: CUDA_ERROR_NO_DEVICE"


def test_the_real_driver_without_a_device_leaves_the_processor(real_driver, started):
    server = started("--device", "auto")
    lines = [line for line in server.text().splitlines() if "computing on the processor" in line]
    assert len(lines) == 1 and NO_DEVICE in lines[0], server.tail()
    with client(server) as service:
        train(lora(service, rank=4), [datum([1, 2, 3])])
    assert server.stop() == 0


def test_the_real_driver_without_a_device_is_refused_by_name(real_driver, tmp_path):
    command = [BINARY, "serve", "--device", "cuda", "--model", f"{TINY}={TINY_MODELS[TINY]}", "--port", str(free_port())]
    done = subprocess.run([*command, "--data-dir", tmp_path / "data"], capture_output=True, text=True, timeout=60 * PATIENCE)
    said = done.stdout + done.stderr
    assert done.returncode > 0 and f"--device: {NO_DEVICE}" in said and "panicked at" not in said, done


def test_doctor_says_that_the_real_driver_has_no_device(real_driver, tmp_path):
    command = [BINARY, "doctor", "--device", "auto", "--model", f"{TINY}={TINY_MODELS[TINY]}", "--data-dir", tmp_path / "data"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120 * PATIENCE, cwd=tmp_path)
    checks = [check for check in json.loads(done.stdout)["checks"] if check["group"] in ("device", "ops")]
    (check,) = checks
    assert (check["name"], check["status"]) == ("compute", "ok"), check
    assert check["value"].startswith("the processor: ") and "CUDA_ERROR_NO_DEVICE" in check["value"], check
