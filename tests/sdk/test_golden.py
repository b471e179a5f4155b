"""Numbers of PyTorch through the SDK, in f32, for every family."""

import numpy as np
import pytest
from tinker import types

from helpers import WAIT, datum, forward, full, golden, golden_data, logprobs, lora, sample, train
from server import GOLDEN

FAMILIES = [
    "deepseek_v3",
    "gemma3",
    "glm4_moe",
    "gpt_oss",
    "kimi_k25",
    "lfm2",
    "llama",
    "llama3_rope",
    "llama_tied",
    "ministral3",
    "mistral_swa",
    "olmo3",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "smollm3",
]
MODELS = {f"tiny-{family}": GOLDEN / family for family in FAMILIES}


def close(actual, expected, tolerance):
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, np.asarray(e, np.float32), rtol=0, atol=tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_fresh_adapter_is_the_base_model(service, family):
    """B starts at zero, so a new run computes the base model's log-probabilities."""
    reference = golden(family)
    run = lora(service, f"tiny-{family}")
    output = forward(run, golden_data(reference, "weights"))
    close(logprobs(output), reference["base_logprobs"], 2e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_sampler_prompt_logprobs(service, family):
    reference = golden(family)
    sampler = service.create_sampling_client(base_model=f"tiny-{family}").result(WAIT)
    for item, expected in zip(reference["data"], reference["base_logprobs"], strict=True):
        tokens = [*item["tokens"], item["target_tokens"][-1]]
        actual = sampler.compute_logprobs(types.ModelInput.from_ints(tokens)).result(WAIT)
        assert actual[0] is None
        close([actual[1:]], [expected], 2e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_full_parameter_training(service, family):
    """Three AdamW steps on every parameter: rank 0 asks for it."""
    reference = golden(family)
    expected = reference["full_finetune"]["adamw"]
    keys = ("learning_rate", "beta1", "beta2", "eps", "weight_decay")
    adam = types.AdamParams(**{key: expected[key] for key in keys})
    run, data = full(service, f"tiny-{family}"), golden_data(reference, "weights")
    losses = [train(run, data, adam=adam).metrics["loss:sum"] for _ in expected["loss_sums"]]
    np.testing.assert_allclose(losses, expected["loss_sums"], rtol=1e-3)
    close(logprobs(forward(run, data)), expected["logprobs_after"], 2e-3)


def test_losses_follow_from_the_logprobs(service):
    """The sums of every loss, computed here from PyTorch's log-probabilities; nothing is normalised."""
    reference = golden()
    clip = reference["clip"]
    low, high = clip["clip_low_threshold"], clip["clip_high_threshold"]
    lp, old, advantage, weight = (
        np.concatenate(x)
        for x in (
            reference["base_logprobs"],
            *([np.asarray(d[k]) for d in reference["data"]] for k in ("logprobs", "advantages", "weights")),
        )
    )
    ratio = np.exp(lp - old)
    expected = {
        "cross_entropy": (None, -weight * lp),
        "importance_sampling": (None, -ratio * advantage),
        "ppo": (clip, -np.minimum(ratio * advantage, np.clip(ratio, low, high) * advantage)),
        "cispo": (clip, -np.clip(ratio, low, high) * lp * advantage),
        "dro": ({"beta": 0.1}, -(lp * advantage - 0.05 * (lp - old) ** 2)),
    }
    run = lora(service)
    for loss, (config, terms) in expected.items():
        inputs = ("weights",) if loss == "cross_entropy" else ("logprobs", "advantages")
        output = forward(run, golden_data(reference, *inputs), loss, config)
        assert output.metrics["loss:sum"] == pytest.approx(terms.sum(), rel=1e-3, abs=1e-2), loss
        each = np.concatenate([o["elementwise_loss"].to_numpy() for o in output.loss_fn_outputs])
        np.testing.assert_allclose(each, terms, rtol=1e-2, atol=1e-3, err_msg=loss)
        close(logprobs(output), reference["base_logprobs"], 2e-4)


def test_gspo_has_one_ratio_per_sequence(service):
    """The mean of the log-ratio runs over the masked positions, the sum over all."""
    reference, config = golden(), {"clip_low_threshold": 0.7, "clip_high_threshold": 1.3}
    data, expected = [], []
    for d, lp in zip(reference["data"], reference["base_logprobs"], strict=True):
        mask = [float(i % 3 > 0) for i in range(len(d["tokens"]))]
        inputs = {"logprobs": d["logprobs"], "advantages": d["advantages"], "sequence_ratio_mask": mask}
        data.append(datum(d["tokens"], target_tokens=d["target_tokens"], **inputs))
        masked = (np.asarray(lp) - np.asarray(d["logprobs"]))[np.asarray(mask) > 0]
        ratio, advantage = np.exp(masked.mean() if len(masked) else 0.0), np.asarray(d["advantages"])
        expected.append(-np.minimum(ratio * advantage, np.clip(ratio, 0.7, 1.3) * advantage))
    output = forward(lora(service), data, "gspo", config)
    terms = np.concatenate(expected)
    assert output.metrics["loss:sum"] == pytest.approx(terms.sum(), rel=1e-3, abs=1e-2)
    each = np.concatenate([o["elementwise_loss"].to_numpy() for o in output.loss_fn_outputs])
    np.testing.assert_allclose(each, terms, rtol=1e-2, atol=1e-3)


def test_greedy_follows_the_most_likely_token(service):
    """Temperature 0 repeats what `topk_prompt_logprobs` says about its own output."""
    tokens = golden()["greedy_after_adamw"]["prompt"]
    sampler = service.create_sampling_client(base_model="tiny-llama").result(WAIT)
    sampled = sample(sampler, tokens, temperature=0.0, max_tokens=16, stop=[]).sequences[0]
    top = sample(sampler, [*tokens, *sampled.tokens], max_tokens=1, topk_prompt_logprobs=1).topk_prompt_logprobs
    assert sampled.tokens == [row[0][0] for row in top[len(tokens) :]]
