"""`trainyard bench --http` counts every operation and meets no error, whatever the speed."""

import json
import subprocess

import pytest

from server import BINARY


@pytest.mark.alone
@pytest.mark.deployments("sqlite")
def test_the_service_is_measured_without_an_error(tmp_path):
    command = [BINARY, "bench", "--http", "--json", "--reps", "1", "--clients", "8", "--data-dir", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
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
