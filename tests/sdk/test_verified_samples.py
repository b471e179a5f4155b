"""`--verify-samples`: a training pass computes samples again, and metrics tell how many differ."""

import subprocess

import pytest

from helpers import TOKENS, WAIT, client, datum, gauge, lora, sample, train, wait_until
from server import BINARY, TINY, TINY_MODELS

pytestmark = [pytest.mark.deployments("sqlite"), pytest.mark.processor("equal bits are guaranteed on the processor only")]


@pytest.mark.parametrize("layout", ["tp=1", "tp=2", "dp=2"])
def test_samples_of_a_trained_run_are_verified(started, layout):
    server = started("--verify-samples", "100%", "--parallel", layout)
    verified = lambda: gauge(server, "trainyard_verified_samples_total")  # noqa: E731
    with client(server) as service:
        run = lora(service)
        train(run, [datum(TOKENS)])
        sampler = run.save_weights_and_get_sampling_client().result(WAIT)
        for seed in range(4):
            sample(sampler, TOKENS[: 2 + seed], max_tokens=5, seed=seed, temperature=1.0)
            wait_until(lambda done=seed + 1: verified() == done, server.tail)
        # Its log-probabilities are of scaled logits.
        sample(sampler, TOKENS, max_tokens=5, seed=1, temperature=0.5)
        assert verified() == 4
    assert gauge(server, "trainyard_differing_samples_total") == 0
    assert gauge(server, "trainyard_skipped_verifications_total") == 0


@pytest.mark.parametrize("share", ["1.5", "x%"])
def test_an_invalid_share_is_refused(tmp_path, share):
    model = f"{TINY}={TINY_MODELS[TINY]}"
    command = [BINARY, "serve", "--data-dir", tmp_path, "--model", model, "--verify-samples", share]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert f'invalid share "{share}"' in done.stderr
