"""Images and audio in requests of the official SDK to models that take none."""

import base64

from tinker import types

import wire as raw
from helpers import TOKENS, WAIT, assert_bits_equal, datum, forward, logprobs, lora, refused
from pictures import image, scored, text, with_image
from server import TINY


def test_a_model_without_a_tower_refuses_images(service):
    """The refused request uses up its `seq_id`, and the next one runs."""
    run = lora(service)
    reference = logprobs(forward(run, [datum(TOKENS)]))
    text_of = refused(lambda: forward(run, [datum(TOKENS), with_image()]), "data[1].model_input.chunks[1]")
    assert f"model {TINY} does not take images" in text_of
    assert_bits_equal(reference, logprobs(forward(run, [datum(TOKENS)])))
    sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
    refused(lambda: scored(sampler, [image()]), "prompt.chunks[0]", f"model {TINY} does not take images")


def test_what_the_server_would_have_to_fetch_is_refused(service):
    sampler = service.create_sampling_client(base_model=TINY).result(WAIT)
    pointer = types.ImageAssetPointerChunk(location="http://127.0.0.1:9/a.png", format="png", expected_tokens=4)
    refused(lambda: scored(sampler, [text([1]), pointer]), "prompt.chunks[1]", "fetches no files")


def test_audio_is_refused(server):
    wire = raw.Wire(server)
    sampler = wire.sampling_session(wire.session(), base_model=TINY).json()["sampling_session_id"]
    audio = {"type": "dmel", "dmel": base64.b64encode(b"\0\1\4").decode()}
    raw.refused(wire.asample(sampler, 0, prompt={"chunks": [audio]}), "prompt.chunks[0]", "no model takes audio")
