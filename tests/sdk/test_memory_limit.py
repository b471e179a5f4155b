"""Six runs of all parameters in a process that may use 4 GB, as the kernel counts them, beside a tenant that samples."""

import concurrent.futures
import json
import shutil
import statistics
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

from cgroup import memory_group
from helpers import ADAM, WAIT, client, datum, lora, sample
from server import GOLDEN, Server

pytestmark = pytest.mark.processor("what is limited is the memory of the process")
LIMIT = 4 << 30
RUNS, STEPS = 6, 2
TURNS = 500
"""Seconds in which all runs have their turns; each is saved and restored."""

BROAD = "broad"
HIDDEN, INTERMEDIATE, LAYERS, VOCABULARY = 768, 2048, 3, 512
TRAINER, SAMPLER = "tml-trainer-0123456789-0123456789", "tml-sampler-0123456789-0123456789"
CONFIG = f'[[keys]]\ntenant = "trainer"\nkey = "{TRAINER}"\n[[keys]]\ntenant = "sampler"\nkey = "{SAMPLER}"\n'


def broad_model(folder):
    """22 million random parameters: six runs of them need more memory than there is, three fit."""
    folder.mkdir()
    config = json.loads((GOLDEN / "llama" / "config.json").read_text())
    config |= {
        "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS, "head_dim": 64,
        "num_attention_heads": HIDDEN // 64, "num_key_value_heads": HIDDEN // 64, "vocab_size": VOCABULARY,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    for path in (GOLDEN / "llama").glob("tokenizer*"):
        shutil.copy(path, folder)
    rng = np.random.default_rng(1)
    matrix = lambda *shape: rng.normal(0, 0.02, shape).astype(np.float32)  # noqa: E731
    ones = np.ones(HIDDEN, np.float32)
    tensors = {
        "model.embed_tokens.weight": matrix(VOCABULARY, HIDDEN),
        "lm_head.weight": matrix(VOCABULARY, HIDDEN),
        "model.norm.weight": ones,
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}.{name}.weight"] = ones
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            tensors[f"{at}.self_attn.{name}.weight"] = matrix(HIDDEN, HIDDEN)
        for name in ("gate_proj", "up_proj"):
            tensors[f"{at}.mlp.{name}.weight"] = matrix(INTERMEDIATE, HIDDEN)
        tensors[f"{at}.mlp.down_proj.weight"] = matrix(HIDDEN, INTERMEDIATE)
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture
def limited(tmp_path):
    """A server with its default budget; and the group in which it may use so much memory."""
    with memory_group(LIMIT) as group:
        if group is None:
            pytest.skip("no right to make a cgroup with a memory limit")
        server = Server(tmp_path, models={BROAD: broad_model(tmp_path / "model")}, config=CONFIG)
        server.server.options["preexec_fn"] = group.join
        server.start()
        yield server, group
        try:
            assert server.stop(60) == 0, server.tail()
        finally:
            server.close()


def latencies(sampler, going) -> list[float]:
    """Seconds of samples, one after the other, as long as it goes on."""
    seconds = []
    while going():
        began = time.monotonic()
        sample(sampler, [5, 17, 250], max_tokens=16, seed=1, stop=[])
        seconds.append(time.monotonic() - began)
    return seconds


def six_runs(service) -> list[float]:
    """The last loss of each; they are trained at the same time."""
    with concurrent.futures.ThreadPoolExecutor(RUNS) as pool:
        return list(pool.map(lambda number: trained(service, number), range(RUNS)))


def trained(service, number: int) -> float:
    run = service.create_lora_training_client(BROAD, rank=0).result(TURNS)
    rng = np.random.default_rng(number)
    data = [datum(rng.integers(0, VOCABULARY, 24).tolist()) for _ in range(4)]
    steps = [(run.forward_backward(data, "cross_entropy"), run.optim_step(ADAM)) for _ in range(STEPS)]
    return [(output.result(TURNS), step.result(TURNS))[0].metrics["loss:sum"] for output, step in steps][-1]


@pytest.mark.deployments("sqlite")
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_six_runs_of_all_parameters_in_4_gb_beside_a_sampling_tenant(limited, record_property):
    server, group = limited
    process = server.server.child.pid
    with client(server, TRAINER) as trainer, client(server, SAMPLER) as other:
        sampler = other.create_sampling_client(base_model=BROAD).result(WAIT)
        remaining = iter(range(20))
        alone = latencies(sampler, lambda: next(remaining, None) is not None)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            training = pool.submit(six_runs, trainer)
            beside = latencies(sampler, lambda: not training.done())
            losses = training.result()
        # What never fits is refused, and takes nothing from the others.
        with pytest.raises(Exception, match=r"needs \d+ MiB of memory; at most \d+ MiB"):
            lora(trainer, BROAD, rank=4096)
    assert len(set(losses)) == RUNS and all(np.isfinite(losses))
    assert len(beside) > 0
    assert "another one waits for its memory" in server.text()
    assert group.kills() == 0
    assert server.server.child.poll() is None and server.server.child.pid == process
    milliseconds = {name: round(1000 * statistics.median(v), 1) for name, v in (("alone", alone), ("beside", beside))}
    record_property("median_sample_milliseconds", milliseconds)
    print(f"median milliseconds of a sample: {milliseconds}, longest beside: {1000 * max(beside):.0f}")
