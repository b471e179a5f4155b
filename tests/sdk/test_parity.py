"""The sampler's log-probabilities equal the trainer's, to the bit, whatever else is in the batch, with every layout."""

import numpy as np
import pytest
from tinker import types

from helpers import WAIT, assert_agree, assert_bits_equal, client, datum, forward, full, logprobs, lora, prompt, sample, train
from server import GOLDEN, TINY_MODELS

MODELS = TINY_MODELS | {"tiny-mistral": GOLDEN / "mistral_swa"}
LAYOUTS = [None, "tp=2", "dp=2"]


@pytest.fixture(scope="module", params=["f32", "bf16"])
def served(request, tmp_path_factory, deploy, layout):
    with deploy(tmp_path_factory.mktemp(request.param), models=MODELS, dtype=request.param, flags=layout) as running:
        yield running
        running.stop()


@pytest.fixture(scope="module")
def trained(served):
    """Samplers with the runs they froze: a base model, an adapter, a full model, and a sliding window."""
    rng = np.random.default_rng(0)
    batch = [datum(rng.integers(0, 512, 30).tolist()) for _ in range(3)]
    with client(served) as service:
        runs = {
            "base": lora(service),
            "lora": lora(service, rank=3),
            "full": full(service),
            "window": lora(service, "tiny-mistral"),
        }
        for name, run in runs.items():
            if name != "base":
                train(run, batch, adam=types.AdamParams(learning_rate=1e-3, eps=1e-8))
        samplers = {name: run.save_weights_and_get_sampling_client().result(WAIT) for name, run in runs.items()}
        yield service, runs, samplers


def check(run, prompts, responses):
    """Every sampled token's log-probability against `forward` on the same tokens."""
    data, expected = [], []
    for tokens, response in zip(prompts, responses, strict=True):
        for sequence in response.sequences:
            data.append(datum([*tokens, *sequence.tokens]))
            expected.append((len(tokens), sequence.logprobs))
    scored = logprobs(forward(run, data))
    assert_agree([lp[n - 1 :] for lp, (n, _) in zip(scored, expected, strict=True)], [lp for _, lp in expected])


@pytest.mark.parametrize("kind", ["base", "lora", "full", "window"])
@pytest.mark.parametrize("batch", [1, 2, 5, 16])
def test_sampled_logprobs_equal_forward(trained, kind, batch):
    """Batches of 1 to 16 requests with prompts of 1 to 90 tokens."""
    _, runs, samplers = trained
    rng = np.random.default_rng(batch)
    prompts = [rng.integers(0, 512, length).tolist() for length in rng.integers(1, 90, batch)]
    params = types.SamplingParams(max_tokens=24, stop=[], seed=batch)
    pending = [samplers[kind].sample(prompt(p), 1, params) for p in prompts]
    check(runs[kind], prompts, [p.result(WAIT) for p in pending])


def test_mixed_company(trained):
    """All four kinds of weights are sampled at once while another run trains."""
    service, runs, samplers = trained
    rng = np.random.default_rng(99)
    prompts = [rng.integers(0, 512, 17).tolist() for _ in range(3)]
    params = types.SamplingParams(max_tokens=16, stop=[], seed=5)
    alone = {kind: [samplers[kind].sample(prompt(p), 2, params).result(WAIT) for p in prompts] for kind in samplers}
    noise = lora(service, rank=2)
    busy = [noise.forward_backward([datum(prompts[0])] * 4, "cross_entropy") for _ in range(10)]
    together = {kind: [samplers[kind].sample(prompt(p), 2, params) for p in prompts] for kind in samplers}
    for kind, pending in together.items():
        responses = [p.result(WAIT) for p in pending]
        for one, other in zip(alone[kind], responses, strict=True):
            assert [s.tokens for s in one.sequences] == [s.tokens for s in other.sequences]
        check(runs[kind], prompts, responses)
    for pending in busy:
        pending.result(WAIT)


def test_forward_does_not_depend_on_the_batch(trained):
    _, runs, _ = trained
    rng = np.random.default_rng(7)
    data = [datum(rng.integers(0, 512, n).tolist()) for n in (2, 9, 33, 64, 65, 120)]
    for run in runs.values():
        together = logprobs(forward(run, data))
        apart = [logprobs(forward(run, [d]))[0] for d in data]
        assert_bits_equal(together, apart)


def test_prompt_logprobs_equal_forward(trained):
    _, runs, samplers = trained
    rng = np.random.default_rng(8)
    for kind in runs:
        tokens = rng.integers(0, 512, 70).tolist()
        response = sample(samplers[kind], tokens, max_tokens=1, include_prompt_logprobs=True)
        assert_agree([response.prompt_logprobs_np[1:]], logprobs(forward(runs[kind], [datum(tokens)])))
