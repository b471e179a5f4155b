"""Sampler weights that are saved without a name take space in the storage as long as they are used."""

import time

import pytest
import tinker

from helpers import TOKENS, WAIT, datum, lora, sample, train
from process import PATIENCE

FLAGS = ["--sampler-snapshots", "2", "--sampler-snapshot-seconds", "1"]


def folders(server):
    return [path for path in (server.storage / "snapshots").glob("*/*") if path.is_dir()]


def test_weights_that_are_not_used_leave_the_storage_and_say_so(server, service):
    run = lora(service)
    samplers, first = [], None
    for _ in range(18):
        train(run, [datum(TOKENS)])
        samplers.append(run.save_weights_and_get_sampling_client().result(WAIT))
        answer = sample(samplers[0], TOKENS, seed=1).sequences[0].tokens
        first = first or answer
        assert answer == first
    # What was used within the last second is kept.
    time.sleep(1.5)
    assert sample(samplers[0], TOKENS, seed=1).sequences[0].tokens == first
    for _ in range(2):
        samplers.append(run.save_weights_and_get_sampling_client().result(WAIT))
    deadline = time.monotonic() + 30 * PATIENCE
    # Twelve were written. One that was written twice is left to garbage collection.
    while len(folders(server)) > 7 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert 1 <= len(folders(server)) <= 7
    assert sample(samplers[0], TOKENS, seed=1).sequences[0].tokens == first
    assert sample(samplers[-1], TOKENS).sequences
    with pytest.raises(tinker.APIStatusError) as error:
        sample(samplers[3], TOKENS)
    assert error.value.status_code == 410
    assert "were deleted: weights saved without a name are kept while" in str(error.value)
