"""Models with a vision tower: an image has the same bits in every place, in the trainer and in the sampler."""

import numpy as np
import pytest
from tinker import types

from helpers import TOKENS, WAIT, assert_agree, assert_bits_equal, datum, forward, logprobs, lora, refused
from pictures import example, image, png, scored, text, with_image
from server import GOLDEN

MODELS = {f"tiny-{family}": GOLDEN / "vision" / family for family in ("qwen3_vl", "kimi_k25")}

IMAGE_TOKEN = 505


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


def test_equal_images_have_equal_bits_wherever_they_are(service, model):
    """Three times in a call, alone, and between others."""
    run = lora(service, model)
    thrice = logprobs(forward(run, [with_image(), with_image(), with_image()]))
    (alone,) = logprobs(forward(run, [with_image()]))
    between = logprobs(forward(run, [with_image(1), with_image(), datum(TOKENS), with_image(2)]))[1]
    assert_bits_equal([*thrice, between], [alone] * 4)
    (other,) = logprobs(forward(run, [with_image(1)]))
    assert not np.array_equal(alone[-3:], other[-3:]), "the image has an effect"


def test_the_sampler_scores_as_the_trainer_and_leaves_images_out(service, model):
    run = lora(service, model)
    sampler = service.create_sampling_client(base_model=model).result(WAIT)
    chunks = [text(TOKENS[:3]), image(), text(TOKENS[3:])]
    found = scored(sampler, chunks)
    assert [at for at, value in enumerate(found) if value is None] == [0, *range(3, 9)]
    targets = [*TOKENS[1:3], *[0] * 6, *TOKENS[3:]]
    item = types.Datum(
        types.ModelInput(chunks=[text(TOKENS[:3]), image(), text(TOKENS[3:-1])]), {"target_tokens": targets}
    )
    (trained,) = logprobs(forward(run, [item]))
    assert_agree([np.float32(found[9:])], [trained[8:]])


def test_a_completion_has_no_placeholders(service, model):
    sampler = service.create_sampling_client(base_model=model).result(WAIT)
    chunks = types.ModelInput(chunks=[text([5]), image(), text([7])])
    params = types.SamplingParams(max_tokens=64, seed=3, temperature=8.0, stop=[])
    (sequence,) = sampler.sample(chunks, 1, params).result(WAIT).sequences
    assert not {IMAGE_TOKEN, IMAGE_TOKEN + 1} & set(sequence.tokens)


@pytest.mark.parametrize(
    "chunk, names",
    [
        (image(expected_tokens=7), ["chunks[1]", "expected_tokens is 7", "48", "32 pixels", "6 tokens"]),
        (types.ImageChunk(data=png(3, 2), format="jpeg", expected_tokens=6), ["chunks[1]", "JPEG", "PNG"]),
        (types.ImageChunk(data=b"GIF89a", format="png", expected_tokens=6), ["chunks[1]", "GIF"]),
        (text([IMAGE_TOKEN]), [str(IMAGE_TOKEN), "stands for images"]),
        (types.ImageChunk(data=png(3, 2)[:200], format="png", expected_tokens=6), ["token 1", "truncated"]),
    ],
)
def test_wrong_images_are_refused_in_training_and_sampling(service, model, chunk, names):
    run = lora(service, model)
    refused(lambda: forward(run, [example(text([1]), chunk)]), "data[0].model_input", *names)
    sampler = service.create_sampling_client(base_model=model).result(WAIT)
    refused(lambda: scored(sampler, [text([1]), chunk]), "prompt", *names)
    # The run goes on.
    forward(run, [with_image()])
