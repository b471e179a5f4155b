"""The scale of adapters (`user_metadata` trainyard.lora_alpha and trainyard.rslora), from the official SDK."""

import json
import math
import urllib.request

import pytest

from helpers import TOKENS, WAIT, assert_bits_equal, datum, forward, full, logprobs, lora, prompt, refused, rest, sample, train
from trainyard.recipes import sft
from trainyard.recipes.core.config import ConfigError

ALPHA, STABILIZED = "trainyard.lora_alpha", "trainyard.rslora"
BATCH = [datum(TOKENS), datum(TOKENS[::-1])]


def exported(server, run, name):
    """`adapter_config.json` of a run's weights."""
    path = run.save_weights_external(name).result(WAIT).path
    links = rest(server).get_external_weights_urls(path).result(WAIT)
    with urllib.request.urlopen(links.urls["adapter_config.json"], timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize(
    ("metadata", "rank", "alpha"),
    [({ALPHA: "64"}, 8, 64), ({ALPHA: "0.5"}, 8, 0.5), ({STABILIZED: "true"}, 16, 128), ({ALPHA: "8", STABILIZED: "true"}, 4, 16)],
)
def test_exported_adapters_have_the_scale(server, service, metadata, rank, alpha):
    run = lora(service, rank=rank, user_metadata=metadata)
    train(run, BATCH)
    config = exported(server, run, "scaled")
    assert (config["r"], config["lora_alpha"]) == (rank, alpha)
    assert isinstance(config["lora_alpha"], type(alpha))


def test_the_sampler_has_the_scale_of_the_trainer(service):
    """With an alpha that 32 bits can't represent."""
    run = lora(service, rank=6, user_metadata={STABILIZED: "true"})
    plain = lora(service, rank=6)
    for one in (run, plain):
        train(one, BATCH)
        train(one, BATCH)
    sampler = run.save_weights_and_get_sampling_client().result(WAIT)
    (sequence,) = sample(sampler, TOKENS, max_tokens=16, seed=3).sequences
    whole = [*TOKENS, *sequence.tokens]
    scored = sampler.compute_logprobs(prompt(whole)).result(WAIT)
    assert_bits_equal([sequence.logprobs], [scored[len(TOKENS) :]])
    (trained,) = logprobs(forward(run, [datum(whole)]))
    assert_bits_equal([sequence.logprobs], [trained[len(TOKENS) - 1 :]])
    (other,) = logprobs(forward(plain, [datum(whole)]))
    assert (other != trained).any()


def test_checkpoints_keep_the_scale(server, service):
    run = lora(service, user_metadata={ALPHA: "48"})
    train(run, BATCH)
    state = run.save_state("state").result(WAIT).path
    resumed = service.create_training_client_from_state_with_optimizer(state).result(WAIT)
    named = service.create_training_client_from_state(state, user_metadata={ALPHA: "48"}).result(WAIT)
    assert_bits_equal(logprobs(forward(run, BATCH)), logprobs(forward(named, BATCH)))
    for one in (run, resumed):
        train(one, BATCH)
    assert_bits_equal(logprobs(forward(run, BATCH)), logprobs(forward(resumed, BATCH)))
    assert exported(server, resumed, "resumed")["lora_alpha"] == 48
    plain = lora(service)
    refused(lambda: plain.load_state(state).result(WAIT), "alpha 48", "alpha 32")
    other = {ALPHA: "32"}
    refused(lambda: service.create_training_client_from_state(state, user_metadata=other).result(WAIT), "alpha 32", "alpha 48")


def test_wrong_scales_are_named(service):
    for wrong in ("", "x", "0", "-1", "nan", "1e9"):
        refused(lambda wrong=wrong: lora(service, user_metadata={ALPHA: wrong}), f"user_metadata.{ALPHA}", "not a number")
    refused(lambda: lora(service, user_metadata={STABILIZED: "1"}), f"user_metadata.{STABILIZED}", "true")
    every = lambda: lora(service, rank=0, user_metadata={ALPHA: "64"})  # noqa: E731
    refused(every, f"user_metadata.{ALPHA}", "all parameters")
    state = full(service).save_state("full").result(WAIT).path
    refused(
        lambda: service.create_training_client_from_state(state, user_metadata={STABILIZED: "true"}).result(WAIT),
        f"user_metadata.{STABILIZED}", "all parameters",
    )  # fmt: skip


def test_recipes_set_the_scale():
    scale = lambda **settings: sft.Config(folder="x", data="x", **settings).scale  # noqa: E731
    assert scale() == scale(lora_alpha=32) == {}
    assert scale(lora_alpha=16.0, rslora=True) == {ALPHA: "16.0", STABILIZED: "true"}
    assert math.isclose(float(scale(lora_alpha=1 / 3)[ALPHA]), 1 / 3)
    with pytest.raises(ConfigError, match="lora_alpha"):
        scale(lora_alpha=0.0)
