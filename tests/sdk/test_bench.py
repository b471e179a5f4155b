"""`trainyard-bench --http` counts every operation and meets no error, whatever the speed."""

import json
import subprocess

import pytest

import cuda_device
from process import PATIENCE
from server import BENCH


@pytest.mark.alone
@pytest.mark.real_device("2,500 requests take an hour")
@pytest.mark.deployments("sqlite")
def test_the_service_is_measured_without_an_error(tmp_path):
    command = [BENCH, "--http", "--json", "--reps", "1", "--clients", "8", "--data-dir", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 * PATIENCE)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    latencies = {latency["name"]: latency for latency in report["latencies"]}
    assert list(latencies) == ["optim_step", "forward_backward", "forward_backward+optim", "sample"]
    for latency in latencies.values():
        assert latency["operations"] == 40 and latency["ms"]["median"] > 0 and latency["engine_ms"] > 0
    closed, scheduled, outstanding = report["rates"]
    assert [rate["errors"] for rate in report["rates"]] == [0, 0, 0], report["rates"]
    assert closed["concurrency"] == 8 and closed["operations"] > 0
    assert scheduled["operations"] == 2500
    assert outstanding["operations"] == 2000


@pytest.mark.deployments("sqlite")
def test_a_gpu_is_measured_with_random_weights(simulated, tmp_path):
    """No model is needed: it is written on the first call, and read on the second."""
    command = [BENCH, "--device", "cuda", "--shape", "tiny", "--data-dir", tmp_path, "--reps", "1", "--rank", "2"]
    command += ["--workload", "w1,w3b1", "--batch", "1", "--seq", "8", "--new-tokens", "2"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=200 * PATIENCE)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["model"], report["device"]) == ("trainyard/random-tiny", "cuda:0")
    assert report["isa"].startswith("cuda-sm") and cuda_device.DEVICE in report["blocking"]
    assert report["gemm_gflops"] > 0 and report["read_gb_per_second"] > 0
    assert [(work["name"], work["tokens"], work["gemm"], work["read"]) for work in report["workloads"]] == [
        ("w1", 8, None, None),
        ("w3b1", 2, None, None),
    ]
    # Of the device: the weights are in it.
    assert all(work["peak_memory_mib"] > 0.5 for work in report["workloads"]), report
    assert all(work["tokens_per_second"]["median"] > 0 for work in report["workloads"])
    written = (tmp_path / "random-tiny" / "model.safetensors").stat().st_mtime_ns
    table = subprocess.run(command, capture_output=True, text=True, timeout=200 * PATIENCE)
    assert table.returncode == 0 and "GEMM in bf16" in table.stdout, table.stderr
    assert (tmp_path / "random-tiny" / "model.safetensors").stat().st_mtime_ns == written


@pytest.mark.deployments("sqlite")
def test_a_gpu_that_is_not_there_is_not_measured(simulated, tmp_path, monkeypatch):
    cuda_device.without_devices(monkeypatch)
    command = [BENCH, "--device", "cuda", "--shape", "tiny", "--data-dir", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE)
    assert done.returncode == 1 and "--device: cuda:0: cuInit failed: CUDA_ERROR_NO_DEVICE" in done.stderr, done
